"""``make bench``: calibrant beside plain implementations, in one process, interleaved."""

import argparse
import json
import platform
import statistics
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table
from torch.utils.flop_counter import FlopCounterMode
from transformers import AutoTokenizer
from transformers.utils import logging

from calibrant.models.pretrained import default_encoder
from others import metrics_over_loop, predict_over_pipeline, spread, trainer_over_stock
from steps import OURS, STEPS, make_step
from workloads import WORKLOADS, prepare

HERE = Path(__file__).parent


def matmul_peak() -> float:
    """The best of ten fp32 products of 2048 × 2048, in FLOP/s."""
    a, best = torch.randn(2048, 2048), float("inf")
    for _ in range(10):
        started = time.perf_counter()
        a @ a
        best = min(best, time.perf_counter() - started)
    return 2 * 2048**3 / best


def flops(step, batches) -> int:
    """Floating-point operations of the matrix products in a pass over the batches."""
    with FlopCounterMode(display=False) as counter:
        for batch in batches:
            step(batch)
    return counter.get_total_flops()


def peak_memory(name: str, workload: str) -> int:
    """MiB of a process of its own that takes one step of the kind on the widest batch."""
    command = [sys.executable, str(HERE / "memory.py"), name, workload]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return int(done.stdout.split()[-1])


def measure(
    workload, tokenizer, rounds: int, memory: dict[str, int]
) -> tuple[dict[str, dict[str, float]], dict[str, list[float]]]:
    """Of every kind of step, what it takes; and the seconds a batch of each round."""
    material = prepare(workload, tokenizer)
    steps = {name: make_step(name, material.classes) for name in STEPS}
    batches = {name: material.grouped if name in OURS else material.padded for name in STEPS}
    work = {  # and the warm-up; one batch is enough where all have the same shape
        name: flops(steps[name], batches[name]) / workload.batches
        if name in OURS
        else flops(steps[name], batches[name][:1])
        for name in STEPS
    }
    seconds: dict[str, list[float]] = {name: [] for name in STEPS}
    for _ in range(rounds):
        taken = dict.fromkeys(STEPS, 0.0)
        for i in range(workload.batches):
            for name, step in steps.items():
                started = time.perf_counter()
                step(batches[name][i])
                taken[name] += time.perf_counter() - started
        for name in STEPS:
            seconds[name].append(taken[name] / workload.batches)
    peak = matmul_peak()
    return {
        name: {
            "seconds": statistics.median(times),
            "fastest": min(times),
            "slowest": max(times),
            "gflop": work[name] / 1e9,
            "share_of_peak": work[name] / statistics.median(times) / peak,
            "peak_memory_mib": memory[name],
        }
        for name, times in seconds.items()
    }, seconds


RATIOS = {
    "pgd_over_published": ("published", "pgd"),
    "shared_over_published": ("published", "shared"),
    "plain_over_naive": ("naive plain", "plain"),
    "shared_cost": ("shared", "plain"),
    "cheapest_cost": ("cheapest", "plain"),
}
"""Speed-ups over the yardsticks, and costs relative to our plain fine-tuning."""


def ratios(seconds: dict[str, list[float]]) -> dict[str, dict[str, float]]:
    """Each of a round's own times: the median over the rounds, and its range."""
    return {
        name: spread([a / b for a, b in zip(seconds[over], seconds[under], strict=True)])
        for name, (over, under) in RATIOS.items()
    }


def table(name: str, steps: dict[str, dict[str, float]]) -> Table:
    shown = Table(title=name)
    for column in (
        "step",
        "seconds (fastest–slowest)",
        "speed, published = 1",
        "cost, plain = 1",
        "MiB",
        "of peak",
    ):
        shown.add_column(column)
    published, plain = steps["published"]["seconds"], steps["plain"]["seconds"]
    for step, row in steps.items():
        shown.add_row(
            step,
            f"{row['seconds']:.2f} ({row['fastest']:.2f}–{row['slowest']:.2f})",
            f"{published / row['seconds']:.2f}",
            f"{row['seconds'] / plain:.2f}",
            f"{row['peak_memory_mib']}",
            f"{row['share_of_peak']:.0%}",
        )
    return shown


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workloads", nargs="*", default=[workload.name for workload in WORKLOADS])
    parser.add_argument("--out", type=Path, default=HERE / "latest.json")
    arguments = parser.parse_args()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    tokenizer = AutoTokenizer.from_pretrained(default_encoder())
    result: dict = {"steps": {}, "range": {}}
    console = Console()
    chosen = [workload for workload in WORKLOADS if workload.name in arguments.workloads]
    # Before this process fills up itself.
    memory = {w.name: {step: peak_memory(step, w.name) for step in STEPS} for w in chosen}
    for workload in chosen:
        steps, seconds = measure(workload, tokenizer, arguments.rounds, memory[workload.name])
        found = ratios(seconds)
        result[workload.name] = {name: ratio["median"] for name, ratio in found.items()}
        result["range"][workload.name] = found
        result["steps"][workload.name] = steps
        console.print(table(workload.name, steps))
        console.print_json(json.dumps(found))
    for benchmark in (trainer_over_stock, predict_over_pipeline, metrics_over_loop):
        ratio = benchmark(arguments.rounds)
        result[benchmark.__name__] = ratio["median"]
        result["range"][benchmark.__name__] = ratio
        console.print_json(json.dumps({benchmark.__name__: ratio}))
    result["command"] = " ".join(["python", "benchmarks/run.py", *sys.argv[1:]])
    result["versions"] = {name: version(name) for name in ("torch", "transformers", "numpy", "scikit-learn")}
    result["machine"] = (
        f"{platform.machine()}, {torch.get_num_threads()} threads, Python {platform.python_version()}"
    )
    arguments.out.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
