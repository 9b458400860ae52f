"""A scale and an offset for each class."""

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
from scipy.special import softmax

from calibrant.calibrators.base import Calibrator, Floats, Integers, Labelled
from calibrant.calibrators.foldable import Foldable
from calibrant.calibrators.likelihood import minimise, nll_and_gradient
from calibrant.scores.shapes import Shapes
from calibrant.types import Outputs


@dataclass(frozen=True, repr=False)
class VectorScaling(Calibrator, Foldable):
    """p = softmax(w ∘ z + b), with the w and b (K each) that minimise the NLL on dev."""

    name: ClassVar[str] = "vector-scaling"
    about: ClassVar[str] = "Two numbers for each class; a label may change."
    citation: ClassVar[str] = "Guo et al. (2017), On Calibration of Modern Neural Networks"

    shapes: ClassVar[Shapes] = {"w": ("K",), "b": ("K",)}

    w: list[float] | None = None
    b: list[float] | None = None

    def _fit(self, outputs: Outputs, y: Integers, train: Labelled | None) -> Self:
        z = outputs.logits
        classes = z.shape[1]

        def loss(parameters: Floats) -> tuple[float, Floats]:
            w, b = np.split(parameters, 2)
            nll, by_logits = nll_and_gradient(w * z + b, y)
            return nll, np.concatenate([(by_logits * z).sum(axis=0), by_logits.sum(axis=0)])

        curvature = np.repeat([(z**2).mean(), 1.0], classes) / classes
        w, b = np.split(minimise(loss, np.repeat([1.0, 0.0], classes), curvature), 2)
        return replace(self, w=w.tolist(), b=b.tolist())

    def _probabilities(self, outputs: Outputs) -> Floats:
        p: Floats = softmax(np.asarray(self.w) * outputs.logits + np.asarray(self.b), axis=1)
        return p

    def fold(self, weight: Floats, bias: Floats) -> tuple[Floats, Floats]:
        """Each row of W by its w, and w ∘ bias + b."""
        w = np.asarray(self.w)
        return w[:, None] * weight, w * bias + np.asarray(self.b)
