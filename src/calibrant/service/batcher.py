"""Requests put together across connections: many texts in one pass are what makes a model fast.

    ask(texts) ──► queue ──► a batch, every few milliseconds or when the last one is done ──► one thread

The queue is bounded: what does not fit is refused at once, and nothing grows. A request of many texts takes
turns with the others, a slice at a time.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Generic, TypeVar

T = TypeVar("T")

WINDOW = 0.003
"""Seconds that the first text of a batch waits for others, where no batch is under way."""

SLICE = 16
"""Texts of one request that go into a batch before others have their turn."""


class Full(Exception):
    """Too many texts are waiting."""


@dataclass(eq=False)
class _Job(Generic[T]):
    texts: Sequence[str]
    answered: asyncio.Future[list[T]]
    came: float
    answers: list[T] = field(default_factory=list)
    taken: int = 0

    @property
    def left(self) -> int:
        return len(self.texts) - self.taken


class Batcher(Generic[T]):
    """Give texts to ``answer``, which runs in a thread of its own, at most ``size`` at a time."""

    def __init__(
        self,
        answer: Callable[[list[str]], Sequence[T]],
        size: int,
        limit: int,
        observe: Callable[[int, float], None] = lambda texts, seconds: None,
    ) -> None:
        self._answer, self._size, self._limit, self._observe = answer, size, limit, observe
        self._jobs: deque[_Job[T]] = deque()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="calibrant-answers")
        self._more = asyncio.Event()
        self.waiting = 0  # texts that no batch has taken yet

    async def ask(self, texts: Sequence[str]) -> list[T]:
        """An answer for each text. Whoever stops waiting takes the texts out of the queue again."""
        if self.waiting + len(texts) > self._limit:
            raise Full
        loop = asyncio.get_running_loop()
        job: _Job[T] = _Job(texts, loop.create_future(), loop.time())
        self._jobs.append(job)
        self.waiting += len(texts)
        self._more.set()
        try:
            return await job.answered
        finally:
            if job.left:
                self.waiting -= job.left
                self._jobs.remove(job)

    async def run(self) -> None:
        """Answer for ever; cancelled when nobody asks any more."""
        loop = asyncio.get_running_loop()
        try:
            while True:
                await self._more.wait()
                if self.waiting < self._size and self._jobs:
                    await asyncio.sleep(self._jobs[0].came + WINDOW - loop.time())
                parts = self._take()
                if parts:
                    await self._answer_batch(parts)
                if not self._jobs:
                    self._more.clear()
        finally:
            self._thread.shutdown(wait=False)

    def _take(self) -> list[tuple[_Job[T], Sequence[str]]]:
        parts, room = [], self._size
        while self._jobs and room:
            job = self._jobs.popleft()
            some = job.texts[job.taken : job.taken + min(SLICE, room)]
            job.taken += len(some)
            room -= len(some)
            parts.append((job, some))
            if job.left:
                self._jobs.append(job)
        self.waiting -= self._size - room
        return parts

    async def _answer_batch(self, parts: list[tuple[_Job[T], Sequence[str]]]) -> None:
        loop = asyncio.get_running_loop()
        texts = [text for _, some in parts for text in some]
        began = loop.time()
        try:
            answers = iter(await loop.run_in_executor(self._thread, self._answer, texts))
        except Exception as error:
            for job, _ in parts:
                if not job.answered.done():
                    job.answered.set_exception(error)
            return
        self._observe(len(texts), loop.time() - began)
        for job, some in parts:
            job.answers += [next(answers) for _ in some]
            if len(job.answers) == len(job.texts) and not job.answered.done():
                job.answered.set_result(job.answers)
