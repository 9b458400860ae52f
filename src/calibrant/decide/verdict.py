"""What a measured run is worth, in two sentences, and the one command that comes next: stated rules.

The first that applies:

1. Unfamiliar text is answered nearly as surely as familiar text, beyond chance. Fit familiarity; where the
   run has it, learn a rule that turns unfamiliar text away.
2. Confidence on familiar text is off, beyond chance. Fit a calibrator; where the run has one, fit it again
   on texts like these. Under-confidence is left alone where familiarity is fitted: it takes confidence from
   the strangest familiar texts on purpose.
3. There is no rule of abstention, and there are mistakes to leave out. Learn one.
4. Otherwise there is nothing to mend: use it.

Each command takes its own condition away, so that nobody is sent round in a circle.
"""

import math
import shlex
from dataclasses import dataclass
from typing import Any

from calibrant.decide.advice import in_words, stays_sure
from calibrant.metrics.miscalibration import Miscalibration

BOTH = "temperature+familiarity"
TWO_SIGMA = 1.96
RISKS = (0.01, 0.02, 0.05, 0.1, 0.2)  # that people ask for


@dataclass(frozen=True)
class Verdict:
    """To a person."""

    words: tuple[str, ...]  # on familiar text and, where it was asked about any, on unfamiliar text
    reason: str
    command: str


@dataclass(frozen=True)
class Known:
    """What the run has already."""

    path: str
    classes: int
    calibrator: str | None
    abstains: bool  # it has a rule
    turns_away: bool  # which also promises how much unfamiliar text it answers
    ood: str | None = None  # the file or dataset of unfamiliar text that it was asked about

    @property
    def familiarity(self) -> bool:
        """Whether its calibrator knows familiar text."""
        return self.calibrator is not None and "familiarity" in self.calibrator.split("+")


def verdict(measured: dict[str, Any], found: Miscalibration, run: Known) -> Verdict:
    """By the rules above, from what ``measure`` and ``miscalibration`` found."""
    words = tuple(in_words(measured, found, run.classes))
    reason, command = _next(measured, found, run)
    return Verdict(words, reason, shlex.join(["calibrant", *command]))


def after_training(
    path: str, accuracy: float, confidence: float | None, texts: int, calibrator: str | None
) -> Verdict:
    """From what was measured on that many dev texts, which the calibrator was fitted on.

    More training is never advised: it does not mend confidence. Where there is no
    calibrator and confidence is off beyond chance, one is fitted; then this has nothing more to say.
    """
    evaluate = ["evaluate", path, "--test", "test.csv"]
    gap = None if confidence is None else confidence - accuracy
    chance = TWO_SIGMA * math.sqrt(accuracy * (1 - accuracy) / texts)
    if calibrator is not None:
        reason, command = "Its confidence is calibrated on dev, so there is nothing to do.", evaluate
    elif gap is None or abs(gap) <= chance:
        reason, command = "The two agree within chance, so there is nothing to do.", evaluate
    else:
        reason = (
            f"It is {'over' if gap > 0 else 'under'}-confident. A temperature, fitted on dev, mends that."
        )
        command = ["calibrate", path, "--calibrator", "temperature"]
    return Verdict((), reason, shlex.join(["calibrant", *command]))


def _next(measured: dict[str, Any], found: Miscalibration, run: Known) -> tuple[str, list[str]]:
    risk = _risk(1 - measured["accuracy"])
    if measured["ood"] is not None and stays_sure(measured, run.classes) and not run.turns_away:
        if not run.familiarity:
            return (
                "Familiarity, fitted on dev, lowers its confidence on unfamiliar text.",
                ["calibrate", run.path, "--calibrator", BOTH],
            )
        return (
            "A rule can turn unfamiliar text away.",
            ["threshold", run.path, "--risk", risk, "--ood", run.ood or "other.csv", "--ood-rate", "0.05"],
        )
    if found.direction != "calibrated":
        if run.calibrator is None:
            return (
                "A temperature, fitted on dev, brings its confidence closer to its accuracy.",
                ["calibrate", run.path, "--calibrator", "temperature"],
            )
        if not (run.familiarity and found.direction == "under-confident"):
            return (
                "These texts are not quite like those that its calibrator was fitted on; fit it on labelled "
                "texts like these.",
                ["calibrate", run.path, "--calibrator", run.calibrator, "--dev", "more.csv"],
            )
    if not run.abstains and 1 - measured["accuracy"] > RISKS[0]:
        return (
            "There is nothing to mend. A rule of abstention can promise fewer mistakes, here in at most "
            f"{float(risk):.0%} of its answers.",
            ["threshold", run.path, "--risk", risk],
        )
    return "There is nothing to mend: use it.", ["predict", run.path, "new.csv"]


def _risk(errors: float) -> str:
    """The largest usual risk that is at most half of the error rate.

    >>> _risk(0.08), _risk(1 - 0.9), _risk(0.005)
    ('0.02', '0.05', '0.01')
    """
    half = errors / 2 + 1e-9  # 1 − 0.9 is a little below 0.1
    return str(max((risk for risk in RISKS if risk <= half), default=RISKS[0]))
