"""Each point between the start and the end of fine-tuning: is the one that dev chooses a good one?

    CALIBRANT_DATA=… OMP_NUM_THREADS=1 python benchmarks/interpolation.py
    python benchmarks/interpolation.py --table

Only training texts are read, of three datasets, and AG News and Yelp as text from elsewhere: no test text,
and no unfamiliar set of results/recipe. A third of the classes is left out, which is near text. 2,000 of the
other texts are trained on as by default, 500 are dev, and 1,500 are asked. One JSON file for each dataset and
draw lies in results/interpolation; one that is there is not made again.
"""

import argparse
import json
import random
import tempfile
from importlib.metadata import version
from pathlib import Path

import torch

from calibrant import RunConfig
from calibrant._system.atomic import write_json
from calibrant._system.device import machine
from calibrant.calibrators import calibrated, new_calibrator
from calibrant.calibrators.temperature import refined_nll
from calibrant.classifier import of_run
from calibrant.data import datasets
from calibrant.data.splits import draw
from calibrant.fitting import fine_tuning
from calibrant.metrics.measure import measure
from calibrant.models import fast
from calibrant.runs.texts import make_splits
from calibrant.tasks import train as task
from calibrant.training.interpolating import INNER, between, copied, interpolate
from calibrant.types import Prediction
from recipe import LENGTH, SHOWN, TRAIN, labelled, only

OUT = Path(__file__).parents[1] / "results" / "interpolation"
ASKED, NEAR, ELSEWHERE = 1500, 1000, 500
NEEDS = frozenset({"features", "middle"})


def run(name: str, seed: int) -> dict:
    known = datasets()
    whole, rng = known[name].read("train"), random.Random(100 + seed)
    classes = sorted(set(whole.labels))
    rng.shuffle(classes)
    left_out = set(classes[: len(classes) // 3])
    near = draw(only(whole, lambda label: label in left_out), NEAR, "NEAR")
    inside = only(whole, lambda label: label not in left_out)
    order = list(range(len(inside)))
    rng.shuffle(order)

    def part(rows: list[int]):
        return labelled([inside.texts[i] for i in rows], [inside.labels[i] for i in rows], inside.source)

    asked = part(order[:ASKED])
    splits = make_splits(name, part(order[ASKED : ASKED + TRAIN]), None, TRAIN)
    far = [
        text for other in ("agnews", "yelp") for text in draw(known[other].read("test"), ELSEWHERE, "").texts
    ]
    ends = {}

    def remembered(trainer, start, *rest):
        ends.update(start=start, end=copied(trainer.model))
        return interpolate(trainer, start, *rest)

    task.load_splits = lambda config: splits
    fine_tuning.interpolate = remembered
    length = {"max_length": LENGTH[name]} if name in LENGTH else {}
    with tempfile.TemporaryDirectory() as folder:
        config = RunConfig(train="texts of the benchmark", seed=seed, calibrator="none", **length)
        made = task.train(config, out=Path(folder) / "run")
        classifier = of_run(made)
    (model,), found = classifier.models, {}
    y_dev, y, y_train = map(classifier.class_ids, (splits.dev, asked, splits.train))
    for share in (0.0, *INNER, 1.0):
        fast.remove(model)
        model.load_state_dict(between(ends["start"], ends["end"], share))
        fast.apply(model)
        texts = {"train": splits.train, "dev": splits.dev, "asked": asked, "near": near}
        said = {what: classifier.outputs(some.texts, NEEDS) for what, some in texts.items()}
        said["far"] = classifier.outputs(far, NEEDS)
        calibrator = new_calibrator("temperature+familiarity").fit(
            said["dev"], y_dev, (said["train"], y_train)
        )
        p = {what: calibrated(said[what], calibrator).probabilities for what in ("asked", "near", "far")}
        familiar = Prediction(p["asked"], y)
        figures = measure(familiar, None)
        figures |= {what: measure(familiar, Prediction(p[what]))["ood"] for what in ("near", "far")}
        found[str(share)] = {
            "refined NLL, dev": refined_nll(said["dev"].logits, y_dev),
            "refined NLL, asked": refined_nll(said["asked"].logits, y),
            **{what: show(figures) for what, show in SHOWN.items()},
        }
    versions = {
        package: version(package) for package in ("calibrant", "torch", "transformers", "scikit-learn")
    }
    dev = {
        f"{e['epoch']:g}": -e["eval_refinement"]
        for e in made.training.history
        if "share" not in e and "eval_nll" in e
    }
    return {"dev by epoch": dev, "points": found, "versions": versions, "machine": machine()}


def table() -> None:
    columns = "share of the way | dev NLL | NLL | accuracy | ECE | near AUROC | far AUROC"
    print(f"| {columns} |\n|{'---|' * 7}")
    for path in sorted(OUT.glob("*.json")):
        points = json.loads(path.read_text())["points"]
        best = min(points, key=lambda share: points[share]["refined NLL, dev"])
        for share, of in points.items():
            cells = [f"{of[what]:.3f}" for what in ("refined NLL, dev", "refined NLL, asked")]
            cells += [f"{100 * of[what]:.1f}" for what in ("accuracy", "ECE", "near AUROC", "far AUROC")]
            chosen = " (chosen)" if share == best else ""
            print(f"| {path.stem}, {float(share):.0%}{chosen} | {' | '.join(cells)} |")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--datasets", nargs="*", default=["banking77", "yahoo-8", "20ng-15"])
    parser.add_argument("--seeds", nargs="*", type=int, default=[0, 1])
    parser.add_argument("--table", action="store_true")
    arguments = parser.parse_args()
    if arguments.table:
        return table()
    torch.set_num_threads(1)
    OUT.mkdir(parents=True, exist_ok=True)
    for seed in arguments.seeds:
        for name in arguments.datasets:
            path = OUT / f"{name}_seed={seed}.json"
            if not path.exists():
                write_json(path, run(name, seed))
                print(path.stem, flush=True)


if __name__ == "__main__":
    main()
