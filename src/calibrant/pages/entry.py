"""A model on the page: what it said, what was measured, and what is known of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from calibrant.metrics.miscalibration import Miscalibration, miscalibration
from calibrant.types import Prediction


@dataclass(frozen=True)
class Entry:
    """Of one model, or of one run."""

    name: str
    test: Prediction  # familiar text, with labels
    ood: Prediction | None  # unfamiliar text, where there is any
    metrics: dict[str, Any]  # what ``measure(test, ood)`` gave
    label_names: Sequence[str] = ()  # of the classes, in the order of their ids
    promised_risk: float | None = None  # by its rule of abstention
    settings: Mapping[str, str] = field(default_factory=dict)  # how it was trained
    verdict: Sequence[str] = ()  # a sentence for each kind of text, and why the command
    command: str | None = None  # what to type next

    def __repr__(self) -> str:
        measured = self.metrics
        return f"Entry({self.name!r}, accuracy {measured['accuracy']:.1%}, ECE {measured['ece']:.1%})"

    @cached_property
    def miscalibration(self) -> Miscalibration:
        """How far its confidence is off, beside what chance would do."""
        return miscalibration(self.test)

    @property
    def classes(self) -> int:
        """K."""
        return int(self.test.probabilities.shape[1])
