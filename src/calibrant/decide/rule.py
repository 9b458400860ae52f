"""Answer or abstain: the rule, and the cut that turns unfamiliar text away.

A rule answers a text when its confidence c ≥ t and, where unfamiliar text is to be turned away by a score s,
when s < u. Two promises can be made, each with confidence 1 − δ over the draw of the texts it is learnt on:

    P(wrong | answered) ≤ risk      for text like the dev texts        (``decide/risk.py``)
    P(answered) ≤ rate              for text like the unfamiliar ones  (``cut``)
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibrant.scores import Score
from calibrant.types import Needs, Outputs

Floats = NDArray[np.floating]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Rule:
    """Answer where c ≥ threshold and, if there is a score, s < cut."""

    threshold: float | Floats  # or (K,): that of each class that may be answered, ∞ for never
    score: Score | None = None
    cut: float = math.inf

    @property
    def needs(self) -> Needs:
        """What ``answers`` reads beside the probabilities."""
        return frozenset() if self.score is None else self.score.needs

    def answers(self, outputs: Outputs) -> Flags:
        """(n,)."""
        p = outputs.probabilities
        thresholds = np.broadcast_to(self.threshold, p.shape[1])
        confident: Flags = p.max(axis=1) >= thresholds[p.argmax(axis=1)]
        if self.score is None or not len(outputs):
            return confident
        return confident & (self.score(outputs) < self.cut)


def cut(scores: Floats, rate: float, level: float) -> float | None:
    """The largest u for which P(s < u) ≤ rate can be promised for unfamiliar text, from its scores (m,).

    u is the j-th smallest score, with the largest j for which P(Bin(m, rate) ≤ j − 1) ≤ 1 − level. How much
    of a distribution lies below its j-th smallest draw does not depend on the distribution, so that there is
    nothing to correct for.

    >>> cut(np.arange(59.0), rate=0.05, level=0.95), cut(np.arange(58.0), rate=0.05, level=0.95)
    (0.0, None)
    """
    from scipy.stats import binom  # half a second, and a run's answers do without it

    j = int(np.count_nonzero(binom.cdf(np.arange(len(scores)), len(scores), rate) <= 1 - level))
    return float(np.sort(scores)[j - 1]) if j else None
