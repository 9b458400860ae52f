"""How much of a number is chance: the bootstrap over texts, with the same draws for every model.

Texts are drawn with replacement and everything is measured again. Models are measured on the same draws, so
that a difference between two of them is paired: a hard text that is drawn twice is hard for both.

- The ECE of a resample is larger than that of the sample, since noise only adds to it. So an interval is what
  was measured plus the deviations of the draws from their own mean.
- Of n texts at most ``MOST`` are drawn at a time, and the deviations are shrunk by the root of that share (m
  out of n, Bickel et al. 1997): a large test set takes no longer than one of 5,000 texts.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.metrics.base import Floats
from calibrant.metrics.ece import Reliability
from calibrant.metrics.measure import measure
from calibrant.types import Prediction, Progress

DRAWS = 300
MOST = 5000
LEVEL = 0.95

Interval = tuple[float, float]
Key = tuple[str, str]
"""Where a number lies in what ``measure`` returns: its group ("" for none) and its name."""


@dataclass(frozen=True)
class Noise:
    """What chance does to every number of several models."""

    deviations: Mapping[Key, Floats]  # (models, draws); NaN where a draw left the number undefined

    def interval(self, key: Key, model: int, value: float) -> Interval | None:
        """95 % around the value that was measured; None where no draw had one."""
        low_high = _quantiles(self.deviations[key][model])
        return None if low_high is None else (max(0.0, value + low_high[0]), value + low_high[1])

    def difference(self, key: Key, model: int, other: int, difference: float) -> Interval | None:
        """The same of a difference between two models."""
        deviations = self.deviations[key]
        low_high = _quantiles(deviations[model] - deviations[other])
        return None if low_high is None else (difference + low_high[0], difference + low_high[1])


def noise(
    tests: Sequence[Prediction],
    oods: Sequence[Prediction | None],
    *,
    draws: int = DRAWS,
    most: int = MOST,
    seed: int = 0,
    progress: Progress | None = None,
) -> Noise:
    """Of models that were asked about the same texts.

    Args:
        tests: of each model its answers on familiar text, with labels.
        oods: of each its answers on unfamiliar text, where it was asked.
        draws, most, seed: of the bootstrap.
        progress: told of each draw.
    """
    rng = np.random.default_rng(seed)
    n, m = len(tests[0]), max((len(ood) for ood in oods if ood is not None), default=0)
    share = min(1.0, most / (n + m))
    found: dict[Key, list[list[float]]] = {}  # by draw, by model
    for draw in range(draws):
        chosen = rng.integers(n, size=max(1, round(share * n)))
        strange = rng.integers(max(1, m), size=max(1, round(share * m)))
        measured = [
            flat(measure(test[chosen], None if ood is None else ood[strange]))
            for test, ood in zip(tests, oods, strict=True)
        ]
        for key in {key: None for one in measured for key in one}:
            found.setdefault(key, []).append([one.get(key, math.nan) for one in measured])
        if progress is not None:
            progress("intervals", draw + 1, draws)
    return Noise({key: math.sqrt(share) * _centred(np.array(values).T) for key, values in found.items()})


def flat(measured: Mapping[str, Any]) -> dict[Key, float]:
    """The numbers of ``measure``, each by its group and name; undefined ones are NaN."""
    numbers: dict[Key, float] = {}
    for name, value in measured.items():
        inner = value if isinstance(value, Mapping) else {name: value}
        group = name if isinstance(value, Mapping) else ""
        numbers |= {(group, key): math.nan if v is None else float(v) for key, v in inner.items()}
    return numbers


def accuracy_bands(found: Reliability, *, draws: int = 1000, seed: int = 0) -> tuple[Floats, Floats]:
    """Low and high end of a 95 % interval of each bin's accuracy, (bins,) each; NaN in an empty bin.

    A bin's accuracy depends only on how many of its texts are right and wrong. So the counts are drawn, from
    the multinomial that resampling the texts amounts to.

    >>> from calibrant.metrics import reliability
    >>> low, high = accuracy_bands(reliability([0.9] * 100, [True] * 90 + [False] * 10, bins=1))
    >>> bool(0.8 < low[0] < 0.9 < high[0] < 1)
    True
    """
    n, bins = int(found.count.sum()), len(found.count)
    right = np.round(np.nan_to_num(found.accuracy * found.count))
    cells = np.concatenate([right, found.count - right])
    drawn = np.random.default_rng(seed).multinomial(n, cells / n, size=draws)
    count = drawn[:, :bins] + drawn[:, bins:]
    accuracy = np.where(count > 0, drawn[:, :bins] / np.maximum(count, 1), np.nan)
    low, high = np.full(bins, np.nan), np.full(bins, np.nan)
    filled = found.count > 0
    low[filled], high[filled] = np.nanquantile(accuracy[:, filled], _TAILS, axis=0)
    return low, high


_TAILS = [(1 - LEVEL) / 2, (1 + LEVEL) / 2]


def _centred(values: Floats) -> Floats:
    """Deviations of each row from its mean; a row without a number stays so."""
    defined = np.isfinite(values)
    mean = np.where(defined, values, 0).sum(axis=1) / np.maximum(defined.sum(axis=1), 1)
    return np.asarray(values - mean[:, None])


def _quantiles(deviations: Floats) -> Interval | None:
    defined = deviations[np.isfinite(deviations)]
    if not len(defined):
        return None
    low, high = np.quantile(defined, _TAILS)
    return float(low), float(high)
