"""What several seeds say together, and when a difference between two methods is more than their noise."""

from collections.abc import Mapping
from math import sqrt
from statistics import fmean, stdev

from scipy.stats import t as student

Series = Mapping[int, float]
"""A number by seed."""

CONFIDENCE = 0.95
RULE = (
    "Bold: the best mean of the column, where the 95 % t interval of its difference to the second best, "
    "paired over the seeds that both have, leaves 0 out; with one seed nothing is bold."
)


def differences(first: Series, second: Series) -> list[float]:
    """first − second for each seed that both have."""
    return [first[seed] - second[seed] for seed in sorted(first.keys() & second.keys())]


def mean_and_std(series: Series) -> tuple[float, float | None]:
    """The mean, and the standard deviation of a sample (n − 1), which one seed does not have.

    >>> mean_and_std({0: 0.25, 1: 0.75})
    (0.5, 0.3535533905932738)
    """
    values = list(series.values())
    return fmean(values), stdev(values) if len(values) > 1 else None


def clear_winner(rows: Mapping[str, Series], higher_is_better: bool) -> str | None:
    """The row with the best mean, if |d̄| > t_{n−1} · s_d / √n against the second best; else None.

    >>> clear_winner({"a": {0: 0.1, 1: 0.1, 2: 0.2}, "b": {0: 0.4, 1: 0.5, 2: 0.5}}, higher_is_better=False)
    'a'
    """
    ordered = sorted(rows, key=lambda row: fmean(rows[row].values()), reverse=higher_is_better)
    if len(ordered) < 2:
        return None
    best, second = ordered[:2]
    d = differences(rows[best], rows[second])
    n = len(d)
    if n < 2:
        return None
    margin = student.ppf((1 + CONFIDENCE) / 2, n - 1) * stdev(d) / sqrt(n)
    return best if abs(fmean(d)) > margin else None
