"""The threshold that answers most while P(wrong | answered) ≤ risk is promised, with confidence 1 − δ.

The empirical rate of errors promises nothing: a threshold picked because few errors lie above it in one
sample lets more through in the next. Hence a test of each threshold, and a correction for testing many (Learn
then Test, Angelopoulos et al. 2021). H_t: "of the texts with c ≥ t more than ``risk`` are wrong" has the
exact p-value

    p_t = P(Bin(answered_t, risk) ≤ wrong_t)

which is at most δ' just where the Clopper–Pearson bound of level 1 − δ' is at most ``risk``. Thresholds are
tested from strict to lax. Each starts with a share w_t of δ, and what a rejected H_t was tested with passes
on to the next:

    δ_t = w_t·δ + δ_{t−1} if H_{t−1} was rejected, w_t·δ otherwise          (fallback procedure, Wiens 2003)

The chance that any true H_t is rejected is then at most δ, however the p-values hang together, and whether or
not risk falls with confidence.

Which thresholds, and which shares, is free as long as it does not depend on the texts of the test. A *pilot*
tells it: labelled texts that are none of these. It decides what is gained, never whether the promise holds.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import betabinom, binom

Floats = NDArray[np.floating]
Flags = NDArray[np.bool_]
Counts = NDArray[np.integer]

STEPS = 40
"""Thresholds are the pilot's quantiles: each next one answers a fortieth of its texts more."""
FIRST = 0.8
"""The share of δ for the threshold that is likeliest to pass. Chosen by simulation: results/promises."""
PRIOR = 4
"""What is believed before the pilot: as if so many texts had been wrong at just the risk that is allowed."""


@dataclass(frozen=True, eq=False)
class Sample:
    """Confidences of n texts, and whether each answer is wrong."""

    confidence: Floats  # (n,)
    wrong: Flags  # (n,)

    def __len__(self) -> int:
        return len(self.wrong)

    def __getitem__(self, index: NDArray[Any] | slice) -> "Sample":
        return Sample(self.confidence[index], self.wrong[index])

    def above(self, thresholds: Floats) -> tuple[Counts, Counts]:
        """How many each threshold answers, and how many of these are wrong."""
        of_all, of_wrong = np.sort(self.confidence), np.sort(self.confidence[self.wrong])
        return tuple(len(c) - np.searchsorted(c, thresholds) for c in (of_all, of_wrong))  # type: ignore[return-value]


@dataclass(frozen=True)
class Selection:
    """A threshold, and what it does on the texts it was learnt on."""

    threshold: float
    answered: int
    wrong: int  # of those


@dataclass(frozen=True, eq=False)
class Plan:
    """What is tested: thresholds from the strictest to the laxest, and their shares of δ, which sum to 1."""

    thresholds: Floats
    shares: Floats


def make_plan(pilot: Sample, n: int, risk: float, level: float) -> Plan:
    """Where a pilot says that n texts can prove something.

    The threshold that is likeliest to pass gets most of δ, and passes it on to laxer ones. The rest is shared
    in proportion to the chance of each and to what it answers, for where the guess was wrong.
    """
    quantiles = np.quantile(pilot.confidence, np.arange(STEPS) / STEPS, method="lower")
    thresholds = np.unique(np.append(quantiles[1:], 0.0))[::-1]  # the laxest answers all
    answered, wrong = pilot.above(thresholds)
    chance = chance_to_pass(wrong, answered, np.round(n * answered / len(pilot)).astype(int), risk, level)
    gain = chance * answered
    if not gain.sum():  # no threshold could prove anything
        return Plan(thresholds, np.full(len(thresholds), 1 / len(thresholds)))
    shares = (1 - FIRST) * gain / gain.sum()
    shares[np.argmax(chance)] += FIRST
    return Plan(thresholds, shares)


def chance_to_pass(wrong: Counts, answered: Counts, trials: Counts, risk: float, level: float) -> Floats:
    """How likely so many ``trials`` are to prove the risk, after a pilot with so many wrong of the answered.

    The rate of errors has a Beta prior, so the errors among the trials are Beta-binomial.

    >>> chance_to_pass(np.array([0]), np.array([50]), np.array([58]), 0.05, 0.95)  # 0.95^58 > 0.05
    array([0.])
    """
    allowed = binom.ppf(1 - level, trials, risk)  # errors: the most with a p-value of at most δ
    allowed -= binom.cdf(allowed, trials, risk) > 1 - level
    can, chance = allowed >= 0, np.zeros(len(trials))
    a, b = wrong + PRIOR * risk, answered - wrong + PRIOR * (1 - risk)
    chance[can] = betabinom.cdf(allowed[can], trials[can], a[can], b[can])
    return chance


def select(sample: Sample, plan: Plan, risk: float, level: float) -> Selection | None:
    """The laxest threshold of the plan for which the promise can be made; None where there is none.

    >>> plan = Plan(np.array([0.8, 0.0]), np.array([0.5, 0.5]))
    >>> nothing_wrong = Sample(np.full(400, 0.9), np.zeros(400, dtype=bool))
    >>> select(nothing_wrong, plan, risk=0.02, level=0.95)
    Selection(threshold=0.0, answered=400, wrong=0)
    >>> select(nothing_wrong[:100], plan, risk=0.02, level=0.95)
    """
    answered, wrong = sample.above(plan.thresholds)
    p = binom.cdf(wrong, answered, risk)
    found, passed_on = None, 0.0
    for t, share in enumerate(plan.shares):
        delta_t = share * (1 - level) + passed_on
        passed_on = delta_t if p[t] <= delta_t else 0.0
        if passed_on:
            found = t
    if found is None:
        return None
    return Selection(float(plan.thresholds[found]), int(answered[found]), int(wrong[found]))


def naive_selection(sample: Sample, plan: Plan, risk: float) -> Selection | None:
    """The laxest threshold whose error rate here is at most ``risk``; it promises nothing."""
    answered, wrong = sample.above(plan.thresholds)
    kept = np.flatnonzero((answered > 0) & (wrong <= risk * answered))
    if not len(kept):
        return None
    t = kept[-1]
    return Selection(float(plan.thresholds[t]), int(answered[t]), int(wrong[t]))


def smallest_risk(pilot: Sample, sample: Sample, risk: float, level: float) -> tuple[float, Selection] | None:
    """The smallest risk above ``risk`` that could be promised, in steps of 1 % and to three digits."""
    while (risk := np.ceil(max(risk * 1010, risk * 1000 + 1) - 1e-9) / 1000) < 1:
        found = select(sample, make_plan(pilot, len(sample), risk, level), risk, level)
        if found is not None:
            return float(risk), found
    return None
