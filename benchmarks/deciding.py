"""What the promises of abstention, sets and monitor are worth on real text: results/abstention-sets-alarms.

    CALIBRANT_DATA=../shared/data python benchmarks/deciding.py runs/20ng-15/bert runs/banking77/bert …

Of each run, on the test texts of its dataset and the unfamiliar ones that belong to it: AUROC of every score;
over 200 random halves of the test predictions (one to learn on, one to measure on) how often the promised
risk is exceeded and what coverage the promise costs, and the coverage of conformal sets; and in how many of
20 random halves of the test texts, and of the unfamiliar texts, `calibrant monitor` calls an alarm.
"""

import argparse
import json
import math
import os
import platform
from importlib.metadata import version
from pathlib import Path

import numpy as np

from calibrant.calibrators import calibrated
from calibrant.classifier import load
from calibrant.data import datasets
from calibrant.decide.drift import confidence_shift, look
from calibrant.decide.risk import Sample, make_plan, naive_selection, select
from calibrant.decide.sets import fit_sets
from calibrant.errors import UserError
from calibrant.metrics.measure import measure_scores

SPLITS, HALVES = 200, 20
LEVEL_OF_PROMISE = 0.95
RISKS = (0.02, 0.05, 0.1, 0.2)
LEVEL, TOLERANCE = 0.01, 0.1  # what `calibrant monitor` takes where nothing is said


