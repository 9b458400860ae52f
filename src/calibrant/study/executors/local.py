"""One job after another, in this process."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch

from calibrant.errors import Busy
from calibrant.study.executors.base import Done, Executor, Work, attempt
from calibrant.study.plan import Job
from calibrant.types import Progress


@dataclass(frozen=True)
class Local(Executor):
    """This process, with all cores for each job unless ``threads`` says fewer.

    Several processes with the same study share its jobs: so many workers as times the command was started.
    """

    name: ClassVar[str] = "local"

    def own_threads(self) -> int:
        """All cores, as torch counts them."""
        return torch.get_num_threads()

    def run(self, work: Work, jobs: Sequence[Job], progress: Progress) -> Iterator[Done]:
        """In the order given; those that another process is at are tried once more after the others."""
        if self.threads is not None:
            torch.set_num_threads(self.threads)
        busy = []
        for number, job in enumerate(jobs, start=1):
            outcome = attempt(work, job, _numbered(progress, f"{number} of {len(jobs)}", job))
            if isinstance(outcome, Busy):
                busy.append((number, job))
            else:
                yield job, outcome
        for number, job in busy:
            yield job, attempt(work, job, _numbered(progress, f"{number} of {len(jobs)}", job))


def _numbered(progress: Progress, number: str, job: Job) -> Progress:
    config = job.trainings[0].config
    return lambda what, done, total: progress(
        f"{number} ({config.dataset}, seed {config.seed}) {what}", done, total
    )
