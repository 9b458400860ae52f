"""What a calibrator is: a map from outputs to probabilities, fitted on texts that training has not seen."""

import warnings
from abc import ABC, abstractmethod
from dataclasses import fields, replace
from typing import Any, ClassVar, NamedTuple, Optional, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibrant.errors import UserError
from calibrant.scores.base import widths
from calibrant.scores.shapes import Shapes, check_finite, check_shapes
from calibrant.types import Needs, Outputs

Floats = NDArray[np.float64]
Integers = NDArray[np.integer]


class Labelled(NamedTuple):
    """Outputs of n training texts and their true classes (n,)."""

    outputs: Outputs
    labels: Integers
    unseen: Optional["Labelled"] = None
    """What heads that had not seen them say of some: as good as dev for a calibrator that reads logits."""


class Calibrator(ABC):
    """A map from outputs of n texts to probabilities (n, K).

    "Logits" are the logarithms, up to a constant for each text, of the class probabilities: the head's
    output, or log(mean of probabilities) where a prediction takes several passes.

    A subclass is a frozen dataclass of plain JSON values and of arrays: hyper-parameters with their defaults,
    and what ``fit`` finds, which is None until then. So ``type(c)(**json, **arrays)`` gives back what
    ``state()`` and ``arrays()`` wrote.
    """

    name: ClassVar[str]
    about: ClassVar[str] = ""  # what it does, in one line of plain words
    citation: ClassVar[str]
    # What it reads beside the logits. A calibrator that reads more is given the training texts' outputs, too.
    needs: ClassVar[Needs] = frozenset()
    # Whether it has room enough to learn the texts it is fitted on: these then tell nothing of new text.
    learns_by_heart: ClassVar[bool] = True
    shapes: ClassVar[Shapes] = {}  # of its values; () for a number, see ``scores.base.widths``

    def __repr__(self) -> str:
        return f"<{self.summary()}>"

    def fit(
        self, outputs: Outputs, labels: ArrayLike, train: Labelled | tuple[Outputs, Integers] | None = None
    ) -> Self:
        """The calibrator fitted to the outputs and true classes (n,) of dev texts.

        ``train`` is the same of the training texts, for a calibrator that ``needs`` more than logits. One
        that reads logits only is fitted to dev and to what ``train`` has of unseen text.
        """
        z, y = _check_logits(outputs.logits), np.asarray(labels)
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
        outputs.check(self.needs, f"The calibrator {self.name!r}")
        if self.needs and train is None:
            raise UserError(
                f"The calibrator {self.name!r} compares texts with those of training; give fit(…, train=…)."
            )
        known = None if train is None else Labelled(*train)
        outputs = replace(outputs, logits=z)
        if not self.needs and known is not None and known.unseen is not None:
            more = known.unseen
            outputs = Outputs(np.concatenate([z, _check_logits(more.outputs.logits)]))
            y, known = np.concatenate([y, more.labels]), None
        fitted = self._fit(outputs, y, known)
        absent = z.shape[1] - len(np.unique(y))
        if self.learns_by_heart and absent:
            warnings.warn(
                f"{absent} of {z.shape[1]} classes have no dev text, and {self.name} may learn that they "
                "never occur; give texts of every class, or take the temperature.",
                stacklevel=2,
            )
        return fitted

    def familiarity(self, outputs: Outputs) -> Floats | None:
        """The share of familiar texts at least as strange, (n,) in (0, 1]; None where it cannot tell."""
        return None

    @property
    def unfamiliar_below(self) -> float | None:
        """The familiarity below which a text loses confidence; None from a calibrator that cannot tell."""
        return None

    def distance(self, outputs: Outputs) -> Floats | None:
        """What familiarity is the rank of, (n,): larger for stranger text; None as there."""
        return None

    def probabilities(self, outputs: Outputs) -> Floats:
        """Calibrated probabilities, (n, K)."""
        self._check_ready(outputs)
        return self._probabilities(replace(outputs, logits=_check_logits(outputs.logits)))

    def state(self) -> dict[str, Any]:
        """What ``from_state`` takes, beside the arrays: JSON, and no code."""
        parameters = {name: v for name, v in self._values().items() if not isinstance(v, np.ndarray)}
        return {"name": self.name, "parameters": parameters}

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What is too large for JSON."""
        return {name: v for name, v in self._values().items() if isinstance(v, np.ndarray)}

    def summary(self) -> str:
        """Its name and those parameters that are one number."""
        values = self._values()
        numbers = [
            f"{name.split('.')[-1]} {value:.4g}"
            for name, value in values.items()
            if isinstance(value, int | float)
        ]
        return f"{self.name} ({', '.join(numbers)})" if numbers else self.name

    def _check_ready(self, outputs: Outputs) -> None:
        if any(value is None for value in self._values().values()):
            raise UserError(
                f"The calibrator {self.name!r} has not been fitted; call fit(outputs, labels) with those of "
                "the dev texts first."
            )
        outputs.check(self.needs, f"The calibrator {self.name!r}")
        check_shapes(self._values(), self.shapes, widths(outputs))

    def check(self, classes: int | None = None) -> None:
        """Refuse values that no ``fit`` to logits of so many classes has made."""
        values = self._values()
        check_finite(values, self.shapes)
        check_shapes(values, self.shapes, {} if classes is None else {"K": classes})

    def _values(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]

    @abstractmethod
    def _fit(self, outputs: Outputs, y: Integers, train: Labelled | None) -> Self:
        """``fit``, of checked values."""

    @abstractmethod
    def _probabilities(self, outputs: Outputs) -> Floats:
        """``probabilities``, of checked values, once fitted."""


def calibrated(outputs: Outputs, calibrator: Calibrator | None) -> Outputs:
    """The outputs with the calibrator's probabilities; with those of the softmax where there is none."""
    if calibrator is None:
        return replace(outputs, calibrated=None, familiarity=None)
    return replace(
        outputs,
        calibrated=calibrator.probabilities(outputs),
        familiarity=calibrator.familiarity(outputs),
    )


def _check_logits(logits: ArrayLike) -> Floats:
    z = np.asarray(logits, dtype=np.float64)
    if z.ndim != 2 or z.shape[1] < 2:
        raise UserError(f"logits must have shape (n, K) with K ≥ 2, got {z.shape}.")
    if not np.isfinite(z).all():
        raise UserError("logits must be finite, got NaN or infinity; look for a diverged model.")
    return z
