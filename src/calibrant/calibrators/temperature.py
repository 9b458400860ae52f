"""One number for all classes: how much softer, or sharper, the model should speak."""

import warnings
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
from scipy.optimize import brentq
from scipy.special import softmax

from calibrant.calibrators.base import Calibrator, Floats, Integers, Labelled
from calibrant.calibrators.foldable import Foldable
from calibrant.types import Outputs

COLDEST, HOTTEST = 0.01, 100.0


@dataclass(frozen=True)
class Temperature(Calibrator, Foldable):
    """p = softmax(z / T), with the T in [0.01, 100] that minimises the NLL on dev.

    NLL is convex in β = 1/T, so its slope

        dNLL/dβ = 1/n · Σ_i Σ_k p_ik · (z_ik − z_i[y_i])

    rises through 0 once at most, and a search for that point on log T cannot miss, run away or go negative.
    The slope's sign stays exact where the NLL itself is flat to the last digit: if every text is right, no
    term is positive. T does not change which class is largest, and so not the accuracy.

    scikit-learn has temperature scaling inside ``CalibratedClassifierCV``; it takes logits for
    probabilities if they happen to look like them, and says nothing when the optimum is out of reach.
    """

    name: ClassVar[str] = "temperature"
    citation: ClassVar[str] = "Guo et al. (2017), On Calibration of Modern Neural Networks"
    learns_by_heart: ClassVar[bool] = False  # one number cannot

    temperature: float | None = None

    def _fit(self, outputs: Outputs, y: Integers, train: Labelled | None) -> Self:
        z = outputs.logits
        above = z - z[np.arange(len(y)), y, None]  # z_ik − z_i[y_i]

        def slope(log_t: float) -> float:
            return float((softmax(z / np.exp(log_t), axis=1) * above).sum(axis=1).mean())

        low, high = np.log([COLDEST, HOTTEST])
        if slope(low) <= 0:
            return replace(
                self, temperature=_at_bound(COLDEST, "surer is always better (is none classified wrong?)")
            )
        if slope(high) >= 0:
            return replace(self, temperature=_at_bound(HOTTEST, "the model is no better than a guess"))
        return replace(self, temperature=float(np.exp(brentq(slope, low, high, xtol=1e-9))))

    def _probabilities(self, outputs: Outputs) -> Floats:
        assert self.temperature is not None
        p: Floats = softmax(outputs.logits / self.temperature, axis=1)
        return p

    def fold(self, weight: Floats, bias: Floats) -> tuple[Floats, Floats]:
        """W / T and b / T."""
        assert self.temperature is not None
        return weight / self.temperature, bias / self.temperature


def _at_bound(bound: float, why: str) -> float:
    warnings.warn(
        f"The temperature is kept at its bound {bound:g}, since on these dev texts {why}. "
        "Fit it on more or other texts, or use no calibrator.",
        stacklevel=3,
    )
    return bound
