"""Options that several commands have: one spelling and one help text for each.

A file or a run that is not there is told while the command is parsed, before anything heavy is loaded.
"""

from pathlib import Path
from typing import Annotated, Any

import typer

from calibrant.errors import UserError


def there(name: str | None) -> str | None:
    """A file that a user names, where the name is not that of a dataset or a folder."""
    if name is not None and Path(name).suffix:
        from calibrant.data.tables import check_path

        check_path(name)
    return name


def run_there(path: Path) -> Path:
    """A run that a user names."""
    from calibrant.runs.place import check_run

    check_run(path)
    return path


def all_runs(paths: list[Path]) -> list[Path]:
    """Several of them."""
    return [run_there(path) for path in paths]


def belong(fits: bool, where: str, **options: Any) -> None:
    """Refuse options that were given where they do not fit: "--dev goes with …"."""
    for name, given in options.items():
        if not fits and given is not None and given is not False:
            raise UserError(f"--{name.replace('_', '-')} goes with {where}.")


RunFolder = Annotated[Path, typer.Argument(help="A run directory.", callback=run_there)]
TextColumn = Annotated[str | None, typer.Option(help="Column that holds the text [as in training].")]
LabelColumn = Annotated[str | None, typer.Option(help="Column that holds the label [as in training].")]
PairColumn = Annotated[
    str | None, typer.Option(help="Column that holds the second text of a pair [as in training].")
]
Dev = Annotated[
    str | None,
    typer.Option(
        callback=there,
        help="Labelled file with text that training has not seen [the run's own dev texts].",
    ),
]
Page = Annotated[Path | None, typer.Option(help="Also write an HTML page.")]
Figures = Annotated[
    Path | None, typer.Option(help="Also write the page's figures into this folder, as SVG and PNG.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
