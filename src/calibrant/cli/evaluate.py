"""``calibrant evaluate``."""

from typing import Annotated

import typer

from calibrant.cli.options import (
    Figures,
    Json,
    LabelColumn,
    Page,
    PairColumn,
    RunFolder,
    TextColumn,
    belong,
    there,
)
from calibrant.cli.printing import say, say_json


def evaluate(
    run: RunFolder,
    test: Annotated[
        str | None,
        typer.Option(callback=there, help="Labelled test file, or a dataset's name [the run's own dataset]."),
    ] = None,
    ood: Annotated[
        str | None,
        typer.Option(
            callback=there, help="Unfamiliar text: a file or a dataset's name [the run's own dataset's]."
        ),
    ] = None,
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    pair_column: PairColumn = None,
    scores: Annotated[
        bool, typer.Option("--scores", help="Also measure every score of `calibrant list scores`.")
    ] = False,
    report: Page = None,
    figures: Figures = None,
    json_: Json = False,
) -> None:
    """Measure a run: accuracy, calibration, and how well it knows what it does not know.

    \b
    Example:  calibrant evaluate runs/tickets --test test.csv --ood other.csv --report report.html
    """
    belong(report is not None, "--report; name the page, as in --report page.html", figures=figures)
    from calibrant.cli.console import working

    with working() as progress:
        from calibrant.tasks import evaluate as task
        from calibrant.tasks.report import check_report, write_measured

        if report is not None:
            check_report(report, figures)
        measured = task.evaluate(
            run,
            test=test,
            ood=ood,
            text_column=text_column,
            label_column=label_column,
            pair_column=pair_column,
            scores=scores,
            progress=progress,
        )
        if report is not None:
            notes, title = measured.notes + measured.rule_notes, f"calibrant: {run}"
            write_measured(report, title, [measured], notes=notes, figures=figures, progress=progress)
    if json_:
        say_json(measured.entry.metrics)
        return
    from calibrant.cli.tables import metric_table, score_table

    say(metric_table({str(run): measured.entry.metrics}))
    if scores:
        say(score_table(measured.entry.metrics["scores"]))
    if "abstention" in measured.entry.metrics:
        from calibrant.runs.card import abstention_in_words

        say(f"By its rule: {abstention_in_words(measured.entry.metrics['abstention'])}")
    if report is not None:
        say(f"Report: {report}")
    entry = measured.entry
    say("\n".join(["", *entry.verdict, f"Next: {entry.command}"]))
