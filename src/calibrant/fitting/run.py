"""A whole run: its model or its members trained, its calibrator fitted, and measured on dev."""

import logging
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from functools import partial
from typing import Any

from calibrant._system import processes
from calibrant.calibrators import calibrated
from calibrant.classifier import Classifier, of_run
from calibrant.errors import UserError
from calibrant.fitting.calibrating import fit_calibrator
from calibrant.fitting.job import Job
from calibrant.fitting.outcome import KEPT_FIGURES, training_times
from calibrant.fitting.said import Said, in_shares
from calibrant.inference.single import SinglePass
from calibrant.methods import AXES
from calibrant.metrics.dev import dev_figures
from calibrant.runs import store
from calibrant.runs.begin import begin, check_shared, for_training
from calibrant.runs.record import MethodRecord
from calibrant.runs.store import Run

logger = logging.getLogger(__name__)


def fit(job: Job) -> Run:
    """Leave a finished run where the job says. What is there already is not done again."""
    with ExitStack() as held:
        processes.on_main(lambda: held.enter_context(for_training(job.out)))
        return _fit_alone(job)


def _fit_alone(job: Job) -> Run:
    run = processes.on_main(lambda: _begun(job))
    processes.one_first(lambda: check_shared(run, job.splits))
    if run.complete:
        logger.info("%s is trained already", job.out)
        return processes.on_main(lambda: store.load(job.out))
    first, *others = job.members(run)
    said = Said()
    if run.trained:  # and killed afterwards
        processes.on_main(run.check_files)
    else:
        from calibrant.fitting.model import fit_model  # the Trainer, for which a finished run need not wait

        run, said = fit_model(run, first)
    trained = [fit(other) for other in others]
    if trained:
        run = processes.on_main(partial(run.updated, members=[member.record.files for member in trained]))
    single = job.recipe.inference == SinglePass()
    if single and job.recipe.calibrator is None:
        return processes.on_main(run.finish)  # what training measured on dev is what it answers
    if not single:  # several passes answer otherwise
        said = Said()
    classifier = of_run(run)
    if job.needs and processes.main_says(said.on_train is None):
        ask = partial(classifier.outputs, needs=job.needs, progress=job.progress, label="train")
        said = replace(said, on_train=in_shares(job.splits.train.texts, ask))
    return processes.on_main(lambda: _finish(run, classifier, job, said, trained))


def _begun(job: Job) -> Run:
    recipe = job.recipe
    method = MethodRecord(**{axis: getattr(recipe.method, axis) for axis in ("name", *AXES)})
    settings = _settings(recipe.objective), _settings(recipe.inference)
    return begin(job.out, job.config, job.splits, method, *settings)


def _settings(entry: Any) -> dict[str, Any]:
    return {"name": entry.name, **asdict(entry)}


def _finish(run: Run, classifier: Classifier, job: Job, said: Said, others: Sequence[Run]) -> Run:
    """Fit the calibrator on dev, and measure there what the run as a whole answers."""
    dev, calibrator = job.splits.dev, job.recipe.calibrator
    outputs = said.on_dev
    if outputs is None:
        outputs = classifier.outputs(dev.texts, job.needs, job.progress, f"dev {run.record.method.name}")
    labels, kept = classifier.class_ids(dev), None
    if calibrator is not None:
        try:
            fitted = fit_calibrator(
                classifier, calibrator, outputs, dev, job.splits.train, on_train=said.on_train
            )
            outputs = calibrated(outputs, fitted)
            kept = run.keep_calibrator(fitted, dev.provenance())
        except UserError as error:  # not worth a training
            logger.warning("%s The run is kept without a calibrator.", error)
    figures = dev_figures(outputs.probabilities, labels)
    changes = training_times((run, *others)) | {f"dev_{name}": figures[name] for name in KEPT_FIGURES}
    return run.finish(calibrator=kept, training=run.training.model_copy(update=changes))
