"""How step time and peak memory grow with tokens and batch size: docs/performance.md's plot.

    python benchmarks/scaling.py

Each point is a process of its own, so that its peak memory is its own; random tokens, no padding.
"""

import argparse
import json
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path

from calibrant._system.atomic import write_json
from calibrant._system.device import machine

ROOT = Path(__file__).parents[1]
OUT = ROOT / "results" / "time-and-memory-growth" / "points.json"
TOKENS, BATCH_SIZES = (32, 64, 128, 256, 512), (8, 16, 32, 64)
POINTS = [(t, 32) for t in TOKENS] + [(128, b) for b in BATCH_SIZES if b != 32]
KINDS = ("plain", "shared", "cheapest", "shared, checkpointing")


def point(kind: str, tokens: int, batch_size: int) -> dict:
    """Seconds of one step after another to warm up, and MiB; in this process."""
    import torch

    from calibrant.types import Batch
    from steps import make_step

    step = make_step(kind.split(",")[0], 15, gradient_checkpointing="checkpointing" in kind)
    ids = torch.randint(1000, 30000, (batch_size, tokens))
    batch = Batch(ids, torch.ones_like(ids), torch.arange(batch_size) % 15)
    step(batch)
    started = time.perf_counter()
    step(batch)
    seconds = time.perf_counter() - started
    status = Path("/proc/self/status").read_text()
    return {"seconds": seconds, "mib": int(status.split("VmHWM:")[1].split()[0]) // 1024}


def plot(points: list[dict], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(2, 2, figsize=(9, 6), constrained_layout=True)
    for column, (key, fixed, label) in enumerate(
        (("tokens", "batch_size", "tokens, batch of 32"), ("batch_size", "tokens", "batch size, 128 tokens"))
    ):
        chosen = [p for p in points if p[fixed] == {"batch_size": 32, "tokens": 128}[fixed]]
        for row, (what, unit) in enumerate((("seconds", "seconds a step"), ("mib", "peak memory, MiB"))):
            ax = axes[row][column]
            for kind in KINDS:
                line = sorted((p[key], p[what]) for p in chosen if p["kind"] == kind)
                ax.plot(*zip(*line, strict=True), marker="o", label=kind)
            ax.set(xscale="log", yscale="log", xlabel=label, ylabel=unit)
            ax.set_xticks(sorted({p[key] for p in chosen}), sorted({p[key] for p in chosen}))
            ax.minorticks_off() if row == 0 else None
            ax.grid(alpha=0.3)
    axes[0][0].legend()
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--point", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--plot", type=Path, default=ROOT / "docs" / "scaling.svg")
    arguments = parser.parse_args()
    if arguments.point:
        kind, tokens, batch_size = arguments.point
        print(json.dumps(point(kind, int(tokens), int(batch_size))))
        return
    points = []
    found = {
        "command": "python benchmarks/scaling.py",
        "versions": {name: version(name) for name in ("calibrant", "torch", "transformers")},
        "machine": machine(),
        "points": points,
    }
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    for kind in KINDS:
        for tokens, batch_size in POINTS:
            command = [sys.executable, __file__, "--point", kind, str(tokens), str(batch_size)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            measured = json.loads(done.stdout.splitlines()[-1])
            points.append({"kind": kind, "tokens": tokens, "batch_size": batch_size, **measured})
            print(points[-1], flush=True)
            write_json(arguments.out, found)
    plot(points, arguments.plot)


if __name__ == "__main__":
    main()
