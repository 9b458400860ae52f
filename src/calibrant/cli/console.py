"""What the commands share on the terminal: a progress bar with the time left, and quiet libraries."""

import gc
import logging
import sys
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

from calibrant._system.progress import Pace, in_words
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
    _load()
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


class _Words(ProgressColumn):
    def render(self, task: Task) -> Text:
        done, total = int(task.completed), int(task.total or 0)
        return Text(in_words(done, total, task.elapsed or 0, task.time_remaining))


def _lines(console: Console) -> Progress:
    paces: dict[str, Pace] = {}
    told = time.monotonic()

    def progress(what: str, done: int, total: int) -> None:
        nonlocal told
        pace = paces.setdefault(what, Pace(done))
        if time.monotonic() - told >= SECONDS:
            told, words = time.monotonic(), pace.words(done, total)
            console.print(f"{what}: {words}", markup=False, highlight=False, soft_wrap=True)

    return progress


def _load() -> None:
    """What all commands need that work: the classifier, and with it torch and transformers.

    It is there to the end, so that the garbage collector need not look at it, which is a quarter of the time.
    """
    if "calibrant.classifier" in sys.modules:
        return
    gc.disable()
    try:
        import calibrant.classifier  # noqa: F401
    finally:
        gc.freeze()
        gc.enable()


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
