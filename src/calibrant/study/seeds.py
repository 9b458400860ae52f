"""What several seeds say together, and when a difference between two methods is more than their noise."""

from collections.abc import Mapping
from math import sqrt
from statistics import fmean, stdev

from scipy.stats import t as student

Series = Mapping[int, float]
"""A number by seed."""

CONFIDENCE = 0.95
RULE = (
    "Bold: the best mean of the column, where the 95 % t intervals of its differences to every other row, "
    "paired over the seeds that both have, leave 0 out; with one seed nothing is bold."
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
    """The row with the best mean, if it is better than each of the others by more than noise; else None.

    Better by more than noise: d̄ > t_{n−1} · s_d / √n, with d the differences in the good direction.

    >>> clear_winner({"a": {0: 0.1, 1: 0.1, 2: 0.2}, "b": {0: 0.4, 1: 0.5, 2: 0.5}}, higher_is_better=False)
    'a'
    """
    if len(rows) < 2:
        return None
    sign = 1 if higher_is_better else -1
    best = max(rows, key=lambda row: sign * fmean(rows[row].values()))

    def beats(other: Series) -> bool:
        d = [sign * value for value in differences(rows[best], other)]
        n = len(d)
        return n > 1 and fmean(d) > student.ppf((1 + CONFIDENCE) / 2, n - 1) * stdev(d) / sqrt(n)

    return best if all(beats(rows[other]) for other in rows if other != best) else None
