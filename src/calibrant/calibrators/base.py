"""What a calibrator is: a map from logits to probabilities, fitted on texts that training has not seen."""

import warnings
from abc import ABC, abstractmethod
from dataclasses import asdict, fields
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibrant.errors import UserError

Floats = NDArray[np.float64]
Integers = NDArray[np.integer]


class Calibrator(ABC):
    """A map from logits (n, K) to probabilities (n, K).

    "Logits" are the logarithms, up to a constant for each text, of the class probabilities: the head's
    output, or log(mean of probabilities) where a prediction takes several passes.

    A subclass is a frozen dataclass of plain JSON values: hyper-parameters with their defaults, and what
    ``fit`` finds, which is None until then. So ``type(c)(**json)`` gives back what ``asdict(c)`` wrote.
    """

    name: ClassVar[str]
    citation: ClassVar[str]
    # Whether it has room enough to learn the texts it is fitted on: these then tell nothing of new text.
    learns_by_heart: ClassVar[bool] = True

    def fit(self, logits: ArrayLike, labels: ArrayLike) -> Self:
        """The calibrator fitted to these logits (n, K) and true classes (n,)."""
        z, y = _check_logits(logits), np.asarray(labels)
        if len(z) == 0 or y.shape != (len(z),) or y.dtype.kind not in "iu":
            raise UserError(
                f"A calibrator is fitted on one class id for each row of logits and at least one row, got "
                f"{y.dtype} labels of shape {y.shape} for logits of shape {z.shape}."
            )
        if y.min() < 0 or y.max() >= z.shape[1]:
            raise UserError(
                f"labels must lie in 0..{z.shape[1] - 1} for {z.shape[1]} columns of logits, got "
                f"{y.min()}..{y.max()}."
            )
        fitted = self._fit(z, y)
        absent = z.shape[1] - len(np.unique(y))
        if self.learns_by_heart and absent:
            warnings.warn(
                f"{absent} of {z.shape[1]} classes have no dev text, and {self.name} may learn that they "
                "never occur; give texts of every class, or take the temperature.",
                stacklevel=2,
            )
        return fitted

    def probabilities(self, logits: ArrayLike) -> Floats:
        """Calibrated probabilities of these logits, (n, K) → (n, K)."""
        if any(value is None for value in asdict(self).values()):  # type: ignore[call-overload]
            raise UserError(
                f"The calibrator {self.name!r} has not been fitted; call fit(logits, labels) with those of "
                "the dev texts first."
            )
        return self._probabilities(_check_logits(logits))

    def state(self) -> dict[str, Any]:
        """What ``from_state`` takes: JSON, and no code."""
        return {"name": self.name, "parameters": asdict(self)}  # type: ignore[call-overload]

    def summary(self) -> str:
        """Its name and those parameters that are one number."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
        numbers = [f"{name} {value:.4g}" for name, value in values.items() if isinstance(value, int | float)]
        return f"{self.name} ({', '.join(numbers)})" if numbers else self.name

    @abstractmethod
    def _fit(self, z: Floats, y: Integers) -> Self:
        """``fit``, of checked values."""

    @abstractmethod
    def _probabilities(self, z: Floats) -> Floats:
        """``probabilities``, of checked values, once fitted."""


def _check_logits(logits: ArrayLike) -> Floats:
    z = np.asarray(logits, dtype=np.float64)
    if z.ndim != 2 or z.shape[1] < 2:
        raise UserError(f"logits must have shape (n, K) with K ≥ 2, got {z.shape}.")
    if not np.isfinite(z).all():
        raise UserError("logits must be finite, got NaN or infinity; look for a diverged model.")
    return z
