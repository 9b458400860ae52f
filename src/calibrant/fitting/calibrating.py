"""A calibrator fitted to a run: on dev and, where dev is small, by cross-validation of the linear probe."""

import logging

import numpy as np
from numpy.typing import NDArray

from calibrant.calibrators import Calibrator
from calibrant.calibrators.base import Labelled
from calibrant.classifier import Classifier
from calibrant.data.weights import class_weights
from calibrant.inference.single import SinglePass
from calibrant.models.probe import unseen_logits
from calibrant.runs.texts import own_train
from calibrant.types import Outputs, Progress, Texts

logger = logging.getLogger(__name__)
FEW_DEV, MOST_TRAIN = 200, 2000


def few(dev: int, train: int) -> bool:
    """Whether so few dev texts leave a temperature to chance, and ten more heads are quickly fitted."""
    return dev < FEW_DEV and train <= MOST_TRAIN


def fit_calibrator(
    classifier: Classifier,
    calibrator: Calibrator,
    outputs: Outputs,
    dev: Texts,
    train: Texts | None = None,
    progress: Progress | None = None,
    on_train: Outputs | None = None,
) -> Calibrator:
    """The calibrator fitted to outputs of dev texts and, if it reads features, of the training texts.

    These are the run's own where none are given. ``on_train`` are their outputs, where there are any yet.
    Where the run's own dev is small and its head is the linear probe, heads that have not seen a training
    text answer it, and this counts as dev for a calibrator that reads logits only.
    """
    labels, cross_validated = classifier.class_ids(dev), _answers_its_own_texts(classifier, dev)
    needs = calibrator.needs | ({"head"} if cross_validated else set())
    if not needs:
        return calibrator.fit(outputs, labels)
    if train is None:
        train = own_train(classifier.own_run("Training texts"), calibrator.name)
    if on_train is None or (cross_validated and on_train.head is None):
        on_train = classifier.outputs(train.texts, needs, progress, "train")
    y, unseen = classifier.class_ids(train), None
    if cross_validated:
        unseen = _unseen(classifier, on_train, train, y)
        told = "%d dev texts are few. The %d training texts help to correct confidence, by cross-validation."
        logger.info(told, len(dev), len(unseen.labels))
    return calibrator.fit(outputs, labels, Labelled(on_train, y, unseen))


def _answers_its_own_texts(classifier: Classifier, dev: Texts) -> bool:
    """Whether its head is the linear probe, untrained since, and these few dev texts are its own."""
    run = classifier.run
    if run is None or classifier.inference != SinglePass():
        return False
    data, untrained = run.record.data, run.training.best_epoch == 0
    own = dev.fingerprint == data.dev.fingerprint
    return run.record.method.start == "probe" and untrained and own and few(data.dev.n, data.train.n)


def _unseen(classifier: Classifier, on_train: Outputs, train: Texts, y: NDArray[np.integer]) -> Labelled:
    """What the probe says of the training texts as if they were new."""
    names, chosen = classifier.label_names, classifier.own_run("Training texts").config.class_weights
    weights = None if chosen is None else class_weights(chosen, train.labels or (), names)
    z, known = unseen_logits(np.asarray(on_train.head), y, len(names), weights)
    return Labelled(Outputs(z[known]), y[known])
