"""Jobs side by side on a Ray cluster."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from calibrant._system.cluster import cluster, machines
from calibrant.errors import UserError
from calibrant.study.executors.base import Done, Executor, Work, attempt
from calibrant.study.plan import Job
from calibrant.types import Progress, silent

RETRIES = 5
"""How often a job is begun again after its worker died; it goes on from its last checkpoint."""


@dataclass(frozen=True)
class Ray(Executor):
    """A cluster at ``address``, or one of this machine's cores that ends with the study.

    Each job takes ``threads`` cores, one by default, and a GPU where the cluster has any. The workers of a
    cluster need calibrant installed, the same ``$CALIBRANT_DATA``, and the study's folder at the same path,
    on a file system that they share.
    """

    name: ClassVar[str] = "ray"

    address: str | None = None

    def own_threads(self) -> int:
        """One, so that jobs run side by side."""
        return 1

    def run(self, work: Work, jobs: Sequence[Job], progress: Progress) -> Iterator[Done]:
        """In the order in which they end."""
        threads = self.own_threads() if self.threads is None else self.threads
        with cluster(self.address, "--executor ray", threads) as ray:
            # One each where there are any: without asking, all jobs see all of them, or none.
            gpus = int(any(gpus for _, gpus in machines(ray)))
            remote = ray.remote(num_cpus=threads, num_gpus=gpus, max_retries=RETRIES)(_on_a_worker)
            running = {remote.remote(work, job, threads): job for job in jobs}
            while running:
                (done,), _ = ray.wait(list(running), num_returns=1)
                yield running.pop(done), _outcome(done)


def _outcome(done: Any) -> UserError | None:
    import ray

    try:
        failure: UserError | None = ray.get(done)
    except ray.exceptions.RayTaskError:  # an error of ours that no sentence foresees
        raise
    except ray.exceptions.RayError as error:
        return UserError(f"its worker died {RETRIES + 1} times ({type(error).__name__}); look at Ray's logs.")
    return failure


def _on_a_worker(work: Work, job: Job, threads: int) -> UserError | None:
    import torch

    torch.set_num_threads(threads)
    return attempt(work, job, silent)
