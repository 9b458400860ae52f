"""The default and `--quick` with 5, 10 and 20 labelled texts of each class.

    CALIBRANT_DATA=… OMP_NUM_THREADS=1 python benchmarks/few_texts.py
    python benchmarks/few_texts.py --table

The commands get nothing but a file: no dev set and no hyper-parameter. Far text: question titles of Yahoo for
banking77, SST-2 for yahoo. One JSON file for each dataset, number, method and draw lies in results/few-texts;
one that is there is not made again.
"""

import argparse
import csv
import json
import logging
import random
import statistics
import tempfile
import time
import warnings
from importlib.metadata import version
from pathlib import Path

import torch

import calibrant
from calibrant import RunConfig
from calibrant._system.atomic import write_json
from calibrant._system.device import machine
from calibrant.data import datasets
from calibrant.data.splits import draw
from recipe import spread

OUT = Path(__file__).parents[1] / "results" / "few-texts"
FAR = {"banking77": "yahoo", "yahoo": "sst-2"}
COUNTS, METHODS, DRAWS = (5, 10, 20), ("calibrant", "linear-probe"), (0, 1, 2)
TEST = 1000  # texts of test, and as many of far text


def few(texts, count: int, seed: int) -> list[tuple[str, str]]:
    """So many texts of each class."""
    rows = list(zip(texts.texts, texts.labels, strict=True))
    random.Random(seed).shuffle(rows)
    chosen, taken = [], dict.fromkeys(texts.labels, 0)
    for text, label in rows:
        if taken[label] < count:
            taken[label] += 1
            chosen.append((text, label))
    return chosen


def write(path: Path, rows) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("text", "label"), *rows])
    return path


class Said(logging.Handler):
    """What `train` tells: among it what it leaves out."""

    def __init__(self):
        super().__init__()
        self.lines = []

    def emit(self, record):
        self.lines.append(record.getMessage())


def run(name: str, count: int, method: str, seed: int) -> dict:
    known, said = datasets(), Said()
    test, far = (draw(known[which].read("test"), TEST, "TEST") for which in (name, FAR[name]))
    logger = logging.getLogger("calibrant")
    logger.addHandler(said)
    logger.setLevel(logging.INFO)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        here = Path(folder)
        train = write(here / "train.csv", few(known[name].read("train"), count, seed))
        config = RunConfig(train=train, method=method, seed=seed)
        began = time.process_time()
        made = calibrant.train(config, out=here / "run")
        spent = time.process_time() - began
        metrics = calibrant.evaluate(
            here / "run",
            test=write(here / "test.csv", zip(test.texts, test.labels, strict=True)),
            ood=write(here / "far.csv", ((text, "") for text in far.texts)),
        ).entry.metrics
        calibrator = made.record.calibrator
    logger.removeHandler(said)
    return {
        "dataset": name,
        "texts_of_each_class": count,
        "method": method,
        "seed": seed,
        "cpu_seconds": round(spent, 1),
        "kept": made.training.kept,
        "calibrator": None if calibrator is None else calibrator.name,
        "told": [*said.lines, *(str(each.message) for each in warned)],
        "metrics": metrics,
        "versions": {package: version(package) for package in ("calibrant", "torch", "transformers")},
        "machine": machine(),
    }


def table() -> None:
    print(
        "| texts of each class | method | accuracy | ECE | confidence | confidence, far | far AUROC | "
        "CPU s |\n|---|---|---|---|---|---|---|---|"
    )
    for name in FAR:
        for count in COUNTS:
            for method in METHODS:
                paths = sorted(OUT.glob(f"{name}_{count}_{method}_seed=*.json"))
                if not paths:
                    continue
                made = [json.loads(path.read_text()) for path in paths]
                shown = [
                    spread([100 * of(one["metrics"]) for one in made])
                    for of in (
                        lambda m: m["accuracy"],
                        lambda m: m["ece"],
                        lambda m: m["mean_confidence_test"],
                        lambda m: m["mean_confidence_ood"],
                        lambda m: m["ood"]["auroc"],
                    )
                ]
                seconds = statistics.fmean(one["cpu_seconds"] for one in made)
                print(f"| {name}, {count} | {method} | {' | '.join(shown)} | {seconds:.0f} |")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--datasets", nargs="*", default=list(FAR), choices=FAR)
    parser.add_argument("--seeds", nargs="*", type=int, default=DRAWS)
    parser.add_argument("--table", action="store_true")
    arguments = parser.parse_args()
    if arguments.table:
        return table()
    torch.set_num_threads(1)
    OUT.mkdir(parents=True, exist_ok=True)
    for seed in arguments.seeds:
        for name in arguments.datasets:
            for count in COUNTS:
                for method in METHODS:
                    path = OUT / f"{name}_{count}_{method}_seed={seed}.json"
                    if not path.exists():
                        found = run(name, count, method, seed)
                        write_json(path, found)
                        m = found["metrics"]
                        print(path.stem, f"{m['accuracy']:.3f} {m['ece']:.3f}", flush=True)


if __name__ == "__main__":
    main()
