"""What the commands share on the terminal: a progress bar with the time left, and quiet libraries."""

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.logging import RichHandler
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bars

from calibrant.errors import visible
from calibrant.types import Progress


class _OneLine(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return visible(record.getMessage())


@contextmanager
def working() -> Iterator[Progress]:
    """A ``Progress`` drawn as bars on standard error, so that standard output stays clean for data."""
    console = Console(stderr=True)
    _quiet(console)
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    # Standard output is left alone: rich would send it to standard error, too.
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
