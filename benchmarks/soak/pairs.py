"""Two trainings at once in one folder, equal ones or different ones."""

import random
import re
import time
from pathlib import Path

from soak.commands import TRAIN, differences, left
from soak.fork import Process
from soak.trial import Bench

OTHER = (*TRAIN, "--seed", "1")
REFUSALS = re.compile(r"calibrant: run (is being trained by process \d+ now|holds another run)")


def pair(bench: Bench, kind: str, number: int) -> tuple[str, str]:
    """One pair; the second begins a little later than the first, or much later."""
    name = f"pair-{kind}-{number}"
    here = bench.folder(name)
    here.mkdir()
    first = Process(here, TRAIN)
    seconds = bench.expected["train"].seconds
    time.sleep(random.Random(name).uniform(0, seconds / 10 if number % 2 else seconds))
    second = Process(here, TRAIN if kind == "equal" else OTHER)
    codes = first.wait(), second.wait()
    why = _wrong(bench, here, kind, codes, [each.told for each in (first, second)])
    if why:
        return "failed", f"{name}: {why}"
    bench.clear(name)
    return "held", ""


def _wrong(bench: Bench, here: Path, kind: str, codes: tuple[int, int], told: list[str]) -> str:
    for code, said in zip(codes, told, strict=True):
        if code not in (0, 2) or (code == 2 and not REFUSALS.match(said)):
            return f"exit code {code}: {said}"
    if 0 not in codes or (kind == "different" and codes.count(0) != 1):
        return f"exit codes {codes}"
    expected = bench.expected["train" if kind == "equal" or codes[0] == 0 else "other"].left
    return differences(left(here), expected)
