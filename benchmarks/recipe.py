"""The default beside plain fine-tuning and manifold smoothing, and each of its parts taken away.

    CALIBRANT_DATA=… python benchmarks/recipe.py --datasets banking77 yahoo-8 20ng-15 --seeds 0 1 2
    CALIBRANT_DATA=… python benchmarks/recipe.py --table

One JSON file for each dataset, variant and seed lies in results/recipe; one that is there is not made again.
Near: classes that training never saw. Far: text from elsewhere. Messages are cut at 64 tokens, for the time
that it takes. Plain training and manifold smoothing get the learning rate of the default, 2e-4, twice
their own. Runs with one thread, so that two can go side by side.
"""

import argparse
import json
import os
import random
import shutil
import statistics
import tempfile
import time
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import torch

from calibrant import RunConfig
from calibrant._system.atomic import write_json
from calibrant._system.device import machine
from calibrant.calibrators import calibrated, new_calibrator
from calibrant.classifier import of_run
from calibrant.data import datasets
from calibrant.data.files import fingerprint
from calibrant.data.splits import draw
from calibrant.fitting.calibrating import fit_calibrator
from calibrant.metrics.dev import dev_figures
from calibrant.metrics.measure import measure
from calibrant.runs import texts as run_texts
from calibrant.tasks import train as task
from calibrant.types import Prediction, Splits, Texts

OUT = Path(__file__).parents[1] / "results" / "recipe"
DOCS = Path(__file__).parents[1] / "docs" / "recipe.md"
BEGIN, END = "<!-- made by `benchmarks/recipe.py --table` -->", "<!-- end of what it makes -->"
OBJECTIVES = "<!-- objectives, made by `benchmarks/recipe.py --table` -->"
TRAIN, MOST = 2500, 2000  # a fifth of the first is dev; test, near and far texts at most
LENGTH = {"20ng-15": 64}  # tokens; elsewhere what `calibrant train` takes
RATE = {"learning_rate": 2e-4}
SMOOTHING = {"method": "manifold-smoothing", **RATE}
VARIANTS = {
    "recipe": {},
    "plain": {"method": "bert", **RATE},
    "smoothing_delta_off=0.001": SMOOTHING,
    "smoothing_searched": SMOOTHING,
    "quick": {"method": "linear-probe"},
    "without_pooling": {"pooling": "first"},
    "without_probe": {"start": "random"},
    "without_interpolation": {"keep": "refinement"},
    "without_refinement": {"keep": "accuracy"},
    "with_smoothing": {"objective": {"name": "manifold-smoothing"}},
    "with_r_off": {"objective": {"name": "manifold-smoothing", "lambda_on": 0}},
    "with_r_on_at_x": {"objective": {"name": "manifold-smoothing", "delta_on": 0}},
    "with_label_smoothing": {"objective": {"name": "label-smoothing"}},
}
SEARCHED = (1e-4, 1e-3, 5e-3, 2e-2)
"""Values of δ_off. Chosen is the lowest dev NLL after its own best temperature, since the row has one."""
ANSWERS = {"as it is": None, "T": "temperature", "T+F": "temperature+familiarity", "F": "familiarity"}


def labelled(texts, labels, source):
    return Texts(texts, labels, source, fingerprint(texts, labels))


def split(name: str, seed: int, most: int = TRAIN) -> tuple[Splits, dict[str, Texts]]:
    """Train and dev, drawn anew for each seed; and what is measured on, always the same.

    Of yahoo-8 there are two far sets, since the first had a part in the choice of familiarity's score.
    """
    known, asked = datasets(), {}
    if name == "banking77":
        whole, test = known[name].read("train"), known[name].read("test")
        inside = set(sorted(set(whole.labels))[:50])
        near = only(test, lambda label: label not in inside)
        whole, test = (only(part, lambda label: label in inside) for part in (whole, test))
        far = known["yahoo"].read("test")
    else:
        whole, test = known[name].read("train"), known[name].read("test")
        near = known["20ng-5" if name == "20ng-15" else "yahoo-2"].read("test")
        far = known["sst-2"].read("test")
        if name == "yahoo-8":
            asked["far_too"] = known["banking77"].read("test")
    order = list(range(len(whole)))
    random.Random(seed).shuffle(order)
    whole = labelled([whole.texts[i] for i in order], [whole.labels[i] for i in order], whole.source)
    asked = {"test": test, "near": near, "far": far} | asked
    return run_texts.make_splits(name, whole, None, most), {
        part: draw(texts, MOST, "MOST") for part, texts in asked.items()
    }


