"""Mahalanobis distances of what inner layers see, where style shows that the last layer forgets."""

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from calibrant.scores.base import FittedScore, Floats, Integers
from calibrant.scores.mahalanobis import Mahalanobis
from calibrant.scores.shapes import Shapes
from calibrant.types import Needs, Outputs


@dataclass(frozen=True, eq=False, repr=False)
class _OfLayers(FittedScore):
    citation: ClassVar[str] = Mahalanobis.citation

    means: Floats | None = None  # as in Mahalanobis
    w: Floats | None = None

    def _fit(self, outputs: Outputs, labels: Integers) -> Self:
        return replace(self, **Mahalanobis().fit(self._seen(outputs), labels).arrays())

    def _score(self, outputs: Outputs) -> Floats:
        return Mahalanobis(self.means, self.w)(self._seen(outputs))

    @abstractmethod
    def _seen(self, outputs: Outputs) -> Outputs:
        """The outputs with the features that are looked at."""


class LayerMahalanobis(_OfLayers):
    """``mahalanobis`` of the features after the middle layer."""

    name: ClassVar[str] = "layer-mahalanobis"
    about: ClassVar[str] = "Mahalanobis in the middle layer of the model."
    needs: ClassVar[Needs] = frozenset({"middle"})
    shapes: ClassVar[Shapes] = {"means": ("c", "m"), "w": ("m", "m")}

    def _seen(self, outputs: Outputs) -> Outputs:
        return replace(outputs, features=outputs.middle)


class MeanMahalanobis(_OfLayers):
    """``mahalanobis`` of the features' mean over all layers."""

    name: ClassVar[str] = "mean-mahalanobis"
    about: ClassVar[str] = "Mahalanobis of the mean of all layers."
    needs: ClassVar[Needs] = frozenset({"layers"})
    shapes: ClassVar[Shapes] = {"means": ("c", "a"), "w": ("a", "a")}

    def _seen(self, outputs: Outputs) -> Outputs:
        assert outputs.layers is not None
        return replace(outputs, features=outputs.layers.mean(axis=1))
