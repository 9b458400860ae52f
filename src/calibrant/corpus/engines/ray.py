"""Parts side by side on a Ray cluster, by the actors of Ray Data.

A row of the dataset is a part: where its rows begin, and how many they are. The actor that gets it reads
them, answers them and writes the answers. So no text passes through Ray's memory, the parts are those of the
local engine, and an actor that dies costs what it had in hand: Ray starts another, which answers that again.
Ray leaves no processor to readers here, since nothing but the actors reads.
"""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

from calibrant._system.cluster import cluster, machines
from calibrant.classifier import Classifier
from calibrant.corpus.engines.base import Engine, Moved
from calibrant.corpus.part import Job, Part, Worker
from calibrant.corpus.pieces import Piece
from calibrant.errors import UserError


@dataclass(frozen=True)
class Ray(Engine):
    """A cluster at ``address``, or one of this machine's cores that ends with the work.

    Each actor takes ``threads`` cores, one by default, and a GPU where the cluster has any. The machines need
    calibrant installed, and the run, the corpus and the answers at the same path or address.
    """

    name: ClassVar[str] = "ray"

    address: str | None = None

    @contextmanager
    def ready(self) -> Iterator[None]:
        """Connected."""
        with cluster(self.address, "--engine ray", self._threads):
            from ray.data import DataContext

            DataContext.get_current().enable_progress_bars = False
            logging.getLogger("ray.data").setLevel(logging.ERROR)
            yield

    def answer(self, job: Job, classifier: Classifier, parts: Sequence[Part], moved: Moved) -> None:
        """In any order."""
        import ray.data

        gpus = sum(gpus for _, gpus in machines(ray))
        actors = gpus or sum(cores // self._threads for cores, _ in machines(ray))
        items = [{"number": part.number, "file": part.file, **part.piece._asdict()} for part in parts]
        data = ray.data.from_items(items, override_num_blocks=len(items)).map_batches(
            _Actor,
            fn_constructor_args=[job, self._threads],
            batch_size=1,
            batch_format="pyarrow",
            compute=ray.data.ActorPoolStrategy(
                size=min(actors, len(items)),
                max_tasks_in_flight_per_actor=1,  # what an actor has not begun is not lost with it
            ),
            num_cpus=self._threads,
            num_gpus=int(gpus > 0),
        )
        try:
            for row in data.iter_rows():
                if row["error"]:
                    raise UserError(row["error"])
                moved(row["rows"])
        except ray.exceptions.RayError as error:
            cause = getattr(error, "cause", None)
            if isinstance(error, ray.exceptions.RayTaskError) and not isinstance(cause, UserError):
                raise  # an error of ours that no sentence foresees
            told = cause or f"it ended ({type(error).__name__}); look at Ray's logs"
            raise UserError(
                f"A worker of the Ray cluster says: {str(told).rstrip('.')}. What is done is kept, and the "
                "same command goes on."
            ) from error

    @property
    def _threads(self) -> int:
        """One, so that parts are answered side by side."""
        return 1 if self.threads is None else self.threads


class _Actor:
    """A worker that Ray Data gives a part at a time."""

    def __init__(self, job: Job, threads: int) -> None:
        import torch

        torch.set_num_threads(threads)
        self._work = Worker(job)

    def __call__(self, table: Any) -> dict[str, list[Any]]:
        (item,) = table.to_pylist()
        part = Part(item["number"], item["file"], Piece(item["start"], item["line"], item["rows"]))
        try:
            self._work(part)
        except UserError as error:  # told, and not raised: Ray would try again
            return {"rows": [0], "error": [str(error)]}
        return {"rows": [part.piece.rows], "error": [""]}
