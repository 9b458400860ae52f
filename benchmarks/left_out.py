"""How familiarity's score and level are chosen, and what more doubt about distant text would bring: by
leaving classes out of training sets.

    CALIBRANT_DATA=… OMP_NUM_THREADS=1 python benchmarks/left_out.py
    python benchmarks/left_out.py --table

Only training texts are read, of three datasets, and AG News and Yelp as text from elsewhere: no test text,
and no unfamiliar set of results/recipe. In each of ten draws a third of the classes is left out. The rest is
divided: 200 texts (or 40) are dev, 500 are asked, the others are trained on. The encoder stays frozen, as
with ``--quick``.
"""

import argparse
import json
import tempfile
from importlib.metadata import version
from pathlib import Path

import numpy as np
import torch
from scipy.special import softmax

from calibrant import RunConfig
from calibrant._system.atomic import write_json
from calibrant._system.device import machine
from calibrant.calibrators.familiarity import RHO, Familiarity
from calibrant.calibrators.temperature import Temperature
from calibrant.classifier import of_run
from calibrant.data import datasets
from calibrant.data.splits import draw, make_splits
from calibrant.metrics.measure import measure, measure_scores
from calibrant.models.probe import fit_probe
from calibrant.scores import scores
from calibrant.scores.mahalanobis import Mahalanobis
from calibrant.tasks import train as task
from calibrant.types import Outputs, Prediction

OUT = Path(__file__).parents[1] / "results" / "left-out"
TEXTS, ASKED, ELSEWHERE, DRAWS = 2500, 500, 500, 10
LENGTH = {"20ng-15": 64}
SCORES = (
    *("mahalanobis", "relative-mahalanobis", "layer-mahalanobis", "mean-mahalanobis"),
    *("two-layer-mahalanobis", "knn"),
)
LEVELS = [(alpha, rho) for alpha in (0.01, 0.03, 0.05, 0.1) for rho in (0.1, 1.0)]
POWERS = (0.5, 1.0)
"""Of a temperature that grows with the distance d from the nearest class: T·max(1, d/median)^power."""
DEV = (40, 200)
NEEDS = frozenset({"features", "middle", "layers", "head"})


def outputs_of(name: str) -> tuple[Outputs, np.ndarray, Outputs]:
    """What the frozen encoder says of the training texts, their classes, and of text from elsewhere."""
    known = datasets()
    whole = draw(known[name].read("train"), TEXTS, "TEXTS")
    splits = make_splits(name, whole, None)
    task.load_splits = lambda config: splits
    length = {"max_length": LENGTH[name]} if name in LENGTH else {}
    config = RunConfig(train="texts of the benchmark", method="linear-probe", calibrator="none", **length)
    with tempfile.TemporaryDirectory() as folder:
        classifier = of_run(task.train(config, out=Path(folder) / "run"))
    others = [draw(known[other].read("test"), ELSEWHERE, "ELSEWHERE").texts for other in ("agnews", "yelp")]
    asked = classifier.outputs([text for texts in others for text in texts], NEEDS)
    return classifier.outputs(whole.texts, NEEDS), classifier.class_ids(whole), asked


def probed(outputs: Outputs, weight: np.ndarray, bias: np.ndarray) -> Outputs:
    """The same with the logits of this probe."""
    return Outputs(
        outputs.head.astype(np.float64) @ weight.T + bias, outputs.features, outputs.middle, outputs.layers
    )


def growing(outputs: Outputs, distance: np.ndarray, power: float) -> Outputs:
    """Logits divided by max(1, distance)^power."""
    return Outputs(outputs.logits / (np.maximum(1, distance) ** power)[:, None])


def figures(familiar: Prediction, near: np.ndarray, far: np.ndarray) -> dict:
    found = {part: measure(familiar, Prediction(p)) for part, p in (("near", near), ("far", far))}
    mistakes = found["near"]["misclassification"]["nbaucc_0.5"]
    said = {"nll": found["near"]["nll"], "ece": found["near"]["ece"], "mistakes": mistakes}
    return said | {
        f"{part} {what}": of["ood"][what] for part, of in found.items() for what in ("nbaucc_0.5", "auroc")
    }


