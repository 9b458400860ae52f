"""``calibrant predict``."""

import json
import sys
from dataclasses import asdict
from typing import Annotated

import typer

from calibrant.cli.options import RunFolder, TextColumn
from calibrant.errors import UserError

AT_ONCE = 4096
"""Texts whose answers are printed together, so that an interruption keeps what was answered before."""


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
    set_: Annotated[
        float | None,
        typer.Option(
            "--set",
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
    """Classify texts: one JSON object a line, with label, confidence, abstain and probabilities.

    With --set also `set`: the labels that the text may have, the most probable first.

    \b
    Example:  calibrant predict runs/tickets --text "My card was swallowed"
    """
    if (file is None) == (not text):
        raise UserError("Give either a FILE (or - for standard input) or --text.")
    if text_column is not None and file in (None, "-"):
        raise UserError("--text-column goes with a FILE that has columns; leave it out.")
    if set_ is None:
        for option, given in (
            ("--set-method", set_method),
            ("--set-per-class", set_per_class or None),
            ("--dev", dev),
        ):
            if given is not None:
                raise UserError(f"{option} goes with --set; add, for instance, --set 0.9.")
    from calibrant.cli.console import working

    with working() as progress:
        import numpy as np

        from calibrant.conformal import check_request
        from calibrant.data.files import read_file, read_lines
        from calibrant.prediction import load
        from calibrant.reference import answer_dev

        method = "lac" if set_method is None else set_method
        if set_ is not None:
            check_request(set_, method)
        classifier = load(run)
        if text:
            texts = text
        elif file == "-":
            texts = read_lines(sys.stdin.buffer, "standard input")
        else:
            texts = list(read_file(file or "", text_column or classifier.run.config.text_column).texts)
        rule = None
        if set_ is not None:
            answer_dev(classifier, dev, progress)
            rule = classifier.set_rule(set_, method, set_per_class)
        held: list[str] = []
        for start in range(0, len(texts), AT_ONCE):
            some = texts[start : start + AT_ONCE]

            def moved(what: str, done: int, total: int, start: int = start) -> None:
                progress(what, start + done, len(texts))

            decisions = classifier.predict(some, threshold=threshold, progress=moved)
            rows = [asdict(decision) for decision in decisions]
            if rule is not None:
                p = np.array([list(decision.probabilities.values()) for decision in decisions])
                for row, labels in zip(rows, rule.labels(p, classifier.label_names), strict=True):
                    row["set"] = labels
            lines = [json.dumps(row, ensure_ascii=False) for row in rows]
            if sys.stdout.isatty():  # where the bar is in the way
                held += lines
            else:
                typer.echo("\n".join(lines))
    for line in held:
        typer.echo(line)
