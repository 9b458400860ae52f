"""What temperature scaling adds to manifold smoothing: trained runs of the study, before and after it.

    CALIBRANT_DATA=… python benchmarks/scaled.py runs/study-laptop/runs/*

T is fitted on each run's own dev texts; test and unfamiliar texts are those of the study's cells. Runs of
other methods are left out.
"""

import argparse
from pathlib import Path

import calibrant
from calibrant._system.atomic import write_json
from calibrant.calibrators import Temperature, calibrated
from calibrant.classifier import Classifier
from calibrant.metrics.measure import measure
from calibrant.runs.texts import load_splits
from calibrant.study.measuring import held_out
from calibrant.study.presets import PRESETS
from calibrant.types import Outputs, Prediction

COLUMNS = {
    "ECE": lambda m: m["ece"],
    "NBAUCC₀.₅ mistakes": lambda m: m["misclassification"]["nbaucc_0.5"],
    "NBAUCC₀.₅ unfamiliar": lambda m: m["ood"]["nbaucc_0.5"],
}


def scaled(classifier: Classifier) -> dict:
    """Metrics as trained and with the temperature that dev asks for."""
    splits = load_splits(classifier.run.config)
    test, ood = held_out(splits.name, PRESETS["laptop"].max_test_samples)
    dev, familiar, unfamiliar = (
        Outputs(classifier.outputs(texts.texts).logits) for texts in (splits.dev, test, ood)
    )
    temperature = Temperature().fit(dev, classifier.class_ids(splits.dev))
    labels = classifier.class_ids(test)

    def metrics(calibrator):
        p, p_ood = (calibrated(outputs, calibrator).probabilities for outputs in (familiar, unfamiliar))
        return measure(Prediction(p, labels), Prediction(p_ood))

    about = classifier.run.record.model_dump(
        mode="json", include={"config", "objective", "versions", "machine"}
    )
    return {
        **about,
        "calibrator": temperature.state(),
        "before": metrics(None),
        "after": metrics(temperature),
    }


def main() -> None:
    """Measure, write one file a run, print a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, default=Path("results/temperature-after-smoothing"))
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    print("| | seed | " + " | ".join(f"{column}: before | after" for column in COLUMNS) + " |")
    for path in arguments.runs:
        classifier = calibrant.load(path)
        config, objective = classifier.run.config, classifier.run.record.objective
        if config.method != "manifold-smoothing":
            continue
        name = f"{config.dataset}_delta_off={objective['delta_off']:g}"
        found = scaled(classifier)
        write_json(arguments.out / f"{name}_seed={config.seed}.json", found)
        cells = [
            f"{100 * column(found[when]):.1f}" for column in COLUMNS.values() for when in ("before", "after")
        ]
        print(f"| {name} | {config.seed} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
