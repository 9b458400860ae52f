"""The distance to the k-th nearest training text."""

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from calibrant.scores.base import FittedScore, Floats, Integers, features_of
from calibrant.scores.shapes import Shapes
from calibrant.types import Outputs

K = 10
"""Fewer than a class has training texts, mostly, so that those nearest to a familiar text can all be of its
class. Sun et al. take about one in a hundred of a class, of images, of which they have thousands."""
AT_ONCE = 2**22  # distances held in memory


@dataclass(frozen=True, eq=False, repr=False)
class NearestNeighbours(FittedScore):
    """s = ‖f/‖f‖ − t₍ₖ₎‖, with t₍ₖ₎ the k-th nearest of the training texts' normalised features.

    With fewer than k training texts the farthest is taken.
    """

    name: ClassVar[str] = "knn"
    about: ClassVar[str] = "The distance to the nearest training texts."
    citation: ClassVar[str] = "Sun et al. (2022), Out-of-Distribution Detection with Deep Nearest Neighbors"

    shapes: ClassVar[Shapes] = {"neighbours": ("n", "h")}

    neighbours: NDArray[np.float32] | None = None  # (m, h), rows of length 1; features have no more digits

    def _fit(self, outputs: Outputs, labels: Integers) -> Self:
        return replace(self, neighbours=_normalised(features_of(outputs)).astype(np.float32))

    def _score(self, outputs: Outputs) -> Floats:
        assert self.neighbours is not None
        f, t = _normalised(features_of(outputs)), self.neighbours.astype(np.float64)
        k = min(K, len(t))
        t_squared = (t**2).sum(axis=1)
        rows = max(1, AT_ONCE // len(t))
        parts = []
        for start in range(0, len(f), rows):
            part = f[start : start + rows]
            squared = (part**2).sum(axis=1, keepdims=True) + t_squared - 2 * part @ t.T  # (rows, m)
            parts.append(np.partition(squared, k - 1, axis=1)[:, k - 1])
        # Rounding can push the distance of a text to itself below 0.
        return np.asarray(np.sqrt(np.maximum(np.concatenate(parts), 0)))


def _normalised(features: Floats) -> Floats:
    """Rows of length 1; a row of zeros, where no filter of a TextCNN fired, stays as it is."""
    length = np.linalg.norm(features, axis=1, keepdims=True)
    return np.asarray(features / np.where(length == 0, 1, length))
