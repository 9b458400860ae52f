"""``calibrant predict``."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from calibrant.cli.options import PairColumn, RunFolder, TextColumn, belong, there
from calibrant.cli.printing import say, say_json
from calibrant.errors import UserError


def predict(
    run: RunFolder,
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FILE",
            help="A file as for training, or - for one text a line on standard input, answered as it comes. "
            "With a folder --out: any number of Parquet, CSV or JSON-lines files, patterns "
            "('corpus/*.parquet') or addresses (s3://…).",
        ),
    ] = None,
    text: Annotated[list[str] | None, typer.Option(help="A text to classify; repeat for more.")] = None,
    text_column: TextColumn = None,
    pair_column: PairColumn = None,
    threshold: Annotated[
        float | None,
        typer.Option(
            min=0, max=1, help="Abstain below this confidence; 0 never [the rule of `calibrant threshold`]."
        ),
    ] = None,
    out: Annotated[
        str | None,
        typer.Option(
            help="Write FILE with all its columns, and the answers beside them, to this file; or to the "
            "parts of this folder, which goes on where it was killed."
        ),
    ] = None,
    format_: Annotated[
        str | None,
        typer.Option("--format", help="Of --out FILE: csv, jsonl or parquet [as its name ends]."),
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
    engine: Annotated[
        str | None,
        typer.Option(help="For a folder: local (this process) or ray (a Ray cluster) [local]."),
    ] = None,
    address: Annotated[
        str | None, typer.Option(help="Of a running Ray cluster [one of this machine's cores].")
    ] = None,
    threads: Annotated[
        int | None,
        typer.Option(min=1, help="For a folder: cores for each model [all with local, 1 with ray]."),
    ] = None,
) -> None:
    """Classify texts: one JSON object a line, with label, confidence, familiarity, abstain and probabilities.

    With --out the answers are columns beside those of FILE, rounded, in the same order.
    With --coverage also `set`: the labels that the text may have, the most probable first.

    \b
    Example:  calibrant predict runs/tickets --text "My card was swallowed"
              calibrant predict runs/tickets tickets.csv --out decided.csv
              calibrant predict runs/tickets 'corpus/*.parquet' --out decisions/
    """
    files = files or []
    if bool(files) == bool(text):
        raise UserError("Give either a FILE (or - for standard input) or --text.")
    lines = files == ["-"]
    columns = {"text_column": text_column, "pair_column": pair_column}
    belong(bool(files) and not lines, "a FILE that has columns; leave it out", **columns)
    keeps = "a FILE whose columns it keeps; send other answers on with >"
    belong(bool(files) and "-" not in files, keeps, out=out)
    belong(out is not None, "--out; add, for instance, --out decided.csv", format=format_)
    folder = out is not None and not _is_file(out, format_)
    if len(files) > 1 and not folder:
        raise UserError(f"{len(files)} files are answered into a folder; add --out decisions/.")
    belong(not folder, "one file --out; the parts of a folder have that of the corpus", format=format_)
    workers = {"engine": engine, "address": address, "threads": threads}
    belong(folder, "a folder; add, for instance, --out decisions/", **workers)
    belong(engine == "ray", "--engine ray; it is of a Ray cluster", address=address)
    sets = {"set_method": set_method, "set_per_class": set_per_class, "dev": dev}
    belong(coverage is not None, "--coverage; add, for instance, --coverage 0.9", **sets)
    if not folder and not lines:
        for file in files:
            there(file)
    from calibrant.cli.console import working

    with working() as progress:
        from calibrant.tasks import predict as task

        options: dict[str, Any] = {
            **columns,
            "threshold": threshold,
            "coverage": coverage,
            "set_method": "lac" if set_method is None else set_method,
            "set_per_class": set_per_class,
            "dev": dev,
            "top": top,
            "progress": progress,
        }
        held: list[dict[str, Any]] = []
        told = None
        if out is None:
            source: dict[str, Any] = {"texts": text} if text else {"file": files[0]}
            if lines:
                source = {"stream": sys.stdin.buffer}
            for row in task.predict(run, **source, **options):
                if sys.stdout.isatty() and not lines:  # where the bar is in the way
                    held.append(row)
                else:
                    say_json(row)
        elif not folder:
            counts = task.predict_file(run, files[0], Path(out), kind=format_, **options)
            told = "{texts} texts, {abstained} abstained on, {blank} blank".format(**counts)
        else:
            from calibrant.corpus.engines import engines
            from calibrant.registry import pick

            kind = pick("engine", "local" if engine is None else engine, engines())
            where: dict[str, Any] = {"threads": threads} | ({} if address is None else {"address": address})
            total = task.predict_corpus(run, files, out, engine=kind(**where), **options)
            told = f"{total.texts} texts, {total.abstained} abstained on, {total.rejected} rejected"
    for row in held:
        say_json(row)
    if told is not None:
        say(f"{out}: {told}")


def _is_file(out: str, format_: str | None) -> bool:
    """Whether it is the name of a file, and not of a folder."""
    if "://" in out or out.endswith("/") or Path(out).is_dir():
        return False
    return format_ is not None or Path(out).suffix != ""
