"""What a classifier's confidence is worth, which calibrator suits it, and what to do: stated rules.

- A calibrator, if the model is miscalibrated beyond chance and dev says that the calibrator helps.
- Training again by calibrant's default, if what no temperature can mend is bad with the calibrator, too:
  on unfamiliar text its confidence stays more than half of the way from a guess to what it is on familiar
  text, or its mistakes are hardly less confident than the rest (AUROC below 0.7); each by more than chance
  would have it in one of twenty samples of so many texts, since training costs more than a calibrator.
- Otherwise nothing.

Which calibrator: all are fitted on dev, and dev alone decides (``choose``).
"""

import math
import warnings
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from calibrant.calibrators import Calibrator, calibrators
from calibrant.calibrators.foldable import Foldable
from calibrant.metrics.auroc import auroc_error
from calibrant.metrics.miscalibration import Miscalibration
from calibrant.types import Outputs, Progress

STILL_SURE = 0.5
POOR_AUROC = 0.7
CHANCE = 0.05
FOLDS = 5

Action = Literal["nothing", "calibrate", "retrain"]


@dataclass(frozen=True)
class Advice:
    """What to do, and why."""

    action: Action
    reasons: list[str]

    def in_words(self) -> str:
        """The action, to a person."""
        return {
            "nothing": "leave it as it is",
            "calibrate": "calibrate it",
            "retrain": "train it again, by calibrant's default",
        }[self.action]


def in_words(measured: dict[str, Any], found: Miscalibration, classes: int) -> list[str]:
    """What ``evaluate`` and ``miscalibration`` found, a sentence for each kind of text."""
    confidence, low, high = measured["mean_confidence_test"], *found.interval
    verdict = {
        "calibrated": "these texts show no miscalibration",
        "over-confident": "it is over-confident",
        "under-confident": "it is under-confident",
        "uneven": "it is over-confident on some texts and under-confident on others",
    }[found.direction]
    sentences = [
        f"On {measured['n_test']} familiar texts {measured['accuracy']:.1%} of its answers are right, and "
        f"its mean confidence is {confidence:.1%}, a difference of {100 * found.gap:+.1f} points (95 % "
        f"interval {100 * low:+.1f} to {100 * high:+.1f}). Its calibration error (ECE) is {found.ece:.1%}, "
        f"where chance alone would give a calibrated model up to {found.chance:.1%}: {verdict}."
    ]
    if measured["ood"] is not None:
        sentences.append(
            f"On {measured['n_ood']} unfamiliar texts its mean confidence is "
            f"{measured['mean_confidence_ood']:.1%}, where a guess would be {1 / classes:.1%}: that is "
            f"{sureness(measured, classes):.0%} of the way from a guess up to its confidence on familiar "
            "text."
        )
    return sentences


def advise(
    found: Miscalibration,
    calibrator: str | None,
    before: dict[str, Any],
    after: dict[str, Any],
    familiar: dict[str, Any] | None = None,
    *,
    classes: int,
) -> Advice:
    """By the rules above.

    Args:
        found: of the model as it is, on test.
        calibrator: the one that dev chose; None if dev says that none helps.
        before: what ``evaluate`` measured of the model as it is.
        after: the same with the calibrator; ``before`` if there is none.
        familiar: the same with a temperature and familiarity, where they could be fitted.
        classes: how many.
    """
    action: Action = "nothing"
    if found.direction == "calibrated":
        reason = "On familiar text its confidence can be used as it is."
    elif calibrator is None:
        reason = (
            "No calibrator lowers the NLL of dev texts that were left out of its fit; more dev texts may."
        )
    else:
        action = "calibrate"
        reason = (
            f"Fitted on dev, {calibrator} takes the ECE on test from {before['ece']:.1%} to "
            f"{after['ece']:.1%} and the NLL from {before['nll']:.3f} to {after['nll']:.3f}."
        )
    beyond = (
        _what_no_temperature_mends(after, familiar, classes, "would still be")
        if action == "calibrate"
        else _what_no_temperature_mends(before, familiar, classes, "is")
    )
    return Advice("retrain" if beyond else action, [reason, *beyond])


def sureness(measured: dict[str, Any], classes: int) -> float:
    """Where its confidence on unfamiliar text lies between a guess, 0, and that on familiar text, 1."""
    guess = 1 / classes
    familiar, unfamiliar = measured["mean_confidence_test"] - guess, measured["mean_confidence_ood"] - guess
    return float(unfamiliar / familiar) if familiar > 0 else 1.0


