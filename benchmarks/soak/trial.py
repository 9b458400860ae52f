"""One trial: a command is disturbed, done again, and must have left what an undisturbed one leaves."""

import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from calibrant.runs import store
from soak.commands import COMMANDS, Command, differences, left
from soak.fork import Process, warm_as


@dataclass(frozen=True)
class Undisturbed:
    """What a command leaves, how long it takes, and how many file operations it does."""

    left: dict[str, Any]
    seconds: float


@dataclass(frozen=True)
class Bench:
    """Where trials are made."""

    world: Path
    expected: dict[str, Undisturbed]

    def folder(self, name: str) -> Path:
        """A new place; what an earlier trial left there is removed."""
        here = self.world / name
        self.clear(name)
        return here

    def clear(self, name: str) -> None:
        """After a trial."""
        shutil.rmtree(self.world / name, ignore_errors=True)
        for file in self.world.glob(f"{name}.*"):
            file.unlink()

    def trial(
        self, command: Command, name: str, disturb: Callable[[Path], tuple[bool, str]]
    ) -> tuple[str, str]:
        """("held", …), ("missed", …) where the command ended before it was disturbed, or ("failed", why)."""
        here = self.folder(name)
        command.begin(self.world, here)
        disturbed, why = disturb(here)
        if not why:
            why = self.after(command, here)
        if why:
            return "failed", f"{command.name}, {name}: {why}"  # and the folder stays, to be looked at
        self.clear(name)
        return ("held" if disturbed else "missed"), ""

    def after(self, command: Command, here: Path) -> str:
        """What is wrong once the command was done again; "" for nothing."""
        if command.begins_in is not None:  # a finished run, which answers at any moment
            store.load(here / "run").calibrator()
        process = command.again(here)
        if process is not None and process.wait():
            return f"done again, it says: {process.told}"
        if wrong := differences(left(here), self.expected[command.name].left):
            return f"not as undisturbed: {wrong}"
        return ""


def undisturbed(world: Path) -> dict[str, Undisturbed]:
    """Each command twice: two that differ would make every comparison senseless."""
    found = {}
    for command in COMMANDS.values():
        for turn in ("first", "second"):
            here = world / f"{command.name}-{turn}"
            command.begin(world, here)
            began = time.monotonic()
            process = Process(here, command.arguments, tell=turn == "first")
            if process.wait():
                raise RuntimeError(f"{command.name}: {process.told}")
            if turn == "first":
                warm_as(process)
        seconds = time.monotonic() - began
        found[command.name] = Undisturbed(left(here), seconds)
        if wrong := differences(left(world / f"{command.name}-first"), found[command.name].left):
            raise RuntimeError(f"two undisturbed runs of {command.name} differ: {wrong}")
    return found
