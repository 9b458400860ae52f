"""What training minimises."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar

from torch import Tensor

from calibrant.models.split import SplitModel
from calibrant.types import Batch


@dataclass(frozen=True)
class Loss:
    """A scalar to differentiate and, for the log, the terms that it is made of."""

    total: Tensor
    terms: dict[str, Tensor] = field(default_factory=dict)


class Objective(ABC):
    """A training loss over the batch, the mean over its texts.

    A subclass is a frozen dataclass of its hyper-parameters, all with defaults, so that
    ``Objective(**json)`` gives back what ``dataclasses.asdict`` wrote.
    """

    name: ClassVar[str]
    about: ClassVar[str] = ""  # what it does, in one line of plain words
    citation: ClassVar[str]
    terms: ClassVar[dict[str, str]] = {"ce": "error on the training texts"}
    """What each term in the log is, in a person's words; a subclass adds its own."""

    def state(self) -> dict[str, Any]:
        """What it has learnt beside the model, as JSON, so that a checkpoint can hold it."""
        return {}

    def resume(self, state: dict[str, Any]) -> None:
        """Go on from a ``state``; an empty one is the beginning of a training."""
        assert not state, f"{self.name} learns nothing"

    @abstractmethod
    def loss(self, model: SplitModel, batch: Batch) -> Loss:
        """The loss of one batch, with gradients to the model's weights."""
