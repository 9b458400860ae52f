"""``calibrant study table``."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from calibrant.cli.printing import say, say_json
from calibrant.errors import UserError


class What(StrEnum):
    """Which tables."""

    ece = "ece"
    nbaucc = "nbaucc"
    ablation = "ablation"
    datasets = "datasets"
    more = "more"
    all = "all"


class Format(StrEnum):
    """How they are written."""

    markdown = "markdown"
    latex = "latex"
    html = "html"


def table(
    study: Annotated[Path, typer.Argument(help="The study's folder.")] = Path("runs/study-laptop"),
    what: Annotated[
        What,
        typer.Option(help="ece has accuracy too; more: ranking, likelihood, training time."),
    ] = What.all,
    format_: Annotated[
        Format, typer.Option("--format", help="How the tables are written.")
    ] = Format.markdown,
    calibrator: Annotated[
        str | None,
        typer.Option(
            help="Show every row with this one: none, temperature or temperature+familiarity [each its own]."
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write them to this file [print them].")] = None,
    json_: Annotated[bool, typer.Option("--json", help="Print one JSON list of the numbers.")] = False,
) -> None:
    """Draw the paper's tables from what has been measured so far, beside what the paper prints.

    \b
    Example:  calibrant study table runs/study-laptop --what ece --format latex --out ece.tex
    """
    from dataclasses import asdict

    from calibrant._system.atomic import write_text
    from calibrant.registry import pick
    from calibrant.study.cells import read_cells
    from calibrant.study.render import FORMATS
    from calibrant.study.rows import ANSWERS
    from calibrant.study.tables import TABLES

    if out is not None and out.is_dir():
        raise UserError(f"--out {out} is a folder; all tables go into one file, so name one in it.")
    cells = read_cells(study)
    if calibrator is not None:
        pick("calibrator", calibrator, dict.fromkeys(ANSWERS))
        cells = [asked for cell in cells if (asked := cell.answering(calibrator)) is not None]
    wanted = TABLES if what is What.all else [what.value]
    tables = [made for name in wanted for made in TABLES[name](cells)]
    text = FORMATS[format_](tables)
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        write_text(out, text)
    if json_:
        say_json([asdict(made) for made in tables])
    elif out is not None:
        say(f"{len(tables)} tables of {len(cells)} cells: {out}")
    else:
        say(text, nl=False)
