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

from calibrant.types import Progress


@contextmanager
def working() -> Iterator[Progress]:
    """A ``Progress`` drawn as bars on standard error, so that standard output stays clean for data."""
    console = Console(stderr=True)
    _quiet(console)
    columns = (
        TextColumn("{task.description}"),
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
            tasks[what] = bars.add_task(what, total=total)
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
            console.print(f"calibrant: warning: {message}", markup=False, highlight=False)

    warnings.showwarning = show  # type: ignore[assignment]
    logger = logging.getLogger("calibrant")
    logger.handlers = [RichHandler(console=console, show_time=False, show_level=False, show_path=False)]
    logger.setLevel(logging.INFO)
