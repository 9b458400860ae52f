"""What a classifier's confidence is worth, and what to do about it: stated rules, plain words.

- A calibrator, if the model is miscalibrated beyond chance and dev says that the calibrator helps.
- Training again with manifold smoothing, if what no calibrator can mend is bad with the calibrator, too:
  on unfamiliar text its confidence stays more than half of the way from a guess to what it is on familiar
  text, or its mistakes are hardly less confident than the rest (AUROC below 0.7); each by more than chance
  would have it in one of twenty samples of so many texts, since training costs more than a calibrator.
- Otherwise nothing.
"""

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, Literal

from calibrant.metrics.auroc import auroc_error
from calibrant.miscalibration import Miscalibration

STILL_SURE = 0.5
POOR_AUROC = 0.7
CHANCE = 0.05

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
            "retrain": "train it again, with manifold smoothing",
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
    classes: int,
) -> Advice:
    """By the rules above.

    Args:
        found: of the model as it is, on test.
        calibrator: the one that dev chose; None if dev says that none helps.
        before: what ``evaluate`` measured of the model as it is.
        after: the same with the calibrator; ``before`` if there is none.
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
        _what_no_calibrator_mends(after, classes, "would still be")
        if action == "calibrate"
        else _what_no_calibrator_mends(before, classes, "is")
    )
    return Advice("retrain" if beyond else action, [reason, *beyond])


def sureness(measured: dict[str, Any], classes: int) -> float:
    """Where its confidence on unfamiliar text lies between a guess, 0, and that on familiar text, 1."""
    guess = 1 / classes
    familiar, unfamiliar = measured["mean_confidence_test"] - guess, measured["mean_confidence_ood"] - guess
    return float(unfamiliar / familiar) if familiar > 0 else 1.0


def _what_no_calibrator_mends(measured: dict[str, Any], classes: int, verb: str) -> list[str]:
    reasons = []
    if measured["ood"] is not None and _stays_sure(measured, classes):
        reasons.append(
            f"On unfamiliar text its confidence {verb} {measured['mean_confidence_ood']:.1%}, "
            f"{sureness(measured, classes):.0%} of the way from a guess up to "
            f"{measured['mean_confidence_test']:.1%} on familiar text: no calibrator tells the two apart; "
            "training with manifold smoothing is made for that."
        )
    auroc = measured["misclassification"]["auroc"]
    if auroc is not None and _is_poor(auroc, measured):
        reasons.append(
            f"Its mistakes are hardly less confident than its right answers (AUROC {auroc:.2f}): a "
            "calibrator leaves their order nearly as it is; training with manifold smoothing is made for "
            "that."
        )
    return reasons


def _stays_sure(measured: dict[str, Any], classes: int) -> bool:
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
