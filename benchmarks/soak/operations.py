"""SIGKILL before the n-th operation on a file, for every n.

Python tells an audit hook of each before it is done. What Rust and C++ libraries do by themselves it does not
see; for that there are the random kills.
"""

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from soak.commands import COMMANDS
from soak.fork import Process
from soak.trial import Bench

EVENTS = frozenset(
    (
        *("open", "os.chmod", "os.link", "os.listdir", "os.mkdir", "os.remove", "os.rename", "os.rmdir"),
        *("os.scandir", "os.symlink", "os.truncate", "os.utime", "shutil.copyfile", "shutil.move"),
        *("shutil.rmtree", "fcntl.flock"),
    )
)


def watch(here: Path, then: Callable[[int], None]) -> Callable[[], None]:
    """To be done in the process: count its operations on files in ``here``, and say each number."""
    root = str(here.resolve())

    def install() -> None:
        count = 0

        def hook(event: str, arguments: tuple[Any, ...]) -> None:
            nonlocal count
            if event in EVENTS and _inside(root, event, arguments[0]):
                count += 1
                then(count)

        sys.addaudithook(hook)

    return install


def _inside(root: str, event: str, path: Any) -> bool:
    if event == "fcntl.flock":  # of which only the number of the file is told
        return True
    if not isinstance(path, str | bytes | os.PathLike):
        return False
    return os.path.abspath(os.fsdecode(path)).startswith(root + os.sep)  # names in an open folder, too


def count(bench: Bench, name: str) -> int:
    """How many there are in a whole command."""
    command, here = COMMANDS[name], bench.folder(f"count-{name}")
    command.begin(bench.world, here)
    last = bench.world / f"count-{name}.last"

    def tell(number: int) -> None:
        file = os.open(last, os.O_WRONLY | os.O_CREAT)
        os.pwrite(file, str(number).encode(), 0)
        os.close(file)

    if code := Process(here, command.arguments, watch(here, tell)).wait():
        raise RuntimeError(f"{name} ended with {code}")
    number = int(last.read_text())
    bench.clear(f"count-{name}")
    return number


def kill_at(bench: Bench, name: str, number: int) -> tuple[str, str]:
    """Before that operation. A command whose order is not always the same may end before it comes."""
    command = COMMANDS[name]

    def disturb(here: Path) -> tuple[bool, str]:
        def then(count: int) -> None:
            if count == number:
                os.kill(os.getpid(), signal.SIGKILL)

        process = Process(here, command.arguments, watch(here, then))
        code = process.wait()
        return code < 0, process.told if code > 0 else ""

    return bench.trial(command, f"operation-{name}-{number}", disturb)
