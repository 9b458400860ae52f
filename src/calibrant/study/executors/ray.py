"""Jobs side by side on a Ray cluster."""

import socket
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

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
        try:
            import ray
        except ImportError as error:
            raise UserError(
                "--executor ray needs Ray, which is not installed: pip install 'calibrant[ray]'."
            ) from error
        threads = self.own_threads() if self.threads is None else self.threads
        try:
            self._knock()
            ray.init(
                address=self.address,
                include_dashboard=False if self.address is None else None,
                log_to_driver=False,
                logging_level="ERROR",
            )
        except (OSError, ValueError) as error:
            if self.address is None:
                raise
            raise UserError(
                f"--address {self.address}: no Ray cluster answers there; start one with `ray start --head`, "
                "or leave the address out."
            ) from error
        try:
            most = max(node["Resources"].get("CPU", 0) for node in ray.nodes() if node["Alive"])
            if threads > most:  # Ray would wait for a larger one for ever
                raise UserError(
                    f"--threads {threads}: a training runs on one machine, and the largest of the Ray "
                    f"cluster has {most:.0f} cores; ask for fewer."
                )
            # One each where there are any: without asking, all jobs see all of them, or none.
            gpus = int(any(node["Resources"].get("GPU", 0) for node in ray.nodes() if node["Alive"]))
            remote = ray.remote(num_cpus=threads, num_gpus=gpus, max_retries=RETRIES)(_on_a_worker)
            running = {remote.remote(work, job, threads): job for job in jobs}
            while running:
                (done,), _ = ray.wait(list(running), num_returns=1)
                yield running.pop(done), _outcome(done)
        finally:
            ray.shutdown()

    def _knock(self) -> None:
        """A short question, since Ray asks for minutes."""
        host, _, port = (self.address or "").removeprefix("ray://").rpartition(":")
        if host and port.isdigit():
            socket.create_connection((host, int(port)), timeout=5).close()


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
