"""SIGKILL at a random moment."""

import random
import time
from pathlib import Path

from soak.commands import COMMANDS
from soak.fork import Process
from soak.trial import Bench


def kill(bench: Bench, name: str, number: int) -> tuple[str, str]:
    """One. The number decides the moment, as far as a busy machine allows; one too late is done again."""
    command = COMMANDS[name]
    drawn = random.Random(f"{name} {number}")

    def disturb(here: Path) -> tuple[bool, str]:
        process = Process(here, command.arguments)
        time.sleep(drawn.uniform(0, bench.expected[name].seconds))
        return process.kill() < 0, ""

    outcome = "missed", ""
    while outcome[0] == "missed":
        outcome = bench.trial(command, f"kill-{name}-{number}", disturb)
    return outcome
