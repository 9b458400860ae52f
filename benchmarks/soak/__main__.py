"""``python -m soak``: all trials, and the table of what happened."""

import argparse
import json
import multiprocessing
import os
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from soak import full, kills, operations, pairs, races
from soak.commands import COMMANDS, make_world
from soak.fork import Process, warm
from soak.trial import Bench, Undisturbed, undisturbed

PARTS = ("races", "pairs", "full", "kills", "operations")
Task = tuple[Callable[..., tuple[str, str]], tuple[Any, ...], str]


def main() -> None:
    options = _options()
    began, world = time.monotonic(), Path(tempfile.mkdtemp(prefix="soak-")) / "world"
    os.environ.pop("CALIBRANT_DATA", None)
    warm()
    make_world(world)
    bench = Bench(world, undisturbed(world))
    _add_the_other_training(bench)
    print(f"set up in {time.monotonic() - began:.0f} s", flush=True)
    rows: dict[str, Counter[str]] = {}
    failures: list[str] = []
    with multiprocessing.get_context("fork").Pool(options.workers, _quiet) as pool:
        for part in options.only:
            began_part = time.monotonic()
            work = [(bench, task) for task in _tasks(bench, part, options)]
            for row, outcome, why in pool.imap_unordered(_do, work, chunksize=1):
                rows.setdefault(row, Counter())[outcome] += 1
                if why:
                    failures.append(why)
                    print(why, file=sys.stderr, flush=True)
                _write(options.json, rows, failures, began)
            print(f"{part}: {time.monotonic() - began_part:.0f} s", flush=True)
    _print(rows)
    if failures:
        sys.exit(f"{len(failures)} failed; {world} has what they left")
    shutil.rmtree(world.parent)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="soak", description=__doc__)
    parser.add_argument("--kills", type=int, default=60, help="of each command, at random moments")
    parser.add_argument("--every", type=int, default=1, help="kill at each, or each second, … operation")
    parser.add_argument("--pairs", type=int, default=12, help="of equal and as many of different trainings")
    parser.add_argument("--updates", type=int, default=1000, help="of one run, racing")
    parser.add_argument("--sizes", type=int, default=8, help="of disks for each command")
    parser.add_argument("--workers", type=int, default=2, help="trials at a time")
    parser.add_argument("--only", nargs="*", choices=PARTS, default=PARTS, help="parts")
    parser.add_argument("--commands", nargs="*", choices=list(COMMANDS), default=list(COMMANDS))
    parser.add_argument("--json", type=Path, help="where to keep the counts")
    return parser.parse_args()


def _tasks(bench: Bench, part: str, options: argparse.Namespace) -> list[Task]:
    names = options.commands
    if part == "races":
        return [(races.race, (options.updates,), f"{options.updates} racing updates of one run")]
    if part == "pairs":
        kinds = ("equal", "different")
        return [(pairs.pair, (k, i), f"two {k} trainings") for i in range(options.pairs) for k in kinds]
    if part == "kills":
        return [(kills.kill, (n, i), f"{n}, killed") for i in range(options.kills) for n in names]
    if part == "operations":
        return [
            (operations.kill_at, (name, number), f"{name}, killed at a file operation")
            for name in names
            for number in range(1, operations.count(bench, name) + 1, options.every)
        ]
    if not full.can_mount(bench.world / "mount"):
        print("full: no file system can be mounted here; try unshare --map-root-user --mount", flush=True)
        return []
    tasks: list[Task] = []
    for name in names:
        least, most = full.needs(bench, name)
        for i in range(options.sizes):
            size = least + 4096 + (most - least) * i // options.sizes
            tasks.append((full.fill, (name, i, size), f"{name}, disk full"))
    return tasks


def _do(work: tuple[Bench, Task]) -> tuple[str, str, str]:
    bench, (trial, arguments, row) = work
    try:
        outcome, why = trial(bench, *arguments)
    except Exception as error:
        outcome, why = "failed", f"{row} {arguments}: {type(error).__name__}: {error}"
    return row, outcome, why


def _quiet() -> None:
    """Ctrl-C is for the process that gives the work."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _add_the_other_training(bench: Bench) -> None:
    from soak.commands import left

    here = bench.folder("other-training")
    here.mkdir()
    if Process(here, pairs.OTHER).wait():
        raise RuntimeError("the other training fails")
    bench.expected["other"] = Undisturbed(left(here), 0.0)


def _write(path: Path | None, rows: dict[str, Counter[str]], failures: list[str], began: float) -> None:
    if path is not None:
        seconds = round(time.monotonic() - began)
        path.write_text(json.dumps({"rows": rows, "failures": failures, "seconds": seconds}, indent=2) + "\n")


def _print(rows: dict[str, Counter[str]]) -> None:
    print("| what | tried | ended as undisturbed | failed |")
    print("|---|---|---|---|")
    for row, counts in rows.items():
        tried = counts["held"] + counts["failed"]
        print(f"| {row} | {tried} | {counts['held']} | {counts['failed']} |")


if __name__ == "__main__":
    main()
