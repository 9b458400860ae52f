"""One job after another, in this process."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch

from calibrant.study.executors.base import Done, Executor, Work, attempt
from calibrant.study.plan import Job
from calibrant.types import Progress


@dataclass(frozen=True)
class Local(Executor):
    """This process, with all cores for each job unless ``threads`` says fewer."""

    name: ClassVar[str] = "local"

    def own_threads(self) -> int:
        """All cores, as torch counts them."""
        return torch.get_num_threads()

    def run(self, work: Work, jobs: Sequence[Job], progress: Progress) -> Iterator[Done]:
        """In the order given."""
        if self.threads is not None:
            torch.set_num_threads(self.threads)
        for number, job in enumerate(jobs, start=1):
            config = job.trainings[0].config
            where = f"{number} of {len(jobs)} ({config.dataset}, seed {config.seed})"

            def of_this_job(what: str, done: int, total: int, where: str = where) -> None:
                progress(f"{where} {what}", done, total)

            yield job, attempt(work, job, of_this_job)
