"""What an export answers, and how far that is from what the run answers."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibrant.calibrators import Calibrator, Chain, Familiarity
from calibrant.decide.rule import Rule
from calibrant.types import Outputs

Floats = NDArray[np.floating]
Flags = NDArray[np.bool_]
ROUNDING = 1e-5
"""Of a distance's spread, a confidence, a score. The same text in another batch is off by a tenth of it."""


@dataclass(frozen=True, eq=False)
class Answers:
    """Of n texts; a plain model gives probabilities only."""

    probabilities: Floats  # (n, K)
    familiarity: Floats | None = None  # (n,)
    abstain: Flags | None = None  # (n,)


def of_the_run(said: Outputs, rule: Rule) -> Answers:
    """What it answers, from its outputs."""
    return Answers(said.probabilities, said.familiarity, ~rule.answers(said))


def difference(run: Answers, export: Answers, at_step: Flags) -> float:
    """The largest of a probability or familiarity, 1 where one abstains and the other answers.

    Texts ``at_step`` are left out; NaN where that is all of them.
    """
    pairs = [
        (run.probabilities, export.probabilities),
        (run.familiarity, export.familiarity),
        (run.abstain, export.abstain),
    ]
    apart = [
        np.abs(np.asarray(a, dtype=float) - b)[~at_step] for a, b in pairs if a is not None and b is not None
    ]
    return float(np.max([each.max() for each in apart])) if not at_step.all() else float("nan")


def steps(calibrator: Calibrator | None, rule: Rule, said: Outputs) -> Flags:
    """Texts, (n,), that lie where the run's answer jumps: there rounding decides, in the run as elsewhere.

    Familiarity is a rank among dev's distances, and jumps at each. Abstention jumps at a threshold and a cut.
    """
    p = said.probabilities
    thresholds = np.broadcast_to(rule.threshold, p.shape[1])[p.argmax(axis=1)]
    found: Flags = np.abs(p.max(axis=1) - thresholds) <= ROUNDING
    if rule.score is not None:
        found |= np.abs(rule.score(said) - rule.cut) <= ROUNDING * max(1.0, abs(rule.cut))
    for part in parts_of(calibrator):
        if isinstance(part, Familiarity) and part.distances is not None:
            near, s = ROUNDING * float(part.distances.std()), part.distance(said)
            found |= np.searchsorted(part.distances, s - near) != np.searchsorted(part.distances, s + near)
    return found


def parts_of(calibrator: Calibrator | None) -> Sequence[Calibrator]:
    """A chain's parts, or the calibrator itself; none where there is none."""
    if calibrator is None:
        return ()
    return calibrator.parts if isinstance(calibrator, Chain) else (calibrator,)
