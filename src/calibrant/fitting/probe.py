"""The linear probe: the head that fine-tuning starts from, or all that is trained where the encoder stays."""

import logging
from dataclasses import replace
from functools import partial

import numpy as np
from transformers import EvalPrediction

from calibrant._system import processes
from calibrant._system.device import device
from calibrant.classifier import outputs_of
from calibrant.fitting.calibrating import few
from calibrant.fitting.job import Job
from calibrant.fitting.outcome import outcome
from calibrant.fitting.said import Said, in_shares
from calibrant.fitting.start import Encoded, Start
from calibrant.inference.single import SinglePass
from calibrant.models import fast
from calibrant.models.probe import head_layer
from calibrant.runs.record import TrainingRecord
from calibrant.runs.store import Run
from calibrant.training import EpochLines, Watch, dev_metrics, start_head

logger = logging.getLogger(__name__)


def fit_head(job: Job, start: Start, texts: Encoded) -> Said:
    """Make the probe the model's head. What it says then, of dev only where nothing follows."""
    model, padding, method = start.model, start.tokenizer.pad_token_id, job.recipe.method
    fast.apply(model.to(device()).eval())
    layer = head_layer(model, texts.train.rows, padding)
    ask = partial(outputs_of, SinglePass(), [model], padding=padding, progress=job.progress)
    read = in_shares(texts.train.rows, partial(ask, needs=job.needs | {"head"}, label="features"))
    on_train = start_head(layer, read, np.asarray(texts.train.labels), start.class_weights)
    if on_train is not None and not few(len(texts.dev), len(texts.train)):
        on_train = replace(on_train, head=None)  # nobody will read it again
    on_dev = None
    if method.frozen:
        on_dev = in_shares(texts.dev.rows, partial(ask, needs=job.needs, label=f"dev {method.name}"))
    fast.remove(model)
    return Said(on_train, on_dev)


def keep_probe(run: Run, job: Job, start: Start, texts: Encoded, said: Said, watch: Watch) -> Run:
    """Keep the model as it is, with the probe as its head."""
    if job.report_to:
        name = job.recipe.method.name
        trackers = ", ".join(job.report_to)
        logger.warning("%s has no steps to report to %s; `evaluate` measures it.", name, trackers)

    def measured() -> TrainingRecord:
        assert said.on_dev is not None
        figures = dev_metrics(EvalPrediction(said.on_dev.logits, np.asarray(texts.dev.labels)))
        entry = {"epoch": 0.0} | {f"eval_{name}": value for name, value in figures.items()}
        EpochLines(job.label, job.recipe.objective.terms).line(entry, {})
        return outcome(0, watch.elapsed(), entry, [entry])

    return processes.on_main(lambda: run.keep(start.model, start.tokenizer, measured()))
