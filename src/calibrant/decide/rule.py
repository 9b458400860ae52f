"""Answer or abstain: the rule, and how to learn one that keeps a promise.

A rule answers a text when its confidence c ≥ t and, where unfamiliar text is to be turned away by a score s,
when s < u. Two promises can be made, each with confidence 1 − δ over the draw of the texts it is learnt on:

    P(wrong | answered) ≤ risk      for text like the dev texts        (``select``)
    P(answered) ≤ rate              for text like the unfamiliar ones  (``cut``)

The empirical rate of errors promises nothing: a threshold picked because few errors lie above it in one
sample lets more through in the next. Hence a test of every threshold, and a correction for testing many.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta, binom

from calibrant.scores import Score
from calibrant.types import Needs, Outputs

Floats = NDArray[np.floating]
Flags = NDArray[np.bool_]

HIGHEST_LOG_ODDS = 12.0  # a confidence of 0.999994: over-confident models crowd up there
STEPS = 60


@dataclass(frozen=True)
class Rule:
    """Answer where c ≥ threshold and, if there is a score, s < cut."""

    threshold: float
    score: Score | None = None
    cut: float = math.inf

    @property
    def needs(self) -> Needs:
        """What ``answers`` reads beside the probabilities."""
        return frozenset() if self.score is None else self.score.needs

    def answers(self, outputs: Outputs) -> Flags:
        """(n,)."""
        confident: Flags = outputs.probabilities.max(axis=1) >= self.threshold
        if self.score is None or not len(outputs):
            return confident
        return confident & (self.score(outputs) < self.cut)


@dataclass(frozen=True)
class Selection:
    """A threshold, and what it does on the texts it was learnt on."""

    threshold: float
    answered: int
    wrong: int  # of those


def grid(classes: int) -> Floats:
    """Thresholds from the strictest to 0, (61,), the same for all data of as many classes.

    They lie evenly in log-odds, from 12 down to those of a guess, 1/K; the last is 0 and answers everything.
    """
    log_odds = np.linspace(HIGHEST_LOG_ODDS, -math.log(classes - 1), STEPS + 1)
    thresholds = 1 / (1 + np.exp(-log_odds))
    thresholds[-1] = 0
    return np.asarray(thresholds)


def select(confidence: Floats, wrong: Flags, risk: float, level: float, classes: int) -> Selection | None:
    """The laxest threshold of the grid for which P(wrong | answered) ≤ risk can be promised.

    Learn then Test (Angelopoulos et al. 2021). H_t: "of the texts with c ≥ t more than ``risk`` are wrong"
    has the exact p-value

        p_t = P(Bin(answered_t, risk) ≤ wrong_t)

    which is at most δ' just where the Clopper–Pearson bound of level 1 − δ' is at most ``risk``. To test the
    grid from strict to lax with all of δ = 1 − level, up to the first H_t that is not rejected, would end at
    once: the strictest thresholds answer too few texts to prove anything. So each of the 61 starts with an
    equal share of δ, and what a rejected H_t was tested with passes on to the next:

        δ_t = δ/61 + δ_{t−1} if H_{t−1} was rejected, δ/61 otherwise

    (the fallback procedure, Wiens 2003). The chance that any true H_t is rejected is then at most δ, however
    the p-values hang together, and whether or not risk falls with confidence.

    Args:
        confidence: (n,) of the dev texts that may be answered.
        wrong: (n,) bool.
        risk: in (0, 1).
        level: 1 − δ, how sure the promise is.
        classes: K.

    Returns:
        None where no threshold can be shown to keep the promise.

    >>> select(np.full(400, 0.9), np.zeros(400, dtype=bool), risk=0.02, level=0.95, classes=3)
    Selection(threshold=0.0, answered=400, wrong=0)
    >>> select(np.full(100, 0.9), np.zeros(100, dtype=bool), risk=0.02, level=0.95, classes=3)
    """
    selections = _selections(confidence, wrong, classes)
    p = binom.cdf([s.wrong for s in selections], [s.answered for s in selections], risk)
    found, passed_on = None, 0.0
    for selection, p_t in zip(selections, p, strict=True):
        delta_t = (1 - level) / len(selections) + passed_on
        rejected = p_t <= delta_t
        passed_on = delta_t if rejected else 0.0
        found = selection if rejected else found
    return found


def smallest_risk(confidence: Floats, wrong: Flags, level: float, classes: int) -> tuple[float, Selection]:
    """The smallest risk that ``select`` could promise, and the threshold that proves it.

    The bounds of all thresholds hold together with confidence ``level``, so the smallest may be picked.
    """
    selections = _selections(confidence, wrong, classes)
    each = 1 - (1 - level) / len(selections)
    bounds = [risk_bound(selection.wrong, selection.answered, each) for selection in selections]
    best = int(np.argmin(bounds))
    return bounds[best], selections[best]


def naive_selection(confidence: Floats, wrong: Flags, risk: float, classes: int) -> Selection | None:
    """The laxest threshold of the grid whose error rate here is at most ``risk``; it promises nothing."""
    kept = [s for s in _selections(confidence, wrong, classes) if s.answered and s.wrong <= risk * s.answered]
    return kept[-1] if kept else None


def risk_bound(wrong: int, answered: int, level: float) -> float:
    """Clopper and Pearson's upper bound on P(wrong): the r with P(Bin(answered, r) ≤ wrong) = 1 − level.

    >>> round(risk_bound(0, 149, 0.95), 4)
    0.0199
    """
    return 1.0 if wrong == answered else float(beta.ppf(level, wrong + 1, answered - wrong))


def cut(scores: Floats, rate: float, level: float) -> float | None:
    """The largest u for which P(s < u) ≤ rate can be promised for unfamiliar text, from its scores (m,).

    u is the j-th smallest score, with the largest j for which P(Bin(m, rate) ≤ j − 1) ≤ 1 − level. How much
    of a distribution lies below its j-th smallest draw does not depend on the distribution, so that there is
    nothing to correct for.

    >>> cut(np.arange(59.0), rate=0.05, level=0.95), cut(np.arange(58.0), rate=0.05, level=0.95)
    (0.0, None)
    """
    j = int(np.count_nonzero(binom.cdf(np.arange(len(scores)), len(scores), rate) <= 1 - level))
    return float(np.sort(scores)[j - 1]) if j else None


def _selections(confidence: Floats, wrong: Flags, classes: int) -> list[Selection]:
    """What each threshold of the grid does."""
    thresholds = grid(classes)
    answered, mistaken = (
        len(c) - np.searchsorted(np.sort(c), thresholds) for c in (confidence, confidence[wrong])
    )
    return list(map(Selection, thresholds.tolist(), answered.tolist(), mistaken.tolist()))
