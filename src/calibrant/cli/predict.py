"""``calibrant predict``."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from calibrant.cli.options import RunFolder, TextColumn, there
from calibrant.cli.printing import say, say_json
from calibrant.errors import UserError


def predict(
    run: RunFolder,
    file: Annotated[
        str | None,
        typer.Argument(
            callback=there, help="A file as for training, or - for one text a line on standard input."
        ),
    ] = None,
    text: Annotated[list[str] | None, typer.Option(help="A text to classify; repeat for more.")] = None,
    text_column: TextColumn = None,
    threshold: Annotated[
        float | None,
        typer.Option(
            min=0, max=1, help="Abstain below this confidence; 0 never [the rule of `calibrant threshold`]."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Write FILE with all its columns, and the answers beside them, to this file."),
    ] = None,
    format_: Annotated[
        str | None, typer.Option("--format", help="Of --out: csv, jsonl or parquet [as its name ends].")
    ] = None,
    top: Annotated[
        int | None, typer.Option(min=1, help="Keep the probabilities of so many labels [all; with --out: 1].")
    ] = None,
    coverage: Annotated[
        float | None,
        typer.Option(
            help="Add the labels that hold the true one for this share of all texts, as 0.9, and not of "
            "those alone that the rule answers.",
        ),
    ] = None,
    set_method: Annotated[
        str | None, typer.Option(help="lac: smallest sets; aps: larger where unsure [lac].")
    ] = None,
    set_per_class: Annotated[
        bool, typer.Option("--set-per-class", help="That share for each class, not over all texts.")
    ] = False,
    dev: Annotated[
        str | None,
        typer.Option(
            callback=there,
            help="Labelled file to fit the sets on from now on, columns as in training "
            "[the run's dev texts].",
        ),
    ] = None,
) -> None:
    """Classify texts: one JSON object a line, with label, confidence, familiarity, abstain and probabilities.

    With --out the answers are columns beside those of FILE, rounded, in the same order.
    With --coverage also `set`: the labels that the text may have, the most probable first.

    \b
    Example:  calibrant predict runs/tickets --text "My card was swallowed"
              calibrant predict runs/tickets tickets.csv --out decided.csv
    """
    if (file is None) == (not text):
        raise UserError("Give either a FILE (or - for standard input) or --text.")
    if text_column is not None and file in (None, "-"):
        raise UserError("--text-column goes with a FILE that has columns; leave it out.")
    if out is not None and file in (None, "-"):
        raise UserError("--out goes with a FILE whose columns it keeps; send other answers on with >.")
    if format_ is not None and out is None:
        raise UserError("--format goes with --out; add, for instance, --out decided.csv.")
    if coverage is None:
        for option, given in (
            ("--set-method", set_method),
            ("--set-per-class", set_per_class or None),
            ("--dev", dev),
        ):
            if given is not None:
                raise UserError(f"{option} goes with --coverage; add, for instance, --coverage 0.9.")
    from calibrant.cli.console import working

    with working() as progress:
        from calibrant.data.files import is_empty, read_lines
        from calibrant.tasks import predict as task

        options: dict[str, Any] = {
            "text_column": text_column,
            "threshold": threshold,
            "coverage": coverage,
            "set_method": "lac" if set_method is None else set_method,
            "set_per_class": set_per_class,
            "dev": dev,
            "top": top,
            "progress": progress,
        }
        held: list[dict[str, Any]] = []
        if out is not None and file is not None:
            counts = task.decide_table(run, file, out, kind=format_, **options)
        else:
            texts: list[str | None] | None = None if text is None else list(text)
            if file == "-":
                lines = read_lines(sys.stdin.buffer, "standard input", blank=True)
                file, texts = None, [None if is_empty(line) else line for line in lines]
            for row in task.predict(run, texts=None if file else texts, file=file, **options):
                if sys.stdout.isatty():  # where the bar is in the way
                    held.append(row)
                else:
                    say_json(row)
    for row in held:
        say_json(row)
    if out is not None:
        say(f"{out}: {counts['texts']} texts, {counts['abstained']} abstained on, {counts['blank']} blank")
