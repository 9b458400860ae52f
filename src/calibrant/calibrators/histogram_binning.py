"""A table of what was seen on dev, class by class."""

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
from scipy.special import softmax

from calibrant.calibrators.base import Calibrator, Floats, Integers, Labelled
from calibrant.calibrators.likelihood import renormalised
from calibrant.errors import UserError
from calibrant.scores.shapes import Shapes, check_shapes
from calibrant.types import Outputs


@dataclass(frozen=True, repr=False)
class HistogramBinning(Calibrator):
    """p_k ∝ the share of class k among the dev texts whose softmax(z)_k lies in the same bin.

    Bins (b/B, (b + 1)/B] of equal width: of equal count, as first proposed, the highest bin of a class
    would hold n/B texts, and with more than B classes most of them are not its own. A bin that no
    dev text fell into keeps its middle.
    """

    name: ClassVar[str] = "histogram-binning"
    about: ClassVar[str] = "A table of what was seen on dev, class by class."
    citation: ClassVar[str] = "Zadrozny and Elkan (2001), Obtaining calibrated probability estimates"

    shapes: ClassVar[Shapes] = {"values": ("K", "bins")}

    bins: int = 15
    values: list[list[float]] | None = None  # (K, bins)

    def __post_init__(self) -> None:
        if not isinstance(self.bins, int) or self.bins < 1:
            raise UserError(f"`bins` must be at least 1, got {self.bins!r}.")
        check_shapes({"values": self.values}, {"values": ("K", "bins")}, {"bins": self.bins})

    def _fit(self, outputs: Outputs, y: Integers, train: Labelled | None) -> Self:
        z = outputs.logits
        classes = z.shape[1]
        cell = self._bin(z) + self.bins * np.arange(classes)  # one number for class and bin, (n, K)
        is_class = y[:, None] == np.arange(classes)
        size = classes * self.bins
        count = np.bincount(cell.ravel(), minlength=size)
        own = np.bincount(cell.ravel(), weights=is_class.ravel(), minlength=size)
        middle = np.tile((np.arange(self.bins) + 0.5) / self.bins, classes)
        values = np.where(count > 0, own / np.maximum(count, 1), middle)
        return replace(self, values=values.reshape(classes, self.bins).tolist())

    def _probabilities(self, outputs: Outputs) -> Floats:
        values = np.asarray(self.values)
        return renormalised(values[np.arange(len(values)), self._bin(outputs.logits)])

    def _bin(self, z: Floats) -> Integers:
        """The bin of each class's probability, (n, K)."""
        edges = np.arange(self.bins + 1) / self.bins
        index = np.searchsorted(edges, softmax(z, axis=1), side="left") - 1
        inside: Integers = np.clip(index, 0, self.bins - 1)  # a probability of 0 lies below the first bin
        return inside
