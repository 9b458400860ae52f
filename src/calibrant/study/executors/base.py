"""What an executor is."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from calibrant.errors import UserError
from calibrant.study.plan import Job
from calibrant.types import Progress

Work = Callable[[Job, Progress], None]
Done = tuple[Job, UserError | None]


@dataclass(frozen=True)
class Executor(ABC):
    """Does independent jobs, and says which are done as they are.

    ``threads`` is how many of torch each job uses: sums of floats depend on their order and so, a little, on
    the number of threads; the same number gives the same results wherever a job runs. None leaves it to the
    study, which goes on with as many as it began with.
    """

    name: ClassVar[str]

    threads: int | None = None

    @abstractmethod
    def own_threads(self) -> int:
        """With how many a study begins here."""

    @abstractmethod
    def run(self, work: Work, jobs: Sequence[Job], progress: Progress) -> Iterator[Done]:
        """Each job when it is done, with None, or with why it could not be."""


def attempt(work: Work, job: Job, progress: Progress) -> UserError | None:
    """Do a job; a training that diverges, say, is no reason to leave the others undone."""
    try:
        work(job, progress)
    except UserError as error:
        return type(error)(str(error))  # without its frames, which hold the model
    return None