def only(texts, keep):
    rows = [(text, label) for text, label in zip(texts.texts, texts.labels, strict=True) if keep(label)]
    return labelled([text for text, _ in rows], [label for _, label in rows], texts.source)


def searched(name: str, settings: dict) -> dict[float, float]:
    """NLL on dev after a temperature, by δ_off: once for all seeds, on a fifth of the training texts.

    A random head learns nothing from so few (dev ECE 54 to 55 % for every value on banking77), so these
    trainings start from the linear probe.
    """
    path = OUT / f"{name}_search.json"
    if not path.exists():
        splits, _ = split(name, 0)
        fifth = replace(splits, train=draw(splits.train, len(splits.train) // 5, "a fifth"))
        task.load_splits = lambda config: fifth
        found = {}
        for delta_off in SEARCHED:
            objective = {"objective": {"delta_off": delta_off}}
            config = RunConfig(train="a fifth", seed=0, **settings | objective | {"start": "probe"})
            with tempfile.TemporaryDirectory() as folder:
                training = task.train(config, out=Path(folder) / "run").training
            found[delta_off] = next(
                {what: one[f"eval_{what}"] for what in ("accuracy", "ece", "refinement")}
                | {"epoch": one["epoch"]}
                for one in training.history
                if one["epoch"] == training.best_epoch and "eval_ece" in one
            )
            print("search", name, delta_off, found[delta_off], flush=True)
        write_json(path, {"settings": config.model_dump(exclude_defaults=True), "dev": found} | provenance())
    dev = json.loads(path.read_text())["dev"]
    return {float(delta_off): -of["refinement"] for delta_off, of in dev.items()}


def provenance() -> dict:
    packages = ("calibrant", "torch", "transformers", "scikit-learn")
    return {"versions": {package: version(package) for package in packages}, "machine": machine()}


def run(name: str, variant: str, seed: int, epochs: int | None) -> dict:
    settings = {"calibrator": "none"} | VARIANTS[variant] | ({} if epochs is None else {"epochs": epochs})
    settings |= {"max_length": LENGTH[name]} if name in LENGTH else {}
    search = searched(name, settings) if variant == "smoothing_searched" else None
    if search is not None:
        best = min(search, key=search.__getitem__)
        trained = OUT / f"{name}_smoothing_delta_off={best}_seed={seed}.json"
        if trained.exists():  # the paper's value was found: that training is this one
            return json.loads(trained.read_text()) | {"variant": variant, "search": search}
        settings |= {"objective": {"delta_off": best}}
    splits, asked = split(name, seed)
    task.load_splits = lambda config: splits  # the texts are drawn here
    config = RunConfig(train="texts of the benchmark", seed=seed, **settings)
    folder = Path(tempfile.mkdtemp(prefix="recipe-"))
    try:
        started, worked = time.perf_counter(), time.process_time()
        made = task.train(config, out=folder / "run")
        classifier = of_run(made)
        labels = classifier.class_ids(splits.dev)
        needs = frozenset({"features", "middle"})
        on_dev = classifier.outputs(splits.dev.texts, needs)
        fitted = {
            how: None
            if kind is None
            else fit_calibrator(classifier, new_calibrator(kind), on_dev, splits.dev, splits.train)
            for how, kind in ANSWERS.items()
        }
        seconds, work = time.perf_counter() - started, time.process_time() - worked
        said = {part: classifier.outputs(texts.texts, needs) for part, texts in asked.items()}
    finally:
        shutil.rmtree(folder)
    found = {}
    for how, calibrator in fitted.items():
        p = {part: calibrated(outputs, calibrator).probabilities for part, outputs in said.items()}
        familiar = Prediction(p["test"], classifier.class_ids(asked["test"]))
        found[how] = measure(familiar, None)
        for part in asked.keys() - {"test"}:
            found[how][part] = measure(familiar, Prediction(p[part]))["ood"]
        found[how]["dev"] = dev_figures(calibrated(on_dev, calibrator).probabilities, labels)
    training = made.training
    return {
        "dataset": name,
        "variant": variant,
        "seed": seed,
        "settings": config.model_dump(exclude_defaults=True),
        "texts": {
            part: len(texts) for part, texts in {"train": splits.train, "dev": splits.dev, **asked}.items()
        },
        "classes": len(splits.label_names),
        "search": search,
        "seconds": round(seconds, 1),
        "cpu_seconds": round(work, 1),  # others on the machine do not count in these
        "best_epoch": training.best_epoch,
        "share": training.share,
        "epochs_run": max(entry["epoch"] for entry in training.history),
        "history": training.history,
        "figures": found,
    } | provenance()


SHOWN = {
    "accuracy": lambda f: f["accuracy"],
    "ECE": lambda f: f["ece"],
    "mistakes": lambda f: f["misclassification"]["nbaucc_0.5"],
    "near": lambda f: f["near"]["nbaucc_0.5"],
    "near AUROC": lambda f: f["near"]["auroc"],
    "far": lambda f: f["far"]["nbaucc_0.5"],
    "far AUROC": lambda f: f["far"]["auroc"],
}
ROWS = {
    "plain + temperature": ("plain", "T"),
    "manifold smoothing + temperature": ("smoothing_delta_off=0.001", "T"),
    "manifold smoothing, δ_off searched, + temperature": ("smoothing_searched", "T"),
    "the default": ("recipe", "T+F"),
    "without pooling: first token alone": ("without_pooling", "T+F"),
    "without the probe: a random head": ("without_probe", "T+F"),
    "without fine-tuning: `--quick`": ("quick", "T+F"),
    "without interpolation: best epoch": ("without_interpolation", "T+F"),
    "without refinement: epoch of the best dev accuracy": ("without_refinement", "T+F"),
    "without the temperature": ("recipe", "F"),
    "without familiarity": ("recipe", "T"),
    "with manifold smoothing as its objective": ("with_smoothing", "T+F"),
    "with R_off alone": ("with_r_off", "T+F"),
    "with R_on at x itself, and R_off": ("with_r_on_at_x", "T+F"),
    "with label smoothing": ("with_label_smoothing", "T+F"),
}
TRIED = {
    "cross-entropy (the default)": "recipe",
    "R_on and R_off, as published": "with_smoothing",
    "R_off alone": "with_r_off",
    "R_on at x itself, and R_off": "with_r_on_at_x",
    "label smoothing": "with_label_smoothing",
}
"""Objectives, each with the rest of the default; seed 0."""


MEASURED = ("plain + temperature", "manifold smoothing + temperature", "the default", "--quick")
"""Rows of docs/recipe.md, by the end of their names."""


def tables() -> None:
    """Write the tables of results/recipe/README.md, with what is missing, and of docs/recipe.md."""
    made = [json.loads(path.read_text()) for path in sorted(OUT.glob("*_seed=*.json"))]
    columns = "seeds | accuracy | ECE | NBAUCC₀.₅ mistakes | near (AUROC) | far (AUROC)"
    rows, missing = {}, []
    for name in ("20ng-15", "banking77", "yahoo-8"):
        for row, (variant, how) in ROWS.items():
            ones = [one for one in made if (one["dataset"], one["variant"]) == (name, variant)]
            if ones:
                rows[f"{name}, {row}"] = cells(ones, how)
            else:
                missing.append(f"{name}, {row}")
    all_of_it = [f"| {row} | {' | '.join(of)} |" for row, of in rows.items()]
    head = f"| mean ± sd over seeds, in % | {columns} | epoch or point kept | CPU s |\n|{'---|' * 9}"
    told = f"Not run: {'; '.join(missing)}." if missing else "Every row was run."
    written(OUT / "README.md", "\n".join([head, *all_of_it, "", told]))
    some = [
        f"| {row} | {' | '.join(of[:6])} |" for row, of in rows.items() if row.strip("`").endswith(MEASURED)
    ]
    written(DOCS, "\n".join([f"| | {columns} |\n|{'---|' * 7}", *some]))
    written(
        DOCS,
        objectives({(one["dataset"], one["variant"]): one for one in made if one["seed"] == 0}),
        OBJECTIVES,
    )


def objectives(made: dict[tuple[str, str], dict]) -> str:
    """What other objectives bring and cost, beside the default of the same seed."""
    lines = [
        "| seed 0, in % but for NLL and cost | accuracy | NLL | ECE | near AUROC | far AUROC | far AUROC, "
        "without familiarity | cost |",
        f"|{'---|' * 8}",
    ]
    for name in ("20ng-15", "banking77", "yahoo-8"):
        for title, variant in TRIED.items():
            if (one := made.get((name, variant))) is not None:
                found, bare = one["figures"]["T+F"], one["figures"]["T"]
                shares = found["accuracy"], found["ece"], found["near"]["auroc"], found["far"]["auroc"]
                accuracy, ece, near, far = (f"{100 * share:.1f}" for share in shares)
                cost = f"{one['cpu_seconds'] / made[name, 'recipe']['cpu_seconds']:.1f}"
                cells = (
                    accuracy,
                    f"{found['nll']:.3f}",
                    ece,
                    near,
                    far,
                    f"{100 * bare['far']['auroc']:.1f}",
                    cost,
                )
                lines.append(f"| {name}, {title} | {' | '.join(cells)} |")
    return "\n".join(lines)


def cells(ones: list[dict], how: str) -> list[str]:
    """The row of some seeds."""
    shown = {what: spread([100 * show(one["figures"][how]) for one in ones]) for what, show in SHOWN.items()}
    aurocs = {
        what: statistics.fmean(100 * SHOWN[f"{what} AUROC"](one["figures"][how]) for one in ones)
        for what in ("near", "far")
    }
    work = [one["cpu_seconds"] for one in ones if "cpu_seconds" in one]
    return [
        str(len(ones)),
        *(shown[what] for what in ("accuracy", "ECE", "mistakes")),
        *(f"{shown[what]} ({auroc:.1f})" for what, auroc in aurocs.items()),
        ", ".join(map(kept, ones)),
        f"{statistics.fmean(work):.0f}" if work else "–",
    ]


def kept(one: dict) -> str:
    """Which epoch, or how far from the start to the last one."""
    share = one.get("share")
    return f"{one['best_epoch']:g}" if share is None else f"{share:.0%}"


def written(page: Path, table: str, begin: str = BEGIN) -> None:
    """Put it between two marks of the page."""
    before, _, rest = page.read_text(encoding="utf-8").partition(begin)
    _, _, after = rest.partition(END)
    page.write_text(f"{before}{begin}\n\n{table}\n\n{END}{after}", encoding="utf-8")


def spread(values: list[float]) -> str:
    mean = statistics.fmean(values)
    return f"{mean:.1f}" + (f" ± {statistics.stdev(values):.1f}" if len(values) > 1 else "")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--datasets", nargs="*", default=["banking77", "yahoo-8", "20ng-15"])
    parser.add_argument("--variants", nargs="*", default=list(VARIANTS))
    parser.add_argument("--seeds", nargs="*", type=int, default=[0, 1, 2])
    parser.add_argument("--epochs", type=int, default=None)
    parser.add_argument("--table", action="store_true")
    arguments = parser.parse_args()
    if arguments.table:
        return tables()
    torch.set_num_threads(1)
    OUT.mkdir(parents=True, exist_ok=True)
    for seed in arguments.seeds:
        for name in arguments.datasets:
            for variant in arguments.variants:
                path = OUT / f"{name}_{variant}_seed={seed}.json"
                if path.exists():
                    continue
                found = run(name, variant, seed, arguments.epochs)
                path.write_text(json.dumps(found, indent=1) + "\n")
                line = {
                    how: {k: round(100 * show(f), 1) for k, show in SHOWN.items()}
                    for how, f in found["figures"].items()
                }
                print(
                    path.stem,
                    found["seconds"],
                    "s, kept",
                    kept(found),
                    json.dumps(line["T+F"]),
                    flush=True,
                )


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
