"""What an engine is."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar

from calibrant.classifier import Classifier
from calibrant.corpus.part import Job, Part

Moved = Callable[[int], None]
"""Called with how many more rows are answered."""


@dataclass(frozen=True)
class Engine(ABC):
    """Answers the parts of a corpus. Which one does, the parts are the same.

    ``threads`` is how many of torch each model uses; None leaves it to the engine.
    """

    name: ClassVar[str]

    threads: int | None = None

    @contextmanager
    def ready(self) -> Iterator[None]:
        """Whatever it needs is there until the end of the block."""
        yield

    @abstractmethod
    def answer(self, job: Job, classifier: Classifier, parts: Sequence[Part], moved: Moved) -> None:
        """Answer parts, with the classifier or with others of the same run."""
