"""What the commands share on the terminal: a progress bar with the time left, and quiet libraries."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
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
    with Bars(*columns, console=console) as bars:
        tasks = {}

        def progress(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(what, total=total)
            bars.update(tasks[what], completed=done, total=total)

        yield progress


def _quiet(console: Console) -> None:
    """Warnings of ours are printed as one line; the libraries' chatter is not printed."""
    import transformers

    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()

    def show(message: Warning | str, category: type[Warning], filename: str, *rest: object) -> None:
        if "calibrant" in filename:
            console.print(f"calibrant: warning: {message}", markup=False, highlight=False)

    warnings.showwarning = show  # type: ignore[assignment]
