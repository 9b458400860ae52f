"""Files and folders that are there whole or not at all.

Until then they have a temporary name, ``.NAME.MACHINE-PROCESS.RANDOM.calibrant``. What a kill leaves under
such a name is removed by the next write into the same folder, once its process is gone.
"""

import json
import os
import re
import secrets
import shutil
import zlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from platform import node
from typing import Any

from calibrant._system import lock
from calibrant._system.failures import writing
from calibrant.errors import UserError

_TEMPORARY = re.compile(r"\..+\.([0-9a-f]{8})-(\d+)\.[0-9a-f]{16}\.calibrant")
_EARLIER = re.compile(r"\..+\.(\d+)\.tmp")  # as the first versions called them
_in_use: set[str] = set()


def write_bytes(path: Path, content: bytes) -> None:
    """Write to a temporary file beside it, then rename."""
    with writing(path, "What was there before is whole."), _temporary(path) as temporary:
        # Not tempfile: its files are for the owner's eyes only, and a run or a page is there to be shared.
        with open(temporary, "xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)


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
    with writing(path, "Nothing of it was left behind."):
        path.parent.mkdir(parents=True, exist_ok=True)
        with _temporary(path) as temporary:
            temporary.mkdir()
            yield temporary
            share(temporary)
            sync(temporary)
            if path.exists():
                path.rmdir()  # an empty one; one that was filled meanwhile stays
            temporary.replace(path)


def remove_folder(path: Path) -> None:
    """Rename, then remove: what a kill leaves half of is not taken for the whole."""
    with suppress(FileNotFoundError), _temporary(path) as temporary:
        path.replace(temporary)


def share(folder: Path) -> None:
    """Give its files the mode that the umask gives; safetensors writes them for the owner's eyes only."""
    mode = folder.stat().st_mode & 0o666
    for file in folder.rglob("*"):
        if file.is_file():
            file.chmod(mode)


def sync(folder: Path) -> None:
    """Have the disk hold a folder and all that is in it, so that what it replaces may go."""
    if os.name == "nt":  # where a folder cannot be opened
        return
    for path in (*folder.rglob("*"), folder):
        file = os.open(path, os.O_RDONLY)
        try:
            os.fsync(file)
        finally:
            os.close(file)


def check_folder(folder: Path, what: str) -> None:
    """Refuse, before long work, a folder that cannot be made or written to."""
    there = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not there.is_dir() or not os.access(there, os.W_OK):
        why = "is not a folder" if not there.is_dir() else "cannot be written to"
        raise UserError(f"{there} {why}; name another place for {what}.")


def holds_anything(folder: Path, known: Collection[str] = ()) -> bool:
    """Whether there is more in it than what is known and what a kill may have left of us."""
    names = {entry.name for entry in folder.iterdir()} - {lock.FILE, *known}
    return not all(_TEMPORARY.fullmatch(name) or _EARLIER.fullmatch(name) for name in names)


@contextmanager
def _temporary(path: Path) -> Iterator[Path]:
    """A name beside it that nobody else has; whatever is there at the end goes."""
    _sweep(path.parent)
    name = f".{path.name}.{_machine()}-{os.getpid()}.{secrets.token_hex(8)}.calibrant"
    _in_use.add(name)
    try:
        yield path.with_name(name)
    finally:
        _remove(path.with_name(name))
        _in_use.discard(name)


def _sweep(folder: Path) -> None:
    """Remove what killed processes of this machine left."""
    with suppress(OSError):
        for entry in list(folder.iterdir()):
            made = _TEMPORARY.fullmatch(entry.name)
            if made and made[1] == _machine() and entry.name not in _in_use and _gone(int(made[2])):
                _remove(entry)


def _gone(process: int) -> bool:
    if process == os.getpid():  # in a container the next process has the number of the one before
        return True
    if os.name == "nt":  # where the question below ends the process
        return False
    try:
        os.kill(process, 0)
    except OSError as error:
        return isinstance(error, ProcessLookupError)
    return False


def _machine() -> str:
    return f"{zlib.crc32(node().encode()):08x}"


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()
