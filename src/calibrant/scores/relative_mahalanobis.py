"""The distance to the nearest class, less the distance to the training texts as a whole."""

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from calibrant.scores.base import FittedScore, Floats, Integers, features_of
from calibrant.scores.gaussian import class_means, shrunk_covariance, squared_distances, whitening
from calibrant.scores.shapes import Shapes
from calibrant.types import Outputs


@dataclass(frozen=True, eq=False, repr=False)
class RelativeMahalanobis(FittedScore):
    """s = min_k d_k(f) − d_0(f), with d_k(f) = (f − μ_k)ᵀ·Σ⁻¹·(f − μ_k) as in ``mahalanobis`` and d_0 the
    same of a single Gaussian μ_0, Σ_0 of all training texts.

    What makes a text unusual without making it less of a class is in both, and cancels.

    Σ_0 = Σ + B, with B the covariance of the class means; that is the covariance of all texts, but for the
    shrinkage, which is that of Σ. Were each shrunk by itself, Σ_0 could be the smaller in some direction. A
    text would then count as more familiar the farther it lies in that direction.
    """

    name: ClassVar[str] = "relative-mahalanobis"
    about: ClassVar[str] = "Mahalanobis, less the distance to all training texts."
    citation: ClassVar[str] = (
        "Ren et al. (2021), A Simple Fix to Mahalanobis Distance for Improving Near-OOD Detection"
    )

    shapes: ClassVar[Shapes] = {"means": ("c", "h"), "w": ("h", "h"), "mean": ("1", "h"), "w_all": ("h", "h")}

    means: Floats | None = None  # μ (K, h)
    w: Floats | None = None  # (h, h), W·Wᵀ = Σ⁻¹
    mean: Floats | None = None  # μ_0 (1, h)
    w_all: Floats | None = None  # (h, h), W₀·W₀ᵀ = Σ_0⁻¹

    def _fit(self, outputs: Outputs, labels: Integers) -> Self:
        features = features_of(outputs)
        means, own = class_means(features, labels)
        mean = features.mean(axis=0, keepdims=True)
        sigma = shrunk_covariance(features - own)
        between = (own - mean).T @ (own - mean) / len(own)
        return replace(self, means=means, w=whitening(sigma), mean=mean, w_all=whitening(sigma + between))

    def _score(self, outputs: Outputs) -> Floats:
        features = features_of(outputs)
        assert self.means is not None
        assert self.w is not None
        assert self.mean is not None
        assert self.w_all is not None
        to_class = squared_distances(features, self.means, self.w).min(axis=1)
        return np.asarray(to_class - squared_distances(features, self.mean, self.w_all)[:, 0])
