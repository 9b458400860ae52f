"""From a job to its cells: train what is not trained yet, ask it as each cell says, write what was found."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from calibrant.calibrators import calibrated
from calibrant.classifier import Classifier, of_run
from calibrant.data import datasets
from calibrant.data.splits import draw, warn_of_overlap
from calibrant.metrics.dev import dev_figures
from calibrant.metrics.measure import measure
from calibrant.registry import pick
from calibrant.runs.store import Run
from calibrant.runs.texts import load_splits
from calibrant.study.cells import Cell, Confidences
from calibrant.study.plan import Job, Planned, Training
from calibrant.study.provenance import describe
from calibrant.tasks.train import train, training_times
from calibrant.types import Progress, Splits, Texts


def trained(study: Path, training: Training, progress: Progress) -> Run:
    """The finished run of a training; one that is there is used again."""
    return train(training.config, out=training.folder(study), progress=progress)


def measure_job(study: Path, job: Job, progress: Progress) -> None:
    """Leave the run of each training and the files of each cell in the study."""
    runs = [trained(study, training, progress) for training in job.trainings]
    if not job.cells:
        return
    classifiers = [of_run(run) for run in runs]
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
    # The same weights, asked as the cell says.
    models = [model for each in classifiers for model in each.models]
    classifier = replace(
        classifiers[0], models=models, inference=planned.inference, calibrator=None, run=None
    )
    calibrator = planned.calibrator
    needs = frozenset[str]() if calibrator is None else calibrator.needs
    outputs = classifier.outputs(splits.dev.texts, needs, progress, "dev")
    labels = classifier.class_ids(splits.dev)
    if calibrator is not None:
        fitted = classifier.fit_calibrator(calibrator, outputs, labels, splits.train, progress)
        classifier = replace(classifier, calibrator=fitted)
        outputs = calibrated(outputs, classifier.calibrator)
    figures = dev_figures(outputs.probabilities, labels)
    familiar = classifier.prediction(test, progress, "test")
    unfamiliar = None
    if ood is not None:  # whose labels mean nothing to this model
        unfamiliar = classifier.prediction(replace(ood, labels=None), progress, "unfamiliar")
    record = runs[0].record
    parts = {"train": splits.train, "dev": splits.dev, "test": test, "ood": ood}
    cell = Cell(
        key=planned.key,
        fingerprint=planned.fingerprint,
        metrics=measure(familiar, unfamiliar),
        objective=record.objective,
        config=record.config.model_dump(),
        training={
            **training_times(runs),
            "steps": sum(run.training.steps for run in runs),
            "best_epoch": runs[0].training.best_epoch,
            **{f"dev_{name}": value for name, value in figures.items()},
        },
        data={part: describe(texts) for part, texts in parts.items() if texts is not None},
        versions=record.versions,
        machine=record.machine,
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
