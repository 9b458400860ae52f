"""``calibrant study figure``."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from calibrant.cli.printing import say


class Format(StrEnum):
    """Of the files."""

    svg = "svg"
    png = "png"
    pdf = "pdf"


def figure(
    study: Annotated[Path, typer.Argument(help="The folder of a study.")] = Path("runs/study-laptop"),
    what: Annotated[
        str,
        typer.Option(
            help="One of reliability, ood-histogram, curves, parameters, illustration or all; a wrong name "
            "lists what there is."
        ),
    ] = "all",
    dataset: Annotated[
        list[str] | None, typer.Option(help="Only this dataset; repeat for more [all of the study's].")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Where the files go [STUDY/figures].")] = None,
    format: Annotated[Format, typer.Option(help="Of the files.")] = Format.svg,
) -> None:
    """Draw what the study has measured so far; each figure comes with its caption, as text.

    \b
    Example:  calibrant study figure runs/study-laptop --what curves --dataset 20ng-15
    """
    from calibrant.cli.console import working

    with working() as progress:
        from calibrant.study.figures.files import write_figures

        written = write_figures(study, out or study / "figures", what, dataset or (), format, progress)
    for path in written.paths:
        say(path)
    for sentence in written.missing:
        say(f"calibrant: {sentence}", err=True)
