"""What a cheaper way to train costs in quality: the demo's setting, three seeds, on disk as it goes.

    python benchmarks/quality.py --out results/cheapest

A run that is finished is used again, so that the command can be stopped and repeated.
"""

import argparse
import json
import statistics
from pathlib import Path

from calibrant.atomic import write_json, write_text
from calibrant.config import RunConfig
from calibrant.demo import METHODS, SETTINGS
from calibrant.fitting import fit
from calibrant.measure import measure

SMOOTHING = METHODS["manifold-smoothing"]
VARIANTS = {
    "plain": ("bert", {}),
    "shared": ("manifold-smoothing", SMOOTHING),
    "cheapest": ("manifold-smoothing", {**SMOOTHING, "share": 1 / 3}),
    "pgd": ("manifold-smoothing", {**SMOOTHING, "solver": "pgd"}),
}
COLUMNS = {
    "accuracy": lambda m: m["accuracy"],
    "ECE": lambda m: m["ece"],
    "NBAUCC₀.₅ mistakes": lambda m: m["misclassification"]["nbaucc_0.5"],
    "NBAUCC₀.₅ unfamiliar": lambda m: m["ood"]["nbaucc_0.5"],
}


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
        seconds = ", ".join(f"{result['seconds']:.0f}" for result in seeds.values())
        lines.append(f"| {variant} | {', '.join(map(str, seeds))} | " + " | ".join(cells) + f" | {seconds} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--variants", nargs="*", default=list(VARIANTS), choices=VARIANTS)
    parser.add_argument("--seeds", nargs="*", type=int, default=[0, 1, 2])
    parser.add_argument("--runs", type=Path, default=Path("runs/quality"))
    parser.add_argument("--out", type=Path, default=Path("results/cheapest"))
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    for seed in arguments.seeds:
        for variant in arguments.variants:
            method, objective = VARIANTS[variant]
            config = RunConfig(method=method, objective=objective, seed=seed, **SETTINGS)
            run = fit(config, arguments.runs / f"{variant}-{seed}")
            entry = measure(run.path).entry
            kept = ("objective", "config", "versions", "machine")
            result = {
                "metrics": entry.metrics,
                "seconds": run.record["training"]["seconds"],
                **{name: run.record[name] for name in kept},
            }
            write_json(arguments.out / f"{variant}-{seed}.json", result)
            found: dict[str, dict[int, dict]] = {}
            for name in VARIANTS:
                files = sorted(arguments.out.glob(f"{name}-*.json"))
                if files:
                    found[name] = {int(f.stem.split("-")[1]): json.loads(f.read_text()) for f in files}
            write_text(arguments.out / "table.md", table(found))
            print(table(found), flush=True)


if __name__ == "__main__":
    main()