def promise(confidence, wrong, risk, draw):
    """Learnt on one half, a third of it the pilot, and measured on the other, 200 times.

    The promise is about the world that both halves come from. The other half is a sample of it, with an error
    of its own, and the poorer the luckier the first one was; so the rate in all the texts is given beside it.
    """
    found, everything = {}, Sample(confidence, wrong)
    for kind in ("promised", "naive"):
        exceeded, truly, coverage = [], [], []
        for seed in range(SPLITS):
            here, there = np.array_split(np.random.default_rng((draw, seed)).permutation(len(wrong)), 2)
            pilot, tested = np.split(here, [len(here) // 3])
            plan = make_plan(everything[pilot], len(tested), risk, LEVEL_OF_PROMISE)
            if kind == "promised":
                rule = select(everything[tested], plan, risk, LEVEL_OF_PROMISE)
            else:
                rule = naive_selection(everything[here], plan, risk)
            answered = confidence >= (math.inf if rule is None else rule.threshold)
            coverage.append(answered[there].mean())
            exceeded.append(bool(answered[there].any() and wrong[there][answered[there]].mean() > risk))
            truly.append(bool(answered.any() and wrong[answered].mean() > risk))
        rates = {"exceeded": exceeded, "exceeded_in_all_texts": truly, "coverage": coverage}
        found[kind] = {name: np.mean(values).item() for name, values in rates.items()}
    return found


def set_coverage(probabilities, labels, coverage, method, per_class, draw):
    """Mean share of texts whose true label is in the set, and mean size; None where a half has too few texts
    of a class to promise anything."""
    shares, sizes = [], []
    for seed in range(SPLITS):
        order = np.random.default_rng((draw, seed)).permutation(len(labels))
        here, there = np.array_split(order, 2)
        try:
            rule = fit_sets(probabilities[here], labels[here], coverage, method, per_class)
        except UserError:
            return None
        members = rule.members(probabilities[there])
        shares.append(members[np.arange(len(there)), labels[there]].mean())
        sizes.append(members.sum(axis=1).mean())
    return {"coverage": np.mean(shares).item(), "size": np.mean(sizes).item()}


def alarms(then, confidence, draw):
    """In how many of 20 random halves the confidences have moved from dev's."""
    halves = [
        np.random.default_rng((draw, seed)).permutation(len(confidence))[: len(confidence) // 2]
        for seed in range(HALVES)
    ]
    return sum(
        confidence_shift(then, look(then, confidence[half])).beyond(TOLERANCE, LEVEL) for half in halves
    )


def measure(path: Path) -> dict:
    classifier = load(path)
    dataset = datasets()[classifier.run.config.dataset]
    test, ood = dataset.read("test"), datasets()[dataset.ood].read("test")
    rng = np.random.default_rng(0)
    kept = sorted(rng.choice(len(ood), min(len(ood), 5000), replace=False).tolist())
    labels = classifier.class_ids(test)
    kinds = classifier.fitted_scores(classifier.usable_scores())
    needs = frozenset().union(*(score.needs for score in kinds.values()))
    familiar = classifier.outputs(test.texts, needs)
    unfamiliar = classifier.outputs([ood.texts[i] for i in kept], needs)
    p = familiar.probabilities
    confidence, wrong = p.max(axis=1), p.argmax(axis=1) != labels
    dev = classifier.answer_dev()
    then = calibrated(dev.outputs, classifier.calibrator).probabilities.max(axis=1)
    scores = ({name: score(outputs) for name, score in kinds.items()} for outputs in (familiar, unfamiliar))
    found, found_ood = scores
    return {
        "method": classifier.run.name,
        "dataset": dataset.name,
        "ood": dataset.ood,
        "n_test": len(test),
        "n_ood": len(kept),
        "n_dev": len(then),
        "accuracy": 1 - wrong.mean().item(),
        "scores": measure_scores(found, wrong, found_ood),
        "risk": {str(risk): promise(confidence, wrong, risk, 1) for risk in RISKS},
        "sets": {
            f"{coverage} {method}{' per class' * per_class}": set_coverage(
                p, labels, coverage, method, per_class, 2
            )
            for coverage in (0.8, 0.9, 0.95)
            for method in ("lac", "aps")
            for per_class in (False, True)
        },
        "alarms": {
            "test": alarms(then, confidence, 3),
            "ood": alarms(then, unfamiliar.probabilities.max(axis=1), 4),
            "of": HALVES,
        },
        "config": classifier.run.config.model_dump(mode="json"),
    }


def tables(found: list[dict]) -> str:
    names = [f"{row['dataset']}, {row['method']}" for row in found]
    lines = ["AUROC of finding unfamiliar text / the run's own mistakes:", ""]
    lines += ["| score | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
    for score in found[0]["scores"]:
        cells = [
            " / ".join(f"{row['scores'][score][kind]['auroc']:.3f}" for kind in ("ood", "misclassification"))
            for row in found
        ]
        lines.append(f"| {score} | " + " | ".join(cells) + " |")
    lines += [
        "",
        f"{SPLITS} random halves of the test predictions; share of them in which the risk on accepted",
    ]
    lines += ["texts exceeds what was asked for in the other half (in all texts), and mean coverage;"]
    lines += ["promised at confidence 0.95 | naive:", ""]
    lines += ["| risk | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
    for risk in found[0]["risk"]:
        cells = [
            " \\| ".join(
                "{exceeded:.1%} ({exceeded_in_all_texts:.1%}), {coverage:.1%}".format(**row["risk"][risk][k])
                for k in ("promised", "naive")
            )
            for row in found
        ]
        lines.append(f"| {float(risk):.0%} | " + " | ".join(cells) + " |")
    lines += ["", "Conformal sets on the same halves, coverage and mean size:", ""]
    lines += ["| sets | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
    for kind in found[0]["sets"]:
        measured = [row["sets"][kind] for row in found]
        cells = ["–" if m is None else f"{m['coverage']:.1%}, {m['size']:.2f}" for m in measured]
        lines.append(f"| {kind} | " + " | ".join(cells) + " |")
    lines += ["", f"Alarms of the monitor in {HALVES} random halves, test / unfamiliar:", ""]
    lines += [
        f"- {name}: {row['alarms']['test']} / {row['alarms']['ood']}"
        for name, row in zip(names, found, strict=True)
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, default=Path("results/abstention-sets-alarms"))
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    found = []
    for run in arguments.runs:
        found.append(measure(run))
        print(run, flush=True)
    runs = " ".join(map(str, arguments.runs))
    about = {
        "command": f"CALIBRANT_DATA=../shared/data python benchmarks/deciding.py {runs}",
        "versions": {name: version(name) for name in ("calibrant", "torch", "transformers", "scikit-learn")},
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
    }
    (arguments.out / "measured.json").write_text(json.dumps({**about, "runs": found}, indent=1) + "\n")
    (arguments.out / "README.md").write_text(
        f"# Scores, promises, sets and alarms on real text\n\n    {about['command']}\n\n{tables(found)}"
    )
    print(tables(found))


if __name__ == "__main__":
    main()
