"""A run directory that is replaced: the new run is loaded beside the old one, which answers meanwhile."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from pathlib import Path

from calibrant.service.model import Model, Said

logger = logging.getLogger(__name__)
EVERY = 2.0
"""Seconds between two looks."""

Stamp = tuple[int, int, int] | None


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
        failed_at: Stamp = None
        while True:
            await asyncio.sleep(EVERY)
            stamp = _stamp(self._path)
            if stamp is None or stamp == self._stamp:
                continue
            try:
                model = await asyncio.to_thread(Model, self._path, self._threshold)
            except Exception as error:  # whatever lies there, half of a copy perhaps: it is tried again
                if stamp != failed_at:
                    logger.warning("reload failed, the old run goes on: %s", error)
                    failed_at = stamp
                    self._failed()
                continue
            self._stamp = stamp
            if model.digest != self.model.digest:
                logger.info("reloaded: run %s in the place of %s", model.digest, self.model.digest)
                self.model = model
                self._loaded(model)


def _stamp(path: Path) -> Stamp:
    """Changes when the record is written, or the folder is another; None where there is no record."""
    try:
        record = (path / "calibrant.json").stat()
    except OSError:
        return None
    return record.st_ino, record.st_mtime_ns, record.st_size
