"""Files and folders that are there whole or not at all."""

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from calibrant.errors import UserError


def write_bytes(path: Path, content: bytes) -> None:
    """Write to a temporary file beside it, then rename."""
    # Not tempfile: its files are for the owner's eyes only, and a run or a page is there to be shared.
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        temporary.write_bytes(content)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """As UTF-8."""
    write_bytes(path, text.encode())


def write_json(path: Path, value: Any) -> None:
    """As JSON that a person can read and any parser takes (NaN is refused)."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """A folder to fill, which becomes ``path`` at the end; what fails on the way leaves nothing."""
    path = path.resolve()
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    temporary.mkdir()
    try:
        yield temporary
        if path.exists():
            path.rmdir()  # an empty one; one that was filled meanwhile stays
        temporary.replace(path)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def remove_folder(path: Path) -> None:
    """Rename, then remove: what a kill leaves half of is not taken for the whole."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with suppress(FileNotFoundError):
        path.replace(temporary)
        shutil.rmtree(temporary)


def check_folder(folder: Path, what: str) -> None:
    """Refuse, before long work, a folder that cannot be made or written to."""
    there = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not there.is_dir() or not os.access(there, os.W_OK):
        why = "is not a folder" if not there.is_dir() else "cannot be written to"
        raise UserError(f"{there} {why}; name another place for {what}.")
