"""What a score is: one number for each text, larger where the text is less familiar."""

from abc import ABC, abstractmethod
from dataclasses import fields
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import UserError
from calibrant.scores.shapes import Shapes, check_finite, check_shapes
from calibrant.types import Needs, Outputs

Floats = NDArray[np.float64]
Integers = NDArray[np.integer]


class Score(ABC):
    """From what the classifier says of n texts to (n,) real numbers; LARGER MEANS LESS FAMILIAR."""

    name: ClassVar[str]
    about: ClassVar[str] = ""  # what it does, in one line of plain words
    citation: ClassVar[str]
    needs: ClassVar[Needs] = frozenset()  # what it reads beside logits and probabilities
    learns: ClassVar[bool] = False  # whether it must be fitted on the training texts first
    # Whether it reads the constant that a softmax does not see. The logarithms of an average of several
    # passes have lost it: their exponentials sum to 1, whatever the text.
    needs_own_logits: ClassVar[bool] = False

    def __repr__(self) -> str:
        return f"<{self.name}>"

    @abstractmethod
    def __call__(self, outputs: Outputs) -> Floats:
        """(n,)."""


class FittedScore(Score):
    """A score that compares a text to those of training.

    A subclass is a frozen dataclass of arrays, which are None until ``fit`` finds them. So
    ``type(s)(**arrays)`` gives back what ``s.arrays()`` wrote.
    """

    needs: ClassVar[Needs] = frozenset({"features"})
    learns: ClassVar[bool] = True
    shapes: ClassVar[Shapes]  # of its arrays; see ``widths``

    def fit(self, outputs: Outputs, labels: Integers) -> Self:
        """The score fitted to what the model says of the training texts, and their true classes (n,)."""
        if len(outputs) == 0 or len(labels) != len(outputs):
            raise UserError(
                f"The score {self.name!r} is fitted on one class id for each text and at least one text, got "
                f"{len(labels)} and {len(outputs)}."
            )
        outputs.check(self.needs, f"The score {self.name!r}")
        return self._fit(outputs, np.asarray(labels))

    def __call__(self, outputs: Outputs) -> Floats:
        """(n,), once fitted."""
        if any(value is None for value in self.arrays().values()):
            raise UserError(
                f"The score {self.name!r} has not been fitted; call fit(outputs, labels) with those of the "
                "training texts first."
            )
        outputs.check(self.needs, f"The score {self.name!r}")
        check_shapes(self.arrays(), self.shapes, widths(outputs))
        return self._score(outputs)

    def check(self) -> None:
        """Refuse arrays that no ``fit`` has made."""
        check_finite(self.arrays(), self.shapes)
        check_shapes(self.arrays(), self.shapes, {})

    def arrays(self) -> dict[str, Any]:
        """What the constructor takes: arrays, and no code."""
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]

    @abstractmethod
    def _fit(self, outputs: Outputs, labels: Integers) -> Self:
        """``fit``, of checked values."""

    @abstractmethod
    def _score(self, outputs: Outputs) -> Floats:
        """(n,), once fitted."""


def widths(outputs: Outputs) -> dict[str, int]:
    """The lengths that ``Shapes`` call K, h (features), m (of the middle layer) and a (of all layers)."""
    parts = {"K": outputs.logits, "h": outputs.features, "m": outputs.middle, "a": outputs.layers}
    return {letter: np.shape(part)[-1] for letter, part in parts.items() if part is not None}


def features_of(outputs: Outputs) -> Floats:
    """(n, h), in the precision in which distances are computed."""
    return np.asarray(outputs.features, dtype=np.float64)
