"""How far confidence is from accuracy, and whether that could be chance."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from calibrant.errors import UserError
from calibrant.metrics import expected_calibration_error
from calibrant.metrics.ece import assign_bins, bin_gaps, total_gap
from calibrant.types import Prediction

DRAWS = 1000
LEVEL = 0.95

Direction = Literal["calibrated", "over-confident", "under-confident", "uneven"]


@dataclass(frozen=True)
class Miscalibration:
    """The gap between confidence and accuracy, and the ECE, each beside what chance would do."""

    gap: float  # mean confidence − accuracy
    interval: tuple[float, float]  # of the gap, 95 %, by the bootstrap over texts
    ece: float
    chance: float  # what the ECE of a calibrated model with these confidences stays below, in 95 % of samples

    @property
    def direction(self) -> Direction:
        """Calibrated, as far as can be told, unless the ECE is larger than chance would have it."""
        low, high = self.interval
        if self.ece <= self.chance:
            return "calibrated"
        if low > 0:
            return "over-confident"
        return "under-confident" if high < 0 else "uneven"


def miscalibration(prediction: Prediction, seed: int = 0) -> Miscalibration:
    """Measure it on labelled texts.

    The ECE is never 0 on a finite sample, however good the model. So it is compared with the ECE of samples
    in which each answer is right with exactly the probability that the model gave it (Bröcker and Smith,
    2007, Increasing the Reliability of Reliability Diagrams).
    """
    if prediction.labels is None:
        raise UserError("Miscalibration needs the true labels of the texts, got none; add a label column.")
    rng = np.random.default_rng(seed)
    c = prediction.confidence.astype(np.float64)
    gaps = c - (prediction.predicted == prediction.labels)  # (n,), whose mean is the gap
    n = len(gaps)
    resampled = [gaps[rng.integers(n, size=n)].mean() for _ in range(DRAWS)]
    low, high = np.quantile(resampled, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])

    edges, index = assign_bins(prediction.confidence)

    def ece_by_chance() -> float:
        right = rng.random(n) < c
        return float(total_gap(bin_gaps(index, c - right, len(edges) - 1)))

    return Miscalibration(
        gap=float(gaps.mean()),
        interval=(float(low), float(high)),
        ece=expected_calibration_error(prediction.probabilities, prediction.labels),
        chance=float(np.quantile([ece_by_chance() for _ in range(DRAWS)], LEVEL)),
    )
