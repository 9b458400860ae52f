"""One number for all classes: how much softer, or sharper, the model should speak."""

import warnings
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
from scipy.optimize import brentq
from scipy.special import softmax

from calibrant.calibrators.base import Calibrator, Floats, Integers, Labelled
from calibrant.calibrators.foldable import Foldable
from calibrant.calibrators.likelihood import nll_and_gradient
from calibrant.errors import UserError
from calibrant.scores.shapes import Shapes
from calibrant.types import Outputs

COLDEST, HOTTEST = 0.01, 100.0


@dataclass(frozen=True, repr=False)
class Temperature(Calibrator, Foldable):
    """p = softmax(z / T), with the T in [0.01, 100] that minimises, on dev, the cross-entropy to the targets

        q_i = (1 − ε)·onehot(y_i) + ε/K,   ε = 1/(4n + 4)

    as if, of all n texts together, a quarter of one had a label drawn at random (Platt 1999 smooths so).
    Without it a dev set in which no text is wrong asks for T → 0, and for certainty about everything; a whole
    text left 50 classes with 400 dev texts half a point less sure than was right. The cross-entropy is convex
    in β = 1/T, so its slope

        1/n · Σ_i Σ_k (p_ik − q_ik) · z_ik

    rises through 0 once at most, and a search for that point on log T cannot miss, run away or go negative.
    T does not change which class is largest, and so not the accuracy.

    scikit-learn has temperature scaling inside ``CalibratedClassifierCV``; it takes logits for
    probabilities if they happen to look like them, and says nothing when the optimum is out of reach.
    """

    name: ClassVar[str] = "temperature"
    about: ClassVar[str] = "One number that corrects confidence; labels stay."
    citation: ClassVar[str] = "Guo et al. (2017), On Calibration of Modern Neural Networks"
    learns_by_heart: ClassVar[bool] = False  # one number cannot

    shapes: ClassVar[Shapes] = {"temperature": ()}

    temperature: float | None = None

    def __post_init__(self) -> None:
        if self.temperature is not None and not self.temperature > 0:  # so that NaN fails
            raise UserError(f"`temperature` must be above 0, got {self.temperature}.")

    def _fit(self, outputs: Outputs, y: Integers, train: Labelled | None) -> Self:
        z = outputs.logits
        epsilon = 1 / (4 * len(z) + 4)
        of_target = (1 - epsilon) * z[np.arange(len(y)), y] + epsilon * z.mean(axis=1)  # Σ_k q_ik·z_ik
        above = z - of_target[:, None]

        def slope(log_t: float) -> float:
            return float((softmax(z / np.exp(log_t), axis=1) * above).sum(axis=1).mean())

        low, high = np.log([COLDEST, HOTTEST])
        if slope(low) <= 0:  # its logits are so close together that even the coldest is not too sure
            return replace(self, temperature=_at_bound(COLDEST, "surer is always better"))
        if slope(high) >= 0:
            why = "less sure is always better (is the model no better than a guess, or are its logits huge?)"
            return replace(self, temperature=_at_bound(HOTTEST, why))
        return replace(self, temperature=float(np.exp(brentq(slope, low, high, xtol=1e-9))))

    def _probabilities(self, outputs: Outputs) -> Floats:
        assert self.temperature is not None
        p: Floats = softmax(outputs.logits / self.temperature, axis=1)
        return p

    def fold(self, weight: Floats, bias: Floats) -> tuple[Floats, Floats]:
        """W / T and b / T."""
        assert self.temperature is not None
        return weight / self.temperature, bias / self.temperature


def refined_nll(logits: Floats, labels: Integers) -> float:
    """min_T NLL(softmax(z / T)): what no temperature can mend ("refinement", Berta et al. 2025)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a temperature at its bound, which nobody will use
        fitted = Temperature().fit(Outputs(logits), labels)
    assert fitted.temperature is not None
    return nll_and_gradient(logits / fitted.temperature, labels)[0]


def _at_bound(bound: float, why: str) -> float:
    warnings.warn(
        f"The temperature is kept at its bound {bound:g}, since on these dev texts {why}. "
        "Fit it on more or other texts, or use no calibrator.",
        stacklevel=3,
    )
    return bound
