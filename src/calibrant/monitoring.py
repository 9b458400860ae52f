"""Compare what a run answers on new texts with what it answered on dev."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.data import read_file
from calibrant.drift import (
    Interval,
    Shift,
    calibration_error,
    confidence_shift,
    expected_accuracy,
    gap_shift,
    share,
)
from calibrant.errors import UserError
from calibrant.prediction import load
from calibrant.reference import answer_dev
from calibrant.types import Progress


@dataclass(frozen=True)
class Side:
    """What is known of the dev texts, or of the new ones; None: nothing."""

    texts: dict[str, Any]  # provenance
    confidence: float  # the mean
    accuracy: Interval | None = None
    ece: Interval | None = None
    abstained: Interval | None = None  # by the run's own rule, where it has one
    risk: Interval | None = None  # the share of wrong answers, abstentions left out


@dataclass(frozen=True)
class Monitored:
    """Then, now, and whether the difference is both more than chance and more than the tolerance."""

    moved: bool
    level: float
    tolerance: float
    confidence_shift: Shift
    gap_shift: Shift | None  # with labels
    expected_accuracy: Interval  # now, from the confidence
    unseen_labels: int | None  # new texts whose label training never saw; their answers are wrong
    then: Side
    now: Side


def monitor(
    path: Path | str,
    new: str,
    dev: str | None = None,
    level: float = 0.01,
    tolerance: float = 0.1,
    text_column: str | None = None,
    label_column: str | None = None,
    progress: Progress | None = None,
) -> Monitored:
    """Whether the texts of the file ``new`` are like dev's to the run in ``path``.

    Args:
        path: the run.
        new: a file of texts. If it has the label column, what the labels say is measured too.
        dev: a labelled file, columns as in training, to compare with [what the run keeps, or its dev texts].
        level: how often chance alone may say "moved"; all intervals are of 1 − level.
        tolerance: how far, as a share of texts, is not worth an alarm.
        text_column: of ``new`` [as in training].
        label_column: of ``new``; named here, it must be there [as in training, if there].
        progress: told of each batch.
    """
    if not 0 < level < 1:
        raise UserError(f"--level must lie between 0 and 1, both excluded, got {level:g}.")
    if not 0 <= tolerance < 1:
        raise UserError(f"--tolerance must be 0 or more and below 1, got {tolerance:g}.")
    classifier = load(path)
    config = classifier.run.config
    texts = read_file(
        new,
        text_column or config.text_column,
        label_column or config.label_column,
        labelled=None if label_column is None else True,
    )
    answers = answer_dev(classifier, dev, progress)
    p = classifier.probabilities(answers.logits)
    then, then_right = p.max(axis=1), p.argmax(axis=1) == answers.labels
    decisions = classifier.predict(texts.texts, progress=progress)
    now = np.array([decision.confidence for decision in decisions])
    abstain = np.array([decision.abstain for decision in decisions])
    now_right = None
    if texts.labels is not None:
        now_right = np.array([d.label == label for d, label in zip(decisions, texts.labels, strict=True)])

    shifts = [confidence_shift(then, now)]
    if now_right is not None:
        shifts.append(gap_shift(then, then_right, now, now_right))
    rule = classifier.run.record["threshold"]
    return Monitored(
        moved=any(shift.beyond(tolerance, level / len(shifts)) for shift in shifts),
        level=level,
        tolerance=tolerance,
        confidence_shift=shifts[0],
        gap_shift=None if now_right is None else shifts[1],
        expected_accuracy=expected_accuracy(then, then_right, now, level),
        unseen_labels=None if texts.labels is None else _unseen(texts.labels, classifier.label_names),
        then=Side(
            answers.texts,
            float(then.mean()),
            **_measured(then, then_right, level),
            **({} if rule is None else _learnt(rule, level)),
        ),
        now=Side(
            texts.provenance(),
            float(now.mean()),
            **({} if now_right is None else _measured(now, now_right, level)),
            **({} if rule is None else _obeyed(abstain, now_right, level)),
        ),
    )


def _unseen(labels: Sequence[str], known: Sequence[str]) -> int:
    return sum(label not in known for label in labels)


def _measured(confidence: NDArray[Any], right: NDArray[Any], level: float) -> dict[str, Interval]:
    return {
        "accuracy": share(int(right.sum()), len(right), level),
        "ece": calibration_error(confidence, right, level),
    }


def _learnt(rule: dict[str, Any], level: float) -> dict[str, Interval]:
    """What the rule did on the texts it was learnt on, as `calibrant threshold` stored it."""
    n = rule["learnt_on"]["dev"]["n"]
    answered = round(rule["dev"]["coverage"] * n)
    wrong = round(rule["dev"]["risk"] * answered)
    return {"abstained": share(n - answered, n, level), "risk": share(wrong, answered, level)}


def _obeyed(abstain: NDArray[Any], right: NDArray[Any] | None, level: float) -> dict[str, Interval]:
    """What it does now; the risk is unknown without labels, or where nothing was answered."""
    found = {"abstained": share(int(abstain.sum()), len(abstain), level)}
    if right is not None and not abstain.all():
        found["risk"] = share(int((~right)[~abstain].sum()), int((~abstain).sum()), level)
    return found