def one_draw(outputs: Outputs, labels: np.ndarray, elsewhere: Outputs, rng: np.random.Generator) -> dict:
    """By number of dev texts, what each score and level reach."""
    classes = rng.permutation(labels.max() + 1)
    left_out = classes[: len(classes) // 3]
    inside = rng.permutation(np.flatnonzero(~np.isin(labels, left_out)))
    near = np.flatnonzero(np.isin(labels, left_out))
    ids = {k: i for i, k in enumerate(sorted(set(labels[inside])))}
    asked, dev, train = np.split(inside, [ASKED, ASKED + max(DEV)])
    y = np.array([ids.get(k, -1) for k in labels])
    probe = fit_probe(outputs.head[train], y[train], len(ids))
    whole, other = (probed(each, probe.weight, probe.bias) for each in (outputs, elsewhere))
    found = {}
    for n in DEV:
        temperature = Temperature().fit(whole[dev[:n]], y[dev[:n]]).temperature
        parts = {"inside": whole[asked], "near": whole[near], "far": other}
        q = {part: softmax(each.logits / temperature, axis=1) for part, each in parts.items()}
        levels = {"none": figures(Prediction(q["inside"], y[asked]), q["near"], q["far"])}
        familiarity = Familiarity().fit(whole[dev[:n]], y[dev[:n]], (whole[train], y[train]))
        r = {part: familiarity.familiarity(each) * (n + 1) - 1 for part, each in parts.items()}
        for alpha, rho in LEVELS:
            p = {}
            for part in parts:
                a = np.minimum(1, (r[part] + rho) / (alpha * (n + 1)))[:, None]
                p[part] = a * q[part] + (1 - a) / len(ids)
            levels[f"{alpha}, {rho}"] = figures(Prediction(p["inside"], y[asked]), p["near"], p["far"])
        mahalanobis = Mahalanobis().fit(whole[train], y[train])
        median = np.sqrt(np.median(mahalanobis(whole[dev[:n]])))
        for power in POWERS:
            z = {
                what: growing(each, np.sqrt(mahalanobis(each)) / median, power)
                for what, each in {**parts, "dev": whole[dev[:n]]}.items()
            }
            temperature = Temperature().fit(z["dev"], y[dev[:n]])
            p = {}
            for part in parts:
                a = np.minimum(1, (r[part] + RHO) / (familiarity.alpha * (n + 1)))[:, None]
                p[part] = a * temperature.probabilities(z[part]) + (1 - a) / len(ids)
            levels[f"power {power:g}"] = figures(Prediction(p["inside"], y[asked]), p["near"], p["far"])
        found[f"dev={n}"] = levels
    fitted = {name: scores()[name]().fit(whole[train], y[train]) for name in SCORES}
    s = {part: {name: score(each) for name, score in fitted.items()} for part, each in parts.items()}
    wrong = q["inside"].argmax(axis=1) != y[asked]
    ranked = {part: measure_scores(s["inside"], wrong, s[part]) for part in ("near", "far")}
    found["scores"] = {
        name: {part: of[name]["ood"]["auroc"] for part, of in ranked.items()} for name in SCORES
    }
    return found


def mean(draws: list[dict]) -> dict:
    """Of equal trees of numbers, the tree of [mean, sd]."""
    if isinstance(draws[0], dict):
        return {key: mean([one[key] for one in draws]) for key in draws[0]}
    return [round(float(np.mean(draws)), 4), round(float(np.std(draws, ddof=1)), 4)]


def table() -> None:
    made = {path.stem: json.loads(path.read_text())["found"] for path in sorted(OUT.glob("*.json"))}
    print("| AUROC, near / far |", " | ".join(made), "|\n|---|" + "---|" * len(made))
    for score in SCORES:
        found = [[100 * value for value, _ in one["scores"][score].values()] for one in made.values()]
        print(f"| {score} |", " | ".join(f"{near:.1f} / {far:.1f}" for near, far in found), "|")
    for n in DEV:
        head = f"| {n} dev texts: NLL, ECE, mistakes, near (AUROC), far (AUROC) |"
        print(f"\n{head}", " | ".join(made), "|\n|---|" + "---|" * len(made))
        for level in next(iter(made.values()))[f"dev={n}"]:
            found = [one[f"dev={n}"][level] for one in made.values()]
            print(f"| {level} |", " | ".join(map(told, found)), "|")


def told(of: dict) -> str:
    f = {what: 100 * value for what, (value, _) in of.items()}
    ood = [f"{f[f'{part} nbaucc_0.5']:.0f} ({f[f'{part} auroc']:.1f})" for part in ("near", "far")]
    return f"{f['nll'] / 100:.3f}, {f['ece']:.1f}, {f['mistakes']:.0f}, {', '.join(ood)}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--datasets", nargs="*", default=["banking77", "yahoo-8", "20ng-15"])
    parser.add_argument("--table", action="store_true")
    arguments = parser.parse_args()
    if arguments.table:
        return table()
    torch.set_num_threads(1)
    for name in arguments.datasets:
        outputs, labels, elsewhere = outputs_of(name)
        rng = np.random.default_rng(0)
        draws = [one_draw(outputs, labels, elsewhere, rng) for _ in range(DRAWS)]
        packages = ("calibrant", "torch", "transformers", "scikit-learn", "numpy")
        versions = {each: version(each) for each in packages}
        record = {"texts": len(labels), "draws": DRAWS, "machine": machine(), "versions": versions}
        OUT.mkdir(parents=True, exist_ok=True)
        write_json(OUT / f"{name}.json", record | {"found": mean(draws)})
        print(name, flush=True)


if __name__ == "__main__":
    main()
