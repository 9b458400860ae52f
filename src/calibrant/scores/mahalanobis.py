"""The distance to the nearest class, in units of how far training texts lie from theirs."""

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from calibrant.scores.base import FittedScore, Floats, Integers, features_of
from calibrant.scores.gaussian import class_means, shrunk_covariance, squared_distances, whitening
from calibrant.scores.shapes import Shapes
from calibrant.types import Outputs


@dataclass(frozen=True, eq=False, repr=False)
class Mahalanobis(FittedScore):
    """s = min_k (f − μ_k)ᵀ·Σ⁻¹·(f − μ_k), with one Σ for all classes (see ``gaussian``)."""

    name: ClassVar[str] = "mahalanobis"
    about: ClassVar[str] = "The distance to the nearest class of training texts."
    citation: ClassVar[str] = (
        "Lee et al. (2018), A Simple Unified Framework for Detecting Out-of-Distribution Samples and "
        "Adversarial Attacks"
    )

    shapes: ClassVar[Shapes] = {"means": ("c", "h"), "w": ("h", "h")}

    means: Floats | None = None  # μ (K, h)
    w: Floats | None = None  # (h, h), W·Wᵀ = Σ⁻¹

    def _fit(self, outputs: Outputs, labels: Integers) -> Self:
        features = features_of(outputs)
        means, own = class_means(features, labels)
        return replace(self, means=means, w=whitening(shrunk_covariance(features - own)))

    def _score(self, outputs: Outputs) -> Floats:
        assert self.means is not None
        assert self.w is not None
        return np.asarray(squared_distances(features_of(outputs), self.means, self.w).min(axis=1))
