"""One part after another, in this process."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch

from calibrant.classifier import Classifier
from calibrant.corpus.engines.base import Engine, Moved
from calibrant.corpus.part import Job, Part, Worker


@dataclass(frozen=True)
class Local(Engine):
    """This process, with all cores unless ``threads`` says fewer."""

    name: ClassVar[str] = "local"

    def answer(self, job: Job, classifier: Classifier, parts: Sequence[Part], moved: Moved) -> None:
        """In their order."""
        if self.threads is not None:
            torch.set_num_threads(self.threads)
        worker = Worker(job, classifier)
        for part in parts:
            told = 0

            def batch(what: str, done: int, total: int) -> None:
                nonlocal told
                moved(done - told)
                told = done

            worker(part, batch)
            moved(part.piece.rows - told)  # those without an answer
