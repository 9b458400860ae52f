"""From a job to its cells: train what is not trained yet, ask it as each cell says, write what was found."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from numpy.typing import NDArray
from scipy.special import softmax

from calibrant.artifact import Run
from calibrant.data import datasets
from calibrant.data.splits import draw, warn_of_overlap
from calibrant.evaluation import evaluate
from calibrant.fitting import fit, load_splits, training_times
from calibrant.metrics import accuracy, expected_calibration_error, negative_log_likelihood
from calibrant.prediction import Classifier
from calibrant.registry import pick
from calibrant.study.cells import Cell, Confidences
from calibrant.study.plan import Job, Planned, Training
from calibrant.study.provenance import describe
from calibrant.types import Progress, Splits, Texts


def train(study: Path, training: Training, progress: Progress) -> Run:
    """The finished run of a training; one that is there is used again."""
    return fit(training.config, training.folder(study), progress)


def dev_figures(probabilities: NDArray[Any], labels: NDArray[Any]) -> dict[str, float]:
    """What is seen on dev; a search chooses by the ECE."""
    return {
        "dev_accuracy": accuracy(probabilities, labels),
        "dev_confidence": float(probabilities.max(axis=1).mean()),
        "dev_nll": negative_log_likelihood(probabilities, labels),
        "dev_ece": expected_calibration_error(probabilities, labels),
    }


def measure_job(study: Path, job: Job, progress: Progress) -> None:
    """Leave the run of each training and the files of each cell in the study."""
    runs = [train(study, training, progress) for training in job.trainings]
    if not job.cells:
        return
    classifiers = [Classifier(run) for run in runs]
    splits = load_splits(runs[0].config)
    test, ood = held_out(splits.name, job.cells[0].max_test_samples)
    warn_of_overlap(splits.train, test)
    for planned in job.cells:
        _measure(study, planned, runs, classifiers, splits, test, ood, progress)


def _measure(
    study: Path,
    planned: Planned,
    runs: Sequence[Run],
    classifiers: Sequence[Classifier],
    splits: Splits,
    test: Texts,
    ood: Texts | None,
    progress: Progress,
) -> None:
    first, *others = classifiers
    classifier = first.asked(planned.inference, None, others)
    logits = classifier.logits(splits.dev.texts, progress, "dev")
    labels = classifier.class_ids(splits.dev)
    on_dev = softmax(logits, axis=1)
    if planned.calibrator is not None:
        calibrator = planned.calibrator.fit(logits, labels)
        classifier = classifier.asked(planned.inference, calibrator)
        on_dev = calibrator.probabilities(logits)
    familiar = classifier.prediction(test, progress, "test")
    unfamiliar = None
    if ood is not None:  # whose labels mean nothing to this model
        unfamiliar = classifier.prediction(replace(ood, labels=None), progress, "unfamiliar")
    record = runs[0].record
    parts = {"train": splits.train, "dev": splits.dev, "test": test, "ood": ood}
    cell = Cell(
        key=planned.key,
        fingerprint=planned.fingerprint,
        metrics=evaluate(familiar, unfamiliar),
        objective=record["objective"],
        config=record["config"],
        training={
            **training_times(runs),
            "steps": sum(run.record["training"]["steps"] for run in runs),
            "best_epoch": record["training"]["best_epoch"],
            **dev_figures(on_dev, labels),
        },
        data={part: describe(texts) for part, texts in parts.items() if texts is not None},
        versions=record["versions"],
        machine=record["machine"],
    )
    cell.write(
        study,
        Confidences(
            familiar.confidence,
            familiar.predicted == familiar.labels,
            familiar.confidence[:0] if unfamiliar is None else unfamiliar.confidence,
        ),
    )


def held_out(name: str, at_most: int | None) -> tuple[Texts, Texts | None]:
    """Test texts of a dataset, and those of its unfamiliar world."""
    dataset, option = pick("dataset", name, datasets()), "max_test_samples of the preset"
    test = draw(dataset.read("test"), at_most, option)
    if dataset.ood is None:
        return test, None
    return test, draw(pick("dataset", dataset.ood, datasets()).read("test"), at_most, option)
