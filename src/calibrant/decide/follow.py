"""Has text become less familiar? A question that may be asked after every batch, for as long as one likes.

The n dev texts, in the order of how familiar they are, leave n + 1 gaps. Where a new text falls says how
familiar it is. If new texts are like dev's (all are exchangeable), the gaps fill as Pólya's urn does: the
next text falls into a gap with probability (1 + texts there) / (n + 1 + texts so far), exactly, whatever the
distribution and however few the dev texts. (Conformal p-values that share one dev set are not independent;
the urn is how they hang together.) Neighbouring gaps make a group, with a_g gaps and N_g new texts, and

    E = mean over bets of  P(N | Dirichlet-multinomial(b)) / P(N | Dirichlet-multinomial(a))

is what somebody owns who began with 1 and bets, at the urn's own odds, on strays: a bet has the dev texts'
groups with a share ε of strays that crowd among the least familiar. Without drift E is a martingale, so

    P(E ever reaches 1/level) ≤ level                                   (Ville's inequality)

at all looks together. E depends on the counts alone; they are the state. How much can ever be found is
bounded by dev: what n texts cannot tell from chance is no alarm, however many the new texts.

What orders texts is familiarity and, by itself, confidence. An alarm of either counts; each has half the
level.
"""

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, logsumexp

Floats = NDArray[np.floating]
Counts = NDArray[np.integer]

SHARES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
"""The groups: the least familiar 1 % of the gaps, those up to 2 %, …"""
STRAYS = (0.05, 0.2, 0.7)
"""ε of the bets."""
CROWDING = 0.2
"""κ: of the strays u^κ fall among the least familiar u of the gaps."""
STRENGTHS = (0.3, 1.0)
"""How sure a bet is of its groups, in dev texts."""
ENOUGH = 0.5
"""Texts are too few to tell if as large a share of strays would be no alarm."""


@cache
def edges(n: int) -> tuple[int, ...]:
    """The last gap of each group, counted from 1: the last is n + 1.

    >>> edges(99)
    (1, 2, 5, 10, 20, 50, 100)
    """
    return tuple(sorted({max(1, round(share * (n + 1))) for share in SHARES}))


def place(then: Floats, now: Floats, seed: int) -> Counts:
    """Into which group of the dev texts (n,) each new text (m,) falls; larger values: more familiar.

    Equal values are put in an order by lot, which stays the same for dev and is drawn with ``seed`` for the
    new texts.

    >>> place(np.arange(1.0, 100.0), np.array([0.5, 1.5, 1.7, 60.5]), seed=0)
    array([0, 1, 1, 6])
    """
    lots_then = np.random.default_rng(0).random(len(then))
    lots_now = np.random.default_rng(seed).random(len(now))[:, None]
    order = np.lexsort((lots_then, then))
    last = order[np.array(edges(len(then))[:-1]) - 1]  # the dev text that ends each group but the last
    equal, above = now[:, None] == then[last], now[:, None] > then[last]
    return np.asarray((above | (equal & (lots_now > lots_then[last]))).sum(axis=1))


def count(groups: Counts, n: int) -> Counts:
    """How many texts fell into each group, (G,)."""
    return np.bincount(groups, minlength=len(edges(n)))


def log_evidence(counts: NDArray[np.number], n: int) -> Floats:
    """log E of the new texts in each group (…, G), of n dev texts: (…,)."""
    ends = np.array(edges(n))
    gaps = np.diff(ends, prepend=0)
    strays = np.diff((ends / (n + 1)) ** CROWDING, prepend=0.0)
    bets = [
        strength * ((1 - share) * gaps + share * (n + 1) * strays)
        for share in STRAYS
        for strength in STRENGTHS
    ]
    won = [_log_probability(counts, bet) - _log_probability(counts, gaps) for bet in bets]
    return np.asarray(logsumexp(won, axis=0) - math.log(len(won)))


def _log_probability(counts: NDArray[np.number], a: NDArray[np.number]) -> Floats:
    """Of one order of the texts, by a Dirichlet-multinomial distribution."""
    total = gammaln(a.sum()) - gammaln(a.sum() + counts.sum(axis=-1))
    return np.asarray(total + (gammaln(a + counts) - gammaln(a)).sum(axis=-1))


@dataclass(frozen=True)
class Followed:
    """What all looks together say."""

    looks: int
    texts: int
    p: float  # the chance that text like dev's would ever look as strange, at most
    unfamiliar_then: float  # the share of dev's gaps that are the least familiar, about 5 %
    unfamiliar_now: float  # the share of all new texts that fell there
    alarm_at: int | None  # the look that first raised the alarm, from 1; it is never taken back
    enough: bool  # whether ENOUGH strays among so many texts would have been an alarm


def add_up(looks: list[dict[str, Counts]], n: int, level: float) -> Followed:
    """From the counts of each look by what orders texts, and n dev texts."""
    names = list(looks[0])
    so_far = {name: np.cumsum([look[name] for look in looks], axis=0) for name in names}
    best = np.max([log_evidence(so_far[name], n) for name in names], axis=0)
    p = np.minimum(1, np.exp(math.log(len(names)) - np.maximum.accumulate(best)))
    total = so_far[names[0]][-1]
    gaps = np.diff(edges(n), prepend=0)
    mixed = ENOUGH * total.sum() * (np.arange(len(gaps)) == 0) + (1 - ENOUGH) * total.sum() * gaps / (n + 1)
    least = np.array(edges(n)) <= max(round(0.05 * (n + 1)), 1)
    return Followed(
        looks=len(looks),
        texts=int(total.sum()),
        p=float(p[-1]),
        unfamiliar_then=float(gaps[least].sum() / (n + 1)),
        unfamiliar_now=float(total[least].sum() / max(total.sum(), 1)),
        alarm_at=int(np.argmax(p <= level)) + 1 if p[-1] <= level else None,
        enough=bool(log_evidence(mixed, n) >= math.log(len(names) / level)),
    )
