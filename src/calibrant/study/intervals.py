"""How much of a row's numbers is chance: the bootstrap over texts and seeds, from what cells keep of a text.

    deviation = √(m/n) · (mean over seeds on drawn texts, centred) + √(S/(S − 1)) · (drawn seeds' mean − mean)

Every row of a dataset is measured on the same draws of texts and, where it has as many seeds, of seeds. So a
difference of two rows is paired. Of n texts m are drawn (``metrics.bootstrap``). Of S seeds S are drawn; the
root makes up for a mean that they have themselves.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import norm

from calibrant.metrics import auroc, fpr95, nbaucc, reliability
from calibrant.metrics.base import Floats, unfamiliar_among_all
from calibrant.metrics.bootstrap import DRAWS, MOST, Interval, Noise
from calibrant.metrics.bootstrap import Key as Name
from calibrant.metrics.risk_coverage import risk_by_coverage
from calibrant.study.cells import Confidences
from calibrant.types import Progress, silent

Rows = Mapping[str, Sequence[Confidences]]
"""By row, what each of its seeds said of the same texts."""


def numbers(said: Confidences) -> dict[Name, float]:
    """What can be told from what a cell keeps, by the names that ``measure`` gives it."""
    wrong = ~said.correct
    found = {
        ("", "accuracy"): float(said.correct.mean()),
        ("", "confidence"): float(said.test.mean()),
        ("", "ece"): reliability(said.test, said.correct).ece,
        ("", "nll"): float(said.nll.mean()),
        ("", "aurc"): float(risk_by_coverage(said.test, wrong).mean()),
    }
    detections = {"misclassification": (said.test, wrong)}
    if len(said.ood):
        detections["ood"] = unfamiliar_among_all(said.test, said.ood)
    for group, (confidence, positive) in detections.items():
        for name, function in (("nbaucc_0.5", nbaucc), ("auroc", auroc), ("fpr95", fpr95)):
            found[group, name] = function(confidence, positive)
    return found


@dataclass(frozen=True)
class Intervals:
    """Means over seeds, and what chance does to them."""

    rows: tuple[str, ...]
    values: dict[str, dict[Name, float]]  # by row
    noise: Noise  # rows in this order

    def of(self, row: str, name: Name) -> Interval | None:
        """95 % around a row's mean."""
        return self.noise.interval(name, self.rows.index(row), self.values[row][name])

    def difference(self, row: str, other: str, name: Name) -> tuple[float, Interval | None, float]:
        """d = row − other, its interval, and the p of there being none: 2·Φ(−|d| / s).

        s is the standard deviation over the draws. To count draws beyond 0 would take thousands of them,
        since p is to be multiplied by the number of comparisons.
        """
        i, j = self.rows.index(row), self.rows.index(other)
        d = self.values[row][name] - self.values[other][name]
        s = float(np.nanstd(self.noise.deviations[name][i] - self.noise.deviations[name][j]))
        p = float(d == 0) if s == 0 else 2 * float(norm.cdf(-abs(d) / s))
        return d, self.noise.difference(name, i, j, d), p


def intervals(
    rows: Rows, draws: int = DRAWS, most: int = MOST, seed: int = 0, progress: Progress = silent
) -> Intervals:
    """Of rows that were asked about the same texts."""
    rng = np.random.default_rng(seed)
    first = next(iter(rows.values()))[0]
    n, m = len(first.test), len(first.ood)
    share = min(1.0, most / (n + m))
    whole = {row: [numbers(said) for said in of] for row, of in rows.items()}
    names = list(next(iter(whole.values()))[0])
    drawn = {name: np.empty((len(rows), draws)) for name in names}
    for draw in range(draws):
        test = rng.integers(n, size=max(1, round(share * n)))
        ood = rng.integers(max(1, m), size=round(share * m))
        lots = rng.random(max(map(len, rows.values())))  # for the seeds; rows with as many draw the same
        for i, (row, of) in enumerate(rows.items()):
            found = [numbers(_drawn(said, test, ood)) for said in of]
            seeds = (lots[: len(of)] * len(of)).astype(int)
            for name in names:
                texts = np.sqrt(share) * np.mean([one[name] for one in found])
                drawn[name][i, draw] = texts + _of_seeds(np.array([one[name] for one in whole[row]]), seeds)
        progress("intervals", draw + 1, draws)
    deviations = {name: _centred(values) for name, values in drawn.items()}
    means = {
        row: {name: float(np.mean([one[name] for one in of])) for name in names} for row, of in whole.items()
    }
    return Intervals(tuple(rows), means, Noise(deviations))


def _drawn(said: Confidences, test: np.ndarray, ood: np.ndarray) -> Confidences:
    return Confidences(said.test[test], said.correct[test], said.ood[ood], said.nll[test])


def _of_seeds(values: Floats, seeds: np.ndarray) -> float:
    """How far the drawn seeds' mean is off; one seed tells nothing of others."""
    count = len(values)
    return 0.0 if count == 1 else float(np.sqrt(count / (count - 1)) * (values[seeds].mean() - values.mean()))


def _centred(values: Floats) -> Floats:
    with np.errstate(invalid="ignore"):
        return np.asarray(values - np.nanmean(values, axis=1, keepdims=True))
