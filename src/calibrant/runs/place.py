"""Where a run is; nothing heavy is loaded to tell."""

from pathlib import Path

from calibrant.errors import UserError

FILE = "calibrant.json"


def check_run(path: Path) -> None:
    """Refuse a folder without a record."""
    if not (path / FILE).exists():
        instead = f"Train one with `calibrant train --out {path} …`."
        if (path.absolute().parent / FILE).exists():
            instead = f"Did you mean {path.parent}?"
        raise UserError(f"{path} is not a run: it has no {FILE}. {instead}")
