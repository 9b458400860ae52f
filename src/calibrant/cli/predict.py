"""``calibrant predict``."""

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from calibrant.errors import UserError


def predict(
    run: Annotated[Path, typer.Argument(help="A run directory.")],
    file: Annotated[
        str | None, typer.Argument(help="A file as for training, or - for one text a line on standard input.")
    ] = None,
    text: Annotated[list[str] | None, typer.Option(help="A text to classify; repeat for more.")] = None,
    text_column: Annotated[
        str | None, typer.Option(help="Column that holds the text [as in training].")
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option(
            min=0, max=1, help="Abstain below this confidence; 0 never [the rule of `calibrant threshold`]."
        ),
    ] = None,
) -> None:
    """Classify texts: one JSON object a line, with label, confidence, abstain and probabilities.

    Example:  calibrant predict runs/tickets --text "My card was swallowed"
    """
    if (file is None) == (not text):
        raise UserError("Give either a FILE (or - for standard input) or --text.")
    from calibrant.cli.console import working

    with working() as progress:
        from calibrant.data.files import read_file, read_lines
        from calibrant.prediction import load

        classifier = load(run)
        if text:
            texts = text
        elif file == "-":
            texts = read_lines(sys.stdin.buffer, "standard input")
        else:
            texts = list(read_file(file or "", text_column or classifier.run.config.text_column).texts)
        decisions = classifier.predict(texts, threshold=threshold, progress=progress)
    for decision in decisions:
        typer.echo(json.dumps(asdict(decision), ensure_ascii=False))
