"""``calibrant predict``."""

import sys
from typing import Annotated, Any

import typer

from calibrant.cli.options import RunFolder, TextColumn
from calibrant.cli.printing import say_json
from calibrant.errors import UserError


def predict(
    run: RunFolder,
    file: Annotated[
        str | None, typer.Argument(help="A file as for training, or - for one text a line on standard input.")
    ] = None,
    text: Annotated[list[str] | None, typer.Option(help="A text to classify; repeat for more.")] = None,
    text_column: TextColumn = None,
    threshold: Annotated[
        float | None,
        typer.Option(
            min=0, max=1, help="Abstain below this confidence; 0 never [the rule of `calibrant threshold`]."
        ),
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
            help="Labelled file to fit the sets on from now on, columns as in training [the run's dev texts]."
        ),
    ] = None,
) -> None:
    """Classify texts: one JSON object a line, with label, confidence, familiarity, abstain and probabilities.

    With --coverage also `set`: the labels that the text may have, the most probable first.

    \b
    Example:  calibrant predict runs/tickets --text "My card was swallowed"
    """
    if (file is None) == (not text):
        raise UserError("Give either a FILE (or - for standard input) or --text.")
    if text_column is not None and file in (None, "-"):
        raise UserError("--text-column goes with a FILE that has columns; leave it out.")
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
        from calibrant.data.files import read_lines
        from calibrant.tasks import predict as task

        if file == "-":
            file, text = None, read_lines(sys.stdin.buffer, "standard input")
        held: list[dict[str, Any]] = []
        for row in task.predict(
            run,
            texts=None if file else text,
            file=file,
            text_column=text_column,
            threshold=threshold,
            coverage=coverage,
            set_method="lac" if set_method is None else set_method,
            set_per_class=set_per_class,
            dev=dev,
            progress=progress,
        ):
            if sys.stdout.isatty():  # where the bar is in the way
                held.append(row)
            else:
                say_json(row)
    for row in held:
        say_json(row)
