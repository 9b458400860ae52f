"""A disk that fills up: a file system in memory of a few sizes, and once there is room the command again."""

import os
import subprocess
from pathlib import Path

from soak.commands import COMMANDS
from soak.fork import Process
from soak.trial import Bench

ROOM = 256 * 2**20
TOLD = ("could not be written", "standard output: the disk is full")


def can_mount(folder: Path) -> bool:
    """Whether this process may; `unshare --map-root-user --mount` lets it."""
    folder.mkdir()
    try:
        return not subprocess.run(
            ["mount", "-t", "tmpfs", "soak", str(folder)], capture_output=True, check=False
        ).returncode
    finally:
        subprocess.run(["umount", str(folder)], capture_output=True, check=False)
        folder.rmdir()


def needs(bench: Bench, name: str) -> tuple[int, int]:
    """How much a command's folder takes before it, and at most while it runs; in bytes."""
    with _Disk(bench.folder(f"needs-{name}"), ROOM) as disk:
        COMMANDS[name].begin(bench.world, disk.here)
        seen = [disk.used()]
        Process(disk.here, COMMANDS[name].arguments).wait(meanwhile=lambda: seen.append(disk.used()))
    bench.clear(f"needs-{name}")
    return seen[0], max(seen)


def fill(bench: Bench, name: str, number: int, size: int) -> tuple[str, str]:
    """One size."""
    command, trial = COMMANDS[name], f"full-{name}-{number}"
    with _Disk(bench.folder(trial), size) as disk:
        command.begin(bench.world, disk.here)
        process = Process(disk.here, command.arguments)
        code, told = process.wait(), process.told
        if code and (code != 2 or "Traceback" in told or not any(words in told for words in TOLD)):
            return "failed", f"{trial}: exit code {code}, and it says: {told}"
        disk.resize(ROOM)
        if why := bench.after(command, disk.here):
            return "failed", f"{trial}: {why}"
    bench.clear(trial)
    return ("held" if code or told else "missed"), ""


class _Disk:
    """A file system of that size; ``here`` is a folder on it, deep enough for the world to be beside it."""

    def __init__(self, place: Path, size: int) -> None:
        self.here, self.size = place, size

    def __enter__(self) -> "_Disk":
        self.here.mkdir()
        _run("mount", "-t", "tmpfs", "-o", f"size={self.size}", "soak", str(self.here))
        return self

    def __exit__(self, *_: object) -> None:
        _run("umount", str(self.here))

    def resize(self, size: int) -> None:
        _run("mount", "-o", f"remount,size={size}", str(self.here))

    def used(self) -> int:
        found = os.statvfs(self.here)
        return (found.f_blocks - found.f_bfree) * found.f_frsize


def _run(*arguments: str) -> None:
    subprocess.run(arguments, check=True, capture_output=True)
