"""Two Mahalanobis distances added up: near to no class by the last layer, unlike all by an inner one."""

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from calibrant.scores.base import FittedScore, Floats, Integers
from calibrant.scores.layer_mahalanobis import LayerMahalanobis
from calibrant.scores.relative_mahalanobis import RelativeMahalanobis
from calibrant.scores.shapes import Shapes
from calibrant.types import Needs, Outputs


@dataclass(frozen=True, eq=False, repr=False)
class TwoLayerMahalanobis(FittedScore):
    """s = r/σ_r + m/σ_m, where r is ``relative-mahalanobis`` and m ``layer-mahalanobis``.

    The last layer has learnt the classes and forgets all else; the middle one still sees what kind of text it
    is. Each σ is the standard deviation over the training texts, so that neither drowns the other. Chosen of
    twelve combinations of scores and layers by leaving classes out of three training sets, and by AG News and
    Yelp as text from elsewhere; docs/recipe.md tells what had been seen before.
    """

    name: ClassVar[str] = "two-layer-mahalanobis"
    about: ClassVar[str] = "Sum of relative- and layer-mahalanobis."
    citation: ClassVar[str] = RelativeMahalanobis.citation
    needs: ClassVar[Needs] = frozenset({"features", "middle"})
    shapes: ClassVar[Shapes] = {
        **RelativeMahalanobis.shapes,
        **{"inner_means": ("c", "m"), "inner_w": ("m", "m"), "weights": ("2",)},
    }

    means: Floats | None = None  # of the last layer, as in RelativeMahalanobis
    w: Floats | None = None
    mean: Floats | None = None
    w_all: Floats | None = None
    inner_means: Floats | None = None  # of the middle layer, as in LayerMahalanobis
    inner_w: Floats | None = None
    weights: Floats | None = None  # 1/σ_r and 1/σ_m

    def _fit(self, outputs: Outputs, labels: Integers) -> Self:
        inner = LayerMahalanobis().fit(outputs, labels)
        last = RelativeMahalanobis().fit(outputs, labels).arrays()
        fitted = replace(self, **last, inner_means=inner.means, inner_w=inner.w)
        spread = np.maximum(fitted._both(outputs).std(axis=0), np.finfo(np.float64).tiny)
        return replace(fitted, weights=1 / spread)

    def _score(self, outputs: Outputs) -> Floats:
        assert self.weights is not None
        return np.asarray(self._both(outputs) @ self.weights)

    def _both(self, outputs: Outputs) -> Floats:
        """r and m, (n, 2)."""
        last = RelativeMahalanobis(self.means, self.w, self.mean, self.w_all)
        return np.stack([last(outputs), LayerMahalanobis(self.inner_means, self.inner_w)(outputs)], axis=1)
