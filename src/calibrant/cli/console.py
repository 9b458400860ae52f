"""What the commands share on the terminal: a progress bar with the time left, and quiet libraries."""

import logging
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.logging import RichHandler
from rich.progress import BarColumn, ProgressColumn, Task, TextColumn
from rich.progress import Progress as Bars
from rich.text import Text

from calibrant.errors import visible
from calibrant.types import Progress

SECONDS = 30  # between two lines, where there is no terminal


class _OneLine(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return visible(record.getMessage())


@contextmanager
def working() -> Iterator[Progress]:
    """A ``Progress`` on standard error, so that standard output stays clean for data.

    On a terminal it is a bar for each piece of work; elsewhere, in a log file say, a line every half minute.
    """
    console = Console(stderr=True)
    _quiet(console)
    if not console.is_terminal:
        yield _lines(console)
        return
    # Standard output is left alone: rich would send it to standard error, too.
    columns = TextColumn("{task.description}", markup=False), BarColumn(), _Words()
    bars, tasks = Bars(*columns, console=console, transient=True, redirect_stdout=False), {}

    def progress(what: str, done: int, total: int) -> None:
        if what not in tasks:
            bars.start()  # not before: a mistake found early leaves its sentence alone on the terminal
            for task in bars.tasks:  # a study has hundreds: what is finished makes room
                task.visible = not task.finished
            tasks[what] = bars.add_task(visible(what), total=total)
        bars.update(tasks[what], completed=done, total=total)

    try:
        yield progress
    finally:
        if tasks:
            bars.stop()


def in_words(done: int, total: int, gone: float, left: float | None) -> str:
    """How far a piece of work is, with the seconds that it has taken and is likely to take.

    >>> in_words(90, 240, 300, 480)
    '90 of 240, 5 min gone, 8 min left'
    """
    return f"{done} of {total}, {_time(gone)} gone" + ("" if left is None else f", {_time(left)} left")


def _time(seconds: float) -> str:
    minutes = round(seconds / 60)
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


class _Words(ProgressColumn):
    def render(self, task: Task) -> Text:
        done, total = int(task.completed), int(task.total or 0)
        return Text(in_words(done, total, task.elapsed or 0, task.time_remaining))


def _lines(console: Console) -> Progress:
    begun: dict[str, tuple[float, int]] = {}  # when, and how much was done: a resumed training's is not 0
    told = time.monotonic()

    def progress(what: str, done: int, total: int) -> None:
        nonlocal told
        now = time.monotonic()
        began, first = begun.setdefault(what, (now, done))
        if now - told >= SECONDS:
            told, gone = now, now - began
            left = gone * (total - done) / (done - first) if done > first else None
            words = in_words(done, total, gone, left)
            console.print(f"{what}: {words}", markup=False, highlight=False, soft_wrap=True)

    return progress


def _quiet(console: Console) -> None:
    """What calibrant logs or warns of is printed, a line each; the libraries' chatter is not."""
    import transformers

    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()

    ours = Path(__file__).parents[1]

    def show(message: Warning | str, category: type[Warning], filename: str, *rest: object) -> None:
        if Path(filename).is_relative_to(ours):
            told = f"calibrant: warning: {visible(message)}"
            console.print(told, markup=False, highlight=False, emoji=False)

    warnings.showwarning = show  # type: ignore[assignment]
    logger = logging.getLogger("calibrant")
    handler = RichHandler(console=console, show_time=False, show_level=False, show_path=False)
    handler.setFormatter(_OneLine())
    logger.handlers = [handler]
    logger.setLevel(logging.INFO)
