"""One process at a time changes a folder.

``flock`` on FOLDER/.lock: gone with its process, however that ends. Whoever holds it writes its number and
what it does there into the file, and removes the file before it lets go. So whoever gets a lock looks whether
the file is still the one in the folder.
"""

import os
import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal

from calibrant._system.failures import writing
from calibrant.errors import Busy

try:
    import fcntl
except ImportError:  # Windows, where nothing is locked
    fcntl = None  # type: ignore[assignment]

FILE = ".lock"
Doing = Literal["trained", "written", "changed"]
GRACE = 0.5
"""Seconds until a lock's file surely tells who holds it; a killed process may have left its own number."""
PATIENCE = 60.0
"""Seconds to wait for a change, which takes a few hundredths of one."""

_held: set[tuple[int, int, Path]] = set()


@contextmanager
def alone(folder: Path, doing: Doing = "changed") -> Iterator[None]:
    """The folder is this thread's until the end of the block. In it, the same may be asked for again.

    Raises ``Busy`` where another process trains or writes there, and after a minute where it changes
    something.
    """
    holder = (os.getpid(), threading.get_ident(), folder.resolve())
    if fcntl is None or holder in _held:
        yield
        return
    path = folder / FILE
    with writing(folder, "Nothing was changed."):
        file = _acquire(path, doing)
    _held.add(holder)
    try:
        yield
    finally:
        _held.discard(holder)
        with suppress(OSError):
            path.unlink()
        os.close(file)


def _acquire(path: Path, doing: Doing) -> int:
    begun = time.monotonic()
    while True:
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_at(file, path):
                with suppress(OSError):  # a full disk: others learn less
                    os.ftruncate(file, 0)
                    os.pwrite(file, f"{doing} by process {os.getpid()}".encode(), 0)
                return file
        except BlockingIOError:
            _refuse(path.parent, os.pread(file, 100, 0).decode(errors="replace"), time.monotonic() - begun)
            time.sleep(random.uniform(0.005, 0.03))  # so that those who wait do not ask in step
        except BaseException:
            os.close(file)
            raise
        os.close(file)


def _is_at(file: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file), os.stat(path))
    except FileNotFoundError:
        return False


def _refuse(folder: Path, told: str, waited: float) -> None:
    """Raise where there is no use in waiting longer."""
    holder = told or "changed by another process"
    if told.startswith(("trained", "written")) and waited > GRACE:
        raise Busy(f"{folder} is being {holder} now; wait until it is done, or take another folder.")
    if waited > PATIENCE:
        raise Busy(f"{folder} is being {holder}, for more than {PATIENCE:.0f} seconds; look what it does.")
