"""``calibrant report``."""

from pathlib import Path
from typing import Annotated

import typer

from calibrant.cli.options import Figures, LabelColumn, PairColumn, TextColumn, all_runs, there
from calibrant.cli.printing import say, say_json


def report(
    runs: Annotated[list[Path], typer.Argument(callback=all_runs, help="Run directories, one column each.")],
    out: Annotated[Path, typer.Option(help="The HTML page to write.")],
    test: Annotated[
        str | None,
        typer.Option(callback=there, help="Labelled test file, or a dataset's name [the runs' own dataset]."),
    ] = None,
    ood: Annotated[
        str | None,
        typer.Option(
            callback=there, help="Unfamiliar text: a file or a dataset's name [the runs' own dataset's]."
        ),
    ] = None,
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    pair_column: PairColumn = None,
    figures: Figures = None,
    json_: Annotated[bool, typer.Option("--json", help="Print one JSON object, run by run.")] = False,
) -> None:
    """Measure runs on the same texts and set them side by side on one page.

    \b
    Example:  calibrant report runs/plain runs/smoothed --test test.csv --ood other.csv --out page.html
    """
    from calibrant.cli.console import working

    with working() as progress:
        from calibrant.tasks import report as task

        entries = task.report(
            runs,
            out=out,
            test=test,
            ood=ood,
            text_column=text_column,
            label_column=label_column,
            pair_column=pair_column,
            figures=figures,
            progress=progress,
        )
    metrics = {entry.name: entry.metrics for entry in entries}
    if json_:
        say_json(metrics)
        return
    from calibrant.cli.tables import metric_table

    say(metric_table(metrics))
    for entry in entries:
        say("\n".join([f"\n{entry.name}", *entry.verdict, f"Next: {entry.command}"]))
    say(f"Report: {out}")
