"""Is one method better than the others by more than chance? Wilcoxon's signed-rank test, paired over seeds.

With n seeds the smallest two-sided p is 2/2ⁿ: five seeds, the paper's number, cannot go below 0.0625, and
Holm's correction for m comparisons asks for m times less. Where a level cannot be reached, that is said.

Pairs of several datasets are not pooled: figures of different datasets differ in scale, so that the ranks
would weigh one dataset more than another, and the sum would say little about any of them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, log2
from statistics import fmean
from typing import Literal

import numpy as np
from scipy.stats import rankdata

from calibrant.errors import UserError
from calibrant.registry import pick
from calibrant.study.cells import Cell
from calibrant.study.measures import measures
from calibrant.study.provenance import sharing_members
from calibrant.study.rows import ROWS
from calibrant.study.seeds import Series, differences

Verdict = Literal["better", "worse", "not shown", "out of reach"]


@dataclass(frozen=True)
class SignedRank:
    """What the ranks of the differences say."""

    p: float  # two-sided, exact
    effect: float  # matched-pairs rank-biserial correlation, in [−1, 1]
    zeros: int  # differences of exactly 0, which have no sign and are left out


@dataclass(frozen=True)
class Comparison:
    """A method against another one, on one dataset."""

    dataset: str
    other: str
    seeds: int
    zeros: int
    difference: float  # mean of method − other
    effect: float  # 1: better with every seed, −1: worse with every seed
    p: float
    p_holm: float
    p_least: float  # the smallest p_holm that so many seeds and comparisons can give
    verdict: Verdict


def signed_rank(values: Sequence[float]) -> SignedRank:
    """The exact test of differences d that are symmetric about 0 if there is nothing to find.

    W⁺ = Σ rank|d| over d > 0, and r = (W⁺ − W⁻) / (W⁺ + W⁻). Equal |d| share their mean rank. The
    distribution of W⁺ over all 2ⁿ signs is Π (1 + x^rank): exact with ties too, where tables are not.

    >>> signed_rank([0.1, 0.2, 0.3, 0.4, 0.5]).p
    0.0625
    """
    d = np.round(values, 12)  # differences of accuracies that are equal, but for their last bits, are ties
    d = d[d != 0]
    zeros = len(values) - len(d)
    if not len(d):
        return SignedRank(p=1.0, effect=0.0, zeros=zeros)
    doubled = np.round(2 * rankdata(np.abs(d))).astype(int)  # mean ranks are halves; doubled, integers
    plus, total = int(doubled[d > 0].sum()), int(doubled.sum())
    ways = np.zeros(total + 1)
    ways[0] = 1
    for rank in doubled:
        ways[rank:] = ways[rank:] + ways[:-rank]
    ways /= 2 ** len(d)
    tail = min(ways[: plus + 1].sum(), ways[plus:].sum())
    return SignedRank(min(1.0, 2 * float(tail)), (2 * plus - total) / total, zeros)


def holm(p: Sequence[float]) -> list[float]:
    """Holm's step-down: the k-th smallest of m times (m − k + 1), never below the one before, at most 1.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    adjusted, running = [0.0] * len(p), 0.0
    for k, i in enumerate(sorted(range(len(p)), key=p.__getitem__)):
        running = max(running, min(1.0, (len(p) - k) * p[i]))
        adjusted[i] = running
    return adjusted


def left_out(cells: Sequence[Cell]) -> list[str]:
    """A sentence for each method that is not compared, since its seeds are not independent."""
    return [
        f"{method} is left out: ensembles of neighbouring seeds share members and are not independent."
        for method in dict.fromkeys(cell.key.method for cell in sharing_members(cells))
    ]


def compare(
    cells: Sequence[Cell], metric: str = "ece", method: str = "manifold-smoothing", level: float = 0.05
) -> list[Comparison]:
    """``method`` against every other one that shares seeds with it, corrected within each dataset.

    Seeds must be independent: ensembles that share members are left out.
    """
    if not 0 < level < 1:
        raise UserError(f"--level must lie between 0 and 1, got {level}.")
    measure = pick("metric", metric, measures())
    pick("method", method, ROWS)
    sign = 1 if measure.higher_is_better else -1
    sharing = {cell.key for cell in sharing_members(cells)}
    if any(key.method == method for key in sharing):
        raise UserError(
            f"{method} of neighbouring seeds share members, and seeds that are not independent show nothing; "
            "name another with --method."
        )
    found: dict[str, dict[str, dict[int, float]]] = {}
    for cell in cells:
        value = measure.of(cell)
        if not cell.key.variant and value is not None and cell.key not in sharing:
            found.setdefault(cell.key.dataset, {}).setdefault(cell.key.method, {})[cell.key.seed] = value
    if not any(method in by_method for by_method in found.values()):
        raise UserError(
            f"{metric} of {method} has not been measured in this study; "
            f"run it with `calibrant study run --methods {method}`, or name another with --method."
        )
    return [
        comparison
        for dataset, by_method in found.items()
        if method in by_method
        for comparison in _within(dataset, by_method, method, sign, level)
    ]


def _within(
    dataset: str, found: Mapping[str, Series], method: str, sign: int, level: float
) -> list[Comparison]:
    others = [
        other for other, row in ROWS.items() if other in found and other != method and row.instead is None
    ]
    pairs = {other: d for other in others if (d := differences(found[method], found[other]))}
    tests = {other: signed_rank([sign * value for value in d]) for other, d in pairs.items()}
    adjusted = holm([test.p for test in tests.values()])
    # Whichever p is smallest is taken m times, and no other may end below that.
    first = len(pairs) * min((_least(len(d)) for d in pairs.values()), default=1.0)
    rows = []
    for (other, d), test, p_holm in zip(pairs.items(), tests.values(), adjusted, strict=True):
        least = min(1.0, max(first, _least(len(d))))
        verdict: Verdict = "out of reach" if least > level else "not shown"
        if p_holm <= level:
            verdict = "better" if test.effect > 0 else "worse"
        rows.append(
            Comparison(
                dataset, other, len(d), test.zeros, fmean(d), test.effect, test.p, p_holm, least, verdict
            )
        )
    return rows


def remarks(comparisons: Sequence[Comparison], level: float) -> list[str]:
    """What a reader must know beside the numbers."""
    said = [
        "Wilcoxon signed-rank, exact and two-sided, paired over seeds; Holm's correction within a dataset. "
        "Effect: matched-pairs rank-biserial, 1 where it is better with every seed."
    ]
    zeros = sum(comparison.zeros for comparison in comparisons)
    if zeros:
        said.append(f"{zeros} differences are exactly 0 and were left out, as Wilcoxon did.")
    for dataset in dict.fromkeys(c.dataset for c in comparisons if c.verdict == "out of reach"):
        here = [c for c in comparisons if c.dataset == dataset]
        short = [c for c in here if c.verdict == "out of reach"]
        which = "" if len(short) == len(here) else f" ({', '.join(c.other for c in short)})"
        needed = ceil(log2(2 * len(here) / level))
        said.append(
            f"{dataset}{which}: {_span([c.seeds for c in short])} cannot show a difference at level "
            f"{level:g} in {len(here)} comparisons, whatever they measure "
            f"(p ≥ {min(c.p_least for c in short):.2g} after correction); {needed} seeds can."
        )
    return said


def _least(seeds: int) -> float:
    return float(2 / 2**seeds)


def _span(seeds: Sequence[int]) -> str:
    low, high = min(seeds), max(seeds)
    return f"{low} seed{'s' if low > 1 else ''}" if low == high else f"{low} to {high} seeds"
