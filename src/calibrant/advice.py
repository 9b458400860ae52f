"""What a classifier's confidence is worth, and what to do about it: stated rules, plain words.

- A calibrator, if the model is miscalibrated beyond chance and dev says that the calibrator helps.
- Training again with manifold smoothing, if what no calibrator can mend is bad with the calibrator, too:
  on unfamiliar text its confidence stays more than half of the way from a guess to what it is on familiar
  text, or its mistakes are hardly less confident than the rest (AUROC below 0.7).
- Otherwise nothing.
"""

from dataclasses import dataclass
from typing import Any, Literal

from calibrant.miscalibration import Miscalibration

STILL_SURE = 0.5
POOR_AUROC = 0.7

Action = Literal["nothing", "calibrate", "retrain"]


@dataclass(frozen=True)
class Advice:
    """What to do, and why."""

    action: Action
    reasons: list[str]


def in_words(measured: dict[str, Any], found: Miscalibration, classes: int) -> list[str]:
    """What ``evaluate`` and ``miscalibration`` found, a sentence for each kind of text."""
    confidence, low, high = measured["mean_confidence_test"], *found.interval
    verdict = {
        "calibrated": "that is within chance: no miscalibration that so many texts could show",
        "over-confident": f"it is over-confident, by {_points(found.gap)}",
        "under-confident": f"it is under-confident, by {_points(-found.gap)}",
        "uneven": "it is over-confident on some texts and under-confident on others",
    }[found.direction]
    sentences = [
        f"On {measured['n_test']} familiar texts it is right in {measured['accuracy']:.1%} and sure of "
        f"{confidence:.1%}, a gap of {_points(found.gap)} (95 % interval {100 * low:+.1f} to "
        f"{100 * high:+.1f}); its ECE is {found.ece:.1%}, where a calibrated model stays below "
        f"{found.chance:.1%}: {verdict}."
    ]
    if measured["ood"] is not None:
        sentences.append(
            f"On {measured['n_ood']} unfamiliar texts it is sure of {measured['mean_confidence_ood']:.1%}, "
            f"where a guess would be {1 / classes:.1%}; that is {sureness(measured, classes):.0%} of the way "
            "from a guess to its confidence on familiar text."
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
    beyond = _what_no_calibrator_mends(after, classes)
    return Advice("retrain" if beyond else action, [reason, *beyond])


def sureness(measured: dict[str, Any], classes: int) -> float:
    """Where its confidence on unfamiliar text lies between a guess, 0, and that on familiar text, 1."""
    guess = 1 / classes
    familiar, unfamiliar = measured["mean_confidence_test"] - guess, measured["mean_confidence_ood"] - guess
    return float(unfamiliar / familiar) if familiar > 0 else 1.0


def _what_no_calibrator_mends(after: dict[str, Any], classes: int) -> list[str]:
    reasons = []
    if after["ood"] is not None and sureness(after, classes) > STILL_SURE:
        reasons.append(
            f"On unfamiliar text its confidence would still be {after['mean_confidence_ood']:.1%}, "
            f"{sureness(after, classes):.0%} of the way from a guess to {after['mean_confidence_test']:.1%} "
            "on familiar text: no calibrator tells the two apart; training with manifold smoothing is for it."
        )
    auroc = after["misclassification"]["auroc"]
    if auroc is not None and auroc < POOR_AUROC:
        reasons.append(
            f"Its mistakes are hardly less confident than its right answers (AUROC {auroc:.2f}): a "
            "calibrator leaves their order nearly as it is; training with manifold smoothing is for it."
        )
    return reasons


def _points(share: float) -> str:
    return f"{100 * share:.1f} points"
