"""Has the text moved since dev? n dev texts *then*, m new texts *now*; c is a confidence, r = right − c.

Three questions, each answered by a distance that has a meaning and the p-value of "not moved at all":

    are texts as familiar?        D = sup_t |F_now(t) − F_then(t)|, over the distributions of the confidence
    does confidence still hold?   Δ = mean r_now − mean r_then                      (needs labels)
    is more turned away?          A = share abstained now − then                    (where a score decides)

D is the share of texts that changed sides at the threshold where most did; Δ is the share of answers that
are right more (or, below 0, less) often than confidence and dev make one expect; A sees what D cannot, for a
score turns texts away whatever their confidence. An alarm needs both: a p below the level, for a small file
strays by chance, and a distance above the tolerance, for no two weeks of text are alike, dev itself chose
what was kept of training, and in a large file p finds every trifle.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import kolmogi, kolmogorov, ndtri

from calibrant.metrics.ece import assign_bins, bin_gaps, total_gap

Floats = NDArray[np.floating]
Flags = NDArray[np.bool_]
Counts = NDArray[np.integer]

RESAMPLES = 1000


@dataclass(frozen=True)
class Interval:
    """An estimate and its bounds, which hold the truth with probability 1 − level."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Shift:
    """How far something moved, and the p-value of "not at all"."""

    distance: float
    p: float

    def beyond(self, tolerance: float, level: float) -> bool:
        """Whether it is worth an alarm."""
        return abs(self.distance) > tolerance and self.p < level


@dataclass(frozen=True, eq=False)
class Seen:
    """All that is asked of the confidences of m new texts. What is seen of several parts adds up."""

    m: int
    total: float  # the sum of the confidences
    fallen: Counts  # (2n + 1,) how many fell below the least of dev's, upon it, between it and the next, …

    @property
    def mean(self) -> float:
        """Of the confidences."""
        return self.total / self.m


def look(then: Floats, now: Floats) -> Seen:
    """At new confidences (m,) beside those of dev (n,).

    >>> look(np.array([0.8, 0.9]), np.array([0.3, 0.9])).fallen
    array([1, 0, 0, 1, 0])
    """
    ordered = np.sort(then)
    left, right = (np.searchsorted(ordered, now, side=side) for side in ("left", "right"))
    return Seen(len(now), math.fsum(now), np.bincount(left + right, minlength=2 * len(then) + 1))


def confidence_shift(then: Floats, now: Seen) -> Shift:
    """D = sup_t |F_now(t) − F_then(t)| of confidences (n,) and m new ones, and p = Q(√(n·m/(n + m)) · D).

    Q is the tail of Kolmogorov's distribution: the two-sample test of Kolmogorov and Smirnov. Between two dev
    confidences F_then is constant and F_now grows, so that D is found at a dev confidence or just below one.

    >>> then = np.array([0.8, 0.9])
    >>> confidence_shift(then, look(then, np.array([0.3, 0.9]))).distance
    0.5
    """
    n, m, ordered = len(then), now.m, np.sort(then)
    left, right = (np.searchsorted(ordered, ordered, side=side) for side in ("left", "right"))
    up_to = np.cumsum(now.fallen) / m
    distances = np.abs([up_to[2 * left] - left / n, up_to[left + right] - right / n])
    distance = float(distances.max())
    return Shift(distance, float(kolmogorov(math.sqrt(n * m / (n + m)) * distance)))


def seen_from(n: int, m: int, level: float) -> float:
    """The smallest D with a p below the level, of n and m confidences; above 1 where there is none.

    >>> round(seen_from(160, 500, 0.01), 2), seen_from(160, 3, 0.01) > 0.9
    (0.15, True)
    """
    return float(kolmogi(level) * math.sqrt(1 / n + 1 / m))


def expected_accuracy(then: Floats, right: Flags, now: Seen, level: float) -> Interval:
    """How many of the m new texts are answered right, from confidences (n,), right (n,) and what was seen.

    a = mean c_now + mean r_then ± z·√(a(1 − a)/m + var(r_then)/n), z = the normal's 1 − level/2 quantile:
    what confidence says, mended by its gap on dev; the m answers stray about it, and the gap is known from n
    texts only. To both variances one error more than was seen is added, since a dev set without errors does
    not prove that there are none. Right as long as the gap is dev's: not on unfamiliar text.
    """
    residual = right - then
    a = float(np.clip(now.mean + residual.mean(), 0, 1))
    half = float(ndtri(1 - level / 2)) * _standard_error(a, now.m, residual)
    return Interval(a, max(0.0, a - half), min(1.0, a + half))


def gap_shift(then: Floats, then_right: Flags, now: Floats, now_right: Flags) -> Shift:
    """Δ = mean r_now − mean r_then, and p = 2·Φ(−|Δ| / √(a(1 − a)/m + var(r_then)/n)).

    The same Δ and the same error as in ``expected_accuracy``: p < level where the accuracy is outside.
    """
    residual = then_right - then
    delta = float((now_right - now).mean() - residual.mean())
    a = float(np.clip(now.mean() + residual.mean(), 0, 1))
    return Shift(delta, math.erfc(abs(delta) / _standard_error(a, len(now), residual) / math.sqrt(2)))


def abstention_shift(then: int, n: int, now: int, m: int) -> Shift:
    """A = now/m − then/n, of the texts turned away, and the p of Fisher's exact test that the shares are one.

    >>> abstention_shift(then=25, n=100, now=50, m=100).distance
    0.25
    """
    from scipy.stats import fisher_exact  # here, since `predict` reads this file and does without

    return Shift(now / m - then / n, float(fisher_exact([[then, n - then], [now, m - now]]).pvalue))


def _standard_error(accuracy: float, m: int, residual: Floats) -> float:
    n = len(residual)
    now = (m * accuracy * (1 - accuracy) + 1) / m**2
    then = (n * float(residual.var()) + 1) / n**2
    return math.sqrt(now + then)


def share(k: int, n: int, level: float) -> Interval:
    """k of n, with the bounds of Clopper and Pearson."""
    from scipy.stats import binomtest

    bounds = binomtest(k, n).proportion_ci(confidence_level=1 - level, method="exact")
    return Interval(k / n, float(bounds.low), float(bounds.high))


def calibration_error(confidence: Floats, right: Flags, level: float) -> Interval:
    """ECE = 1/n · Σ_b |S_b|, S_b = Σ r_i over the texts of bin b, with bounds from resampled texts (S*).

    ECE is never below 0 and chance makes it larger, so that the usual bootstrap bounds miss the truth on one
    side. Upper bound: a quantile of Σ_b |S*_b| / n, which is too large rather than too small. Lower bound:
    ECE less a quantile of Σ_b |S*_b − S_b| / n, which no ECE can stray farther than.
    """
    edges, bins = assign_bins(confidence)
    r, n, rng = right - confidence, len(right), np.random.default_rng(0)

    def sums(chosen: NDArray[np.integer]) -> Floats:
        return bin_gaps(bins[chosen], r[chosen], len(edges) - 1)

    s = sums(np.arange(n))
    resampled = np.stack([sums(rng.integers(n, size=n)) for _ in range(RESAMPLES)])
    ece = float(total_gap(s))
    stray = float(np.quantile(total_gap(resampled - s), 1 - level / 2))
    high = float(np.quantile(total_gap(resampled), 1 - level / 2))
    return Interval(ece, max(0.0, ece - stray), max(ece, high))
