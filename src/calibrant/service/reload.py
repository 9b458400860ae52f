"""A run directory that is replaced: the new run is loaded beside the old one, which answers meanwhile."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from pathlib import Path

from calibrant.runs import dev
from calibrant.runs.place import FILE
from calibrant.service.model import Model, Said

logger = logging.getLogger(__name__)
EVERY = 2.0
"""Seconds between two looks."""

Stamp = tuple[tuple[int, int, int] | None, ...]


class Current:
    """The model that answers now."""

    def __init__(
        self,
        path: Path,
        threshold: float | None,
        loaded: Callable[[Model], None] = lambda model: None,
        failed: Callable[[], None] = lambda: None,
    ) -> None:
        self._path, self._threshold, self._loaded, self._failed = path, threshold, loaded, failed
        self._stamp = _stamp(path)
        self.model = Model(path, threshold)
        self._loaded(self.model)

    def answer(self, texts: Sequence[str]) -> list[Said]:
        """By the model of this moment, all of them."""
        return self.model.answer(texts)

    async def watch(self) -> None:
        """Look again and again, for ever. What cannot be loaded leaves the old one in its place."""
        failed_at: Stamp = ()
        while True:
            await asyncio.sleep(EVERY)
            stamp = _stamp(self._path)
            if stamp[0] is None or stamp == self._stamp:
                continue
            try:
                model = await asyncio.to_thread(Model, self._path, self._threshold)
                other = model.digest != self.model.digest
                if other:
                    self._loaded(model)
            except Exception as error:  # whatever lies there, half of a copy perhaps: it is tried again
                if stamp != failed_at:
                    logger.warning("reload failed, the old run goes on: %s", error)
                    failed_at = stamp
                    self._failed()
                continue
            if other:
                logger.info("reloaded: run %s in the place of %s", model.digest, self.model.digest)
            # The same answers, perhaps with another promise, or other dev texts to fit sets on.
            self._stamp, self.model = stamp, model


def _stamp(path: Path) -> Stamp:
    """Changes when a file is written that a service reads, or the folder is another; the record is first."""
    return _seen(path / FILE), _seen(path / dev.FILE)


def _seen(path: Path) -> tuple[int, int, int] | None:
    try:
        file = path.stat()
    except OSError:
        return None
    return file.st_ino, file.st_mtime_ns, file.st_size