def _what_no_temperature_mends(
    measured: dict[str, Any], familiar: dict[str, Any] | None, classes: int, verb: str
) -> list[str]:
    reasons = []
    if measured["ood"] is not None and stays_sure(measured, classes):
        reasons.append(
            f"On unfamiliar text its confidence {verb} {measured['mean_confidence_ood']:.1%}, "
            f"{sureness(measured, classes):.0%} of the way from a guess up to "
            f"{measured['mean_confidence_test']:.1%} on familiar text: no temperature tells the two apart."
        )
        if familiar is not None:
            reasons.append(
                "Familiarity does, which looks at how far a text is from those it knows: fitted on dev, it "
                f"takes the confidence on unfamiliar text to {familiar['mean_confidence_ood']:.1%}, with "
                f"{familiar['mean_confidence_test']:.1%} on familiar text. `calibrant train` fits it."
            )
    auroc = measured["misclassification"]["auroc"]
    if auroc is not None and _is_poor(auroc, measured):
        reasons.append(
            f"Its mistakes are hardly less confident than its right answers (AUROC {auroc:.2f}): a "
            "calibrator leaves their order nearly as it is; training anew may not."
        )
    return reasons


def stays_sure(measured: dict[str, Any], classes: int) -> bool:
    """Whether it is, beyond chance, more than half of the way up on unfamiliar text.

    That is d = c̄_ood − ½·(c̄_test + 1/K) > 0. Confidence lies between 1/K and 1, so that by Hoeffding's
    inequality d is too large by t with a probability of at most exp(−2t² / ((1 − 1/K)²·(1/m + ¼/n))), however
    few the m unfamiliar and n familiar texts, and whatever their confidences.
    """
    guess = 1 / classes
    familiar, unfamiliar = measured["mean_confidence_test"], measured["mean_confidence_ood"]
    d = unfamiliar - guess - STILL_SURE * (familiar - guess)
    spread = 1 / measured["n_ood"] + STILL_SURE**2 / measured["n_test"]
    return bool(d > (1 - guess) * math.sqrt(math.log(1 / CHANCE) / 2 * spread))


def _is_poor(auroc: float, measured: dict[str, Any]) -> bool:
    """Whether it is too low for chance to have made it so of one at the limit."""
    wrong = round(measured["n_test"] * (1 - measured["accuracy"]))
    error = auroc_error(POOR_AUROC, wrong, measured["n_test"] - wrong)
    return bool(auroc < POOR_AUROC - NormalDist().inv_cdf(1 - CHANCE) * error)


@dataclass(frozen=True)
class Candidate:
    """A calibrator fitted on all of dev, or none."""

    calibrator: Calibrator | None
    losses: NDArray[np.float64]  # (n,) −log p[y] of each dev text, by a fit that had left it out

    @property
    def name(self) -> str:
        """As users know it."""
        return "none" if self.calibrator is None else self.calibrator.name

    @property
    def foldable(self) -> bool:
        """Whether a plain model can carry it."""
        return self.calibrator is None or isinstance(self.calibrator, Foldable)

    @property
    def dev_nll(self) -> float:
        """The mean loss."""
        return float(self.losses.mean())

    @property
    def numbers(self) -> int:
        """How many it holds."""
        if self.calibrator is None:
            return 0
        values = [*self.calibrator.state()["parameters"].values(), *self.calibrator.arrays().values()]
        return sum(np.size(value) for value in values)


def candidates(
    outputs: Outputs, labels: NDArray[np.integer], progress: Progress | None = None
) -> list[Candidate]:
    """No calibrator and every one that reads logits alone, fitted to outputs and true classes (n,) of dev."""
    found = [Candidate(None, _losses(outputs.probabilities, labels))]
    kinds = {name: kind for name, kind in calibrators().items() if not kind.needs}
    for done, kind in enumerate(kinds.values(), start=1):
        left_out = _left_out_probabilities(kind(), outputs, labels)
        found.append(Candidate(kind().fit(outputs, labels), _losses(left_out, labels)))
        if progress is not None:
            progress("calibrators", done, len(kinds))
    return found


def choose(found: list[Candidate]) -> Candidate:
    """Of those that a plain model can carry, the one of fewest numbers that is as good as the best.

    As good: its mean loss is higher by no more than one standard error of the difference, text by text, so
    that a gain which is noise is not bought with parameters (Breiman et al., 1984, the 1-SE rule).
    """
    foldable = sorted((candidate for candidate in found if candidate.foldable), key=lambda c: c.numbers)
    best = min(foldable, key=lambda c: c.dev_nll)

    def as_good(candidate: Candidate) -> bool:
        worse = candidate.losses - best.losses
        return bool(worse.mean() <= worse.std() / np.sqrt(len(worse)))

    return next(filter(as_good, foldable))


def _left_out_probabilities(
    calibrator: Calibrator, outputs: Outputs, y: NDArray[np.integer]
) -> NDArray[np.float64]:
    from sklearn.model_selection import KFold

    p = np.empty_like(outputs.logits)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what there is to say of a fit, the one to all of dev says
        for kept, left_out in KFold(FOLDS, shuffle=True, random_state=0).split(p):
            p[left_out] = calibrator.fit(outputs[kept], y[kept]).probabilities(outputs[left_out])
    return p


def _losses(p: NDArray[np.floating], y: NDArray[np.integer]) -> NDArray[np.float64]:
    of_truth = p[np.arange(len(y)), y]
    losses: NDArray[np.float64] = -np.log(np.maximum(of_truth, np.nextafter(0, 1)))  # as the metric has it
    return losses
