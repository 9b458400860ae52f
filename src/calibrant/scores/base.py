"""What a score is: one number for each text, larger where the text is less familiar."""

from abc import ABC, abstractmethod
from dataclasses import fields
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import UserError
from calibrant.types import Outputs

Floats = NDArray[np.float64]
Integers = NDArray[np.integer]


class Score(ABC):
    """From what the classifier makes of n texts to (n,) real numbers; LARGER MEANS LESS FAMILIAR."""

    name: ClassVar[str]
    citation: ClassVar[str]
    # Whether it reads the constant that a softmax does not see. The logarithms of an average of several
    # passes have lost it: their exponentials sum to 1, whatever the text.
    needs_own_logits: ClassVar[bool] = False

    @abstractmethod
    def __call__(self, outputs: Outputs) -> Floats:
        """(n,)."""


class FeatureScore(Score):
    """A score of the features, compared to those of the training texts.

    A subclass is a frozen dataclass of arrays, which are None until ``fit`` finds them. So
    ``type(s)(**arrays)`` gives back what ``s.arrays()`` wrote.
    """

    def fit(self, features: NDArray[np.floating], labels: Integers) -> Self:
        """The score fitted to the training texts' features (n, h) and true classes (n,)."""
        if len(features) == 0 or len(labels) != len(features):
            raise UserError(
                f"The score {self.name!r} is fitted on one class id for each row of features and at least "
                f"one row, got {len(labels)} and {len(features)}."
            )
        return self._fit(np.asarray(features, dtype=np.float64), np.asarray(labels))

    def __call__(self, outputs: Outputs) -> Floats:
        """(n,), once fitted."""
        if any(value is None for value in self.arrays().values()):
            raise UserError(
                f"The score {self.name!r} has not been fitted; call fit(features, labels) with those of the "
                "training texts first."
            )
        if outputs.features is None:
            raise UserError(
                f"The score {self.name!r} needs features; ask for classifier.outputs(texts, features=True)."
            )
        return self._score(np.asarray(outputs.features, dtype=np.float64))

    def arrays(self) -> dict[str, Any]:
        """What the constructor takes: arrays, and no code."""
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]

    @abstractmethod
    def _fit(self, features: Floats, labels: Integers) -> Self:
        """``fit``, of checked values."""

    @abstractmethod
    def _score(self, features: Floats) -> Floats:
        """Features (n, h) → (n,), once fitted."""
