"""From a job to its cells: train what is not trained yet, ask it as each cell says, write what was found."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from calibrant._system.lock import alone
from calibrant.calibrators import calibrated, new_calibrator
from calibrant.classifier import Classifier, of_run
from calibrant.data import datasets
from calibrant.data.splits import draw, warn_of_overlap
from calibrant.errors import UserError
from calibrant.fitting.calibrating import fit_calibrator
from calibrant.fitting.outcome import training_times
from calibrant.inference import SinglePass
from calibrant.methods import NO_CALIBRATOR
from calibrant.metrics.dev import dev_figures
from calibrant.metrics.measure import measure
from calibrant.registry import pick
from calibrant.runs.store import Run
from calibrant.runs.texts import load_splits
from calibrant.study.cells import Cell, Confidences
from calibrant.study.plan import Job, Planned, Training
from calibrant.study.provenance import describe
from calibrant.study.rows import ANSWERS, ROWS
from calibrant.tasks.train import train
from calibrant.types import Outputs, Prediction, Progress, Splits, Texts

logger = logging.getLogger(__name__)
NEEDS = frozenset[str]().union(*(new_calibrator(how).needs for how in ANSWERS if how != NO_CALIBRATOR))
"""What the calibrators read beside logits."""


def trained(study: Path, training: Training, progress: Progress) -> Run:
    """The finished run of a training; one that is there is used again."""
    return train(training.config, out=training.folder(study), progress=progress)


@contextmanager
def mine(study: Path, job: Job) -> Iterator[None]:
    """The job is this process's alone; ``Busy`` is raised where another one of the same study is at it."""
    folder = job.trainings[0].folder(study)
    with ExitStack() as held:
        while True:
            folder.mkdir(parents=True, exist_ok=True)
            with suppress(FileNotFoundError):  # another one has just dropped the run, and its folder
                held.enter_context(alone(folder, "trained"))
                break
        yield


def measure_job(study: Path, job: Job, progress: Progress) -> None:
    """Leave the run of each training and the files of each cell in the study."""
    if _done(study, job):
        return
    with mine(study, job):
        if _done(study, job):  # by another process, while this one looked
            return
        runs = [trained(study, training, progress) for training in job.trainings]
        if not job.cells:
            return
        classifiers = [of_run(run) for run in runs]
        splits = load_splits(runs[0].config)
        test, ood = held_out(splits.name, job.cells[0].max_test_samples)
        warn_of_overlap(splits.train, test)
        models = [model for each in classifiers for model in each.models]
        alone_asked = replace(classifiers[0], models=models, calibrator=None, run=None)
        on_train = None
        for inference in dict.fromkeys(cell.inference for cell in job.cells):
            # The same weights, asked as the cells say.
            classifier = replace(alone_asked, inference=inference)
            if on_train is None:  # dropout has no part in features
                single = len(models) == 1
                asked = replace(alone_asked, inference=SinglePass()) if single else classifier
                on_train = asked.outputs(splits.train.texts, NEEDS, progress, "train")
            answers = _ask(classifier, splits, on_train, test, ood, progress)
            for planned in job.cells:
                if planned.inference == inference:
                    _write(study, planned, runs, splits, test, ood, answers)


def _done(study: Path, job: Job) -> bool:
    return bool(job.cells) and all(cell.finished(study) for cell in job.cells)


@dataclass(frozen=True)
class Answer:
    """What a trained model says with one calibrator."""

    test: Prediction
    ood: Prediction | None
    dev: dict[str, float]  # figures


def _ask(
    classifier: Classifier,
    splits: Splits,
    on_train: Outputs,
    test: Texts,
    ood: Texts | None,
    progress: Progress,
) -> dict[str, Answer]:
    """By calibrator, of one pass over the texts. One that cannot be fitted is left out, and told."""

    def outputs(texts: Texts, label: str) -> Outputs:
        return classifier.outputs(texts.texts, NEEDS, progress, label)

    on_dev, familiar = outputs(splits.dev, "dev"), outputs(test, "test")
    unfamiliar = None if ood is None else outputs(ood, "unfamiliar")
    labels, found = classifier.class_ids(splits.dev), {}
    for how in ANSWERS:
        calibrator = None
        if how != NO_CALIBRATOR:
            try:
                calibrator = fit_calibrator(
                    classifier, new_calibrator(how), on_dev, splits.dev, splits.train, on_train=on_train
                )
            except UserError as error:
                logger.warning("%s: %s It is left out.", how, error)
                continue
        found[how] = Answer(
            Prediction(calibrated(familiar, calibrator).probabilities, classifier.class_ids(test)),
            None if unfamiliar is None else Prediction(calibrated(unfamiliar, calibrator).probabilities),
            dev_figures(calibrated(on_dev, calibrator).probabilities, labels),
        )
    return found


def _write(
    study: Path,
    planned: Planned,
    runs: Sequence[Run],
    splits: Splits,
    test: Texts,
    ood: Texts | None,
    answers: Mapping[str, Answer],
) -> None:
    row = ROWS[planned.key.method]
    if row.instead is not None:
        said = answers[row.calibrator]
        other = None if said.ood is None else row.instead(said.ood)
        answers = {row.calibrator: Answer(row.instead(said.test), other, said.dev)}
    metrics = {how: measure(said.test, said.ood) for how, said in answers.items()}
    record = runs[0].record
    parts = {"train": splits.train, "dev": splits.dev, "test": test, "ood": ood}
    cell = Cell(
        key=planned.key,
        fingerprint=planned.fingerprint,
        metrics=metrics.pop(row.calibrator),
        objective=record.objective,
        config=record.config.model_dump(),
        training={
            **training_times(runs),
            "steps": sum(run.training.steps for run in runs),
            "best_epoch": runs[0].training.best_epoch,
            **{f"dev_{name}": value for name, value in answers[row.calibrator].dev.items()},
        },
        data={part: describe(texts) for part, texts in parts.items() if texts is not None},
        versions=record.versions,
        machine=record.machine,
        calibrator=row.calibrator,
        others=metrics,
    )
    cell.write(study, {how: _confidences(said) for how, said in answers.items()})


def _confidences(said: Answer) -> Confidences:
    p, labels = said.test.probabilities, said.test.labels
    assert labels is not None
    return Confidences(
        said.test.confidence,
        said.test.correct,
        p[:0, 0] if said.ood is None else said.ood.confidence,
        -np.log(np.maximum(p[np.arange(len(p)), labels], np.finfo(np.float64).tiny)),
    )


def held_out(name: str, at_most: int | None) -> tuple[Texts, Texts | None]:
    """Test texts of a dataset, and those of its unfamiliar world."""
    dataset, option = pick("dataset", name, datasets()), "max_test_samples of the preset"
    test = draw(dataset.read("test"), at_most, option)
    if dataset.ood is None:
        return test, None
    return test, draw(pick("dataset", dataset.ood, datasets()).read("test"), at_most, option)
