"""What temperature scaling adds to manifold smoothing: trained runs of the study, before and after it.

    CALIBRANT_DATA=… python benchmarks/scaled.py runs/study-laptop/runs/*

T is fitted on each run's own dev texts; test and unfamiliar texts are those of the study's cells. Runs of
other methods are left out.
"""

import argparse
from dataclasses import replace
from pathlib import Path

from scipy.special import softmax

import calibrant
from calibrant.atomic import write_json
from calibrant.calibrators.temperature import Temperature
from calibrant.evaluation import evaluate
from calibrant.fitting import load_splits
from calibrant.prediction import Classifier
from calibrant.study.measuring import held_out
from calibrant.study.presets import PRESETS
from calibrant.types import Prediction

COLUMNS = {
    "ECE": lambda m: m["ece"],
    "NBAUCC₀.₅ mistakes": lambda m: m["misclassification"]["nbaucc_0.5"],
    "NBAUCC₀.₅ unfamiliar": lambda m: m["ood"]["nbaucc_0.5"],
}


def scaled(classifier: Classifier) -> dict:
    """Metrics as trained and with the temperature that dev asks for."""
    record, splits = classifier.run.record, load_splits(classifier.run.config)
    test, ood = held_out(splits.name, PRESETS["laptop"].max_test_samples)
    temperature = Temperature().fit(classifier.logits(splits.dev.texts), classifier.class_ids(splits.dev))
    familiar, unfamiliar = (classifier.logits(texts.texts) for texts in (test, replace(ood, labels=None)))
    labels = classifier.class_ids(test)

    def metrics(probabilities):
        return evaluate(Prediction(probabilities(familiar), labels), Prediction(probabilities(unfamiliar)))

    return {
        "config": record["config"],
        "objective": record["objective"],
        "versions": record["versions"],
        "machine": record["machine"],
        "calibrator": temperature.state(),
        "before": metrics(lambda logits: softmax(logits, axis=1)),
        "after": metrics(temperature.probabilities),
    }


def main() -> None:
    """Measure, write one file a run, print a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, default=Path("results/scaled"))
    arguments = parser.parse_args()
    print("| | seed | " + " | ".join(f"{column}: before | after" for column in COLUMNS) + " |")
    for path in arguments.runs:
        classifier = calibrant.load(path)
        config, objective = classifier.run.config, classifier.run.record["objective"]
        if config.method != "manifold-smoothing":
            continue
        name = f"{config.dataset}, δ_off {objective['delta_off']:g}"
        found = scaled(classifier)
        write_json(arguments.out / f"{name}-{config.seed}.json", found)
        cells = [
            f"{100 * column(found[when]):.1f}" for column in COLUMNS.values() for when in ("before", "after")
        ]
        print(f"| {name} | {config.seed} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
