"""Options that several commands have: one spelling and one help text for each."""

from pathlib import Path
from typing import Annotated

import typer

RunFolder = Annotated[Path, typer.Argument(help="A run directory.")]
TextColumn = Annotated[str | None, typer.Option(help="Column that holds the text [as in training].")]
LabelColumn = Annotated[str | None, typer.Option(help="Column that holds the label [as in training].")]
Dev = Annotated[
    str | None,
    typer.Option(help="Labelled file with text that training has not seen [the run's own dev texts]."),
]
Page = Annotated[Path | None, typer.Option(help="Also write an HTML page.")]
Figures = Annotated[
    Path | None, typer.Option(help="Also write the page's figures into this folder, as SVG and PNG.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
