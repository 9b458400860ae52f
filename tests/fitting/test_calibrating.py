"""A calibrator of a run whose dev is small: the probe's own training texts help, by cross-validation."""

import logging

import numpy as np
import pytest

from calibrant import RunConfig, UserError, load
from calibrant.calibrators.temperature import Temperature
from calibrant.data.weights import class_weights
from calibrant.fitting import calibrating
from calibrant.fitting.calibrating import few
from calibrant.models.probe import unseen_logits
from calibrant.runs import store
from calibrant.runs.texts import own_splits
from calibrant.tasks.calibrate import calibrate
from calibrant.tasks.train import train
from calibrant.types import Outputs
from support.tiny import noisy_corpus

BOTH = "temperature+familiarity"


@pytest.fixture
def config(csv_file, model_dir):
    """Of a linear probe with 39 dev texts."""

    def make(**settings):
        path = str(csv_file("train.csv", noisy_corpus(192)))
        return RunConfig(
            train=path, model=str(model_dir), max_length=32, **{"method": "linear-probe"} | settings
        )

    return make


def temperature_of(run):
    return load(run.path).calibrator.parts[0].temperature


def expected(run, weights=None):
    """By hand: dev as the model answers it, and the training texts as ten other heads do."""
    classifier, splits = load(run.path), own_splits(run)
    y = classifier.class_ids(splits.train)
    head = classifier.outputs(splits.train.texts, frozenset({"head"})).head
    z, known = unseen_logits(head, y, len(classifier.labels), weights)
    on_dev = classifier.outputs(splits.dev.texts).logits
    both = np.concatenate([on_dev, z[known]])
    labels = np.concatenate([classifier.class_ids(splits.dev), y[known]])
    alone = Temperature().fit(Outputs(on_dev.astype(float)), classifier.class_ids(splits.dev)).temperature
    return Temperature().fit(Outputs(both), labels).temperature, alone


def test_few_dev_texts_are_helped_by_the_training_texts(config, tmp_path, caplog):
    caplog.set_level(logging.INFO, "calibrant")
    run = train(config(), out=tmp_path / "run")
    helped, alone = expected(run)
    assert temperature_of(run) == pytest.approx(helped, rel=1e-5)
    assert abs(helped - alone) > 1e-3
    assert (
        "39 dev texts are few. The 153 training texts help to correct confidence, by cross-validation."
        in caplog.messages
    )


def test_the_heads_have_the_probes_class_weights(config, tmp_path):
    weights = {"billing": 5.0}
    run = train(config(class_weights=weights), out=tmp_path / "run")
    splits = own_splits(run)
    by_class = class_weights(weights, splits.train.labels, splits.label_names)
    assert temperature_of(run) == pytest.approx(expected(run, by_class)[0], rel=1e-5)
    assert expected(run, by_class)[0] != pytest.approx(expected(run)[0], rel=1e-4)


def test_enough_dev_texts_are_enough(config, tmp_path, monkeypatch):
    monkeypatch.setattr(calibrating, "FEW_DEV", 39)
    run = train(config(), out=tmp_path / "run")
    assert temperature_of(run) == pytest.approx(expected(run)[1], rel=1e-5)


def test_what_counts_as_few():
    assert few(199, 2000)
    assert not few(200, 800)
    assert not few(40, 2001)  # ten more heads would take too long


def test_calibrated_again_on_its_own_dev_it_is_the_same(config, tmp_path):
    run = train(config(), out=tmp_path / "run")
    before = temperature_of(run)
    calibrate(run.path, calibrator=BOTH)
    assert temperature_of(run) == pytest.approx(before, rel=1e-6)
    calibrate(run.path, calibrator="temperature")
    assert load(run.path).calibrator.temperature == pytest.approx(before, rel=1e-6)


def test_on_other_texts_it_is_fitted_to_these_alone(config, csv_file, tmp_path):
    run = train(config(), out=tmp_path / "run")
    other = csv_file("other.csv", noisy_corpus(50, seed=9))
    calibrate(run.path, calibrator=BOTH, dev=other)
    classifier = load(run.path)
    rows = noisy_corpus(50, seed=9)
    z = classifier.outputs([text for text, _ in rows]).logits.astype(float)
    y = np.array([classifier.labels.index(label) for _, label in rows])
    assert temperature_of(run) == pytest.approx(Temperature().fit(Outputs(z), y).temperature, rel=1e-5)


def test_a_model_that_was_trained_further_has_dev_alone(config, tmp_path, caplog):
    """It knows its training texts by heart, and no other head says what it says."""
    caplog.set_level(logging.INFO, "calibrant")
    settings = {"method": "calibrant", "epochs": 2, "learning_rate": 3e-3, "keep": "accuracy"}
    run = train(config(**settings), out=tmp_path / "run")
    assert run.training.best_epoch > 0
    assert temperature_of(run) == pytest.approx(expected(run)[1], rel=1e-5)
    assert not any("are few" in line for line in caplog.messages)


def test_killed_before_the_calibrator_it_ends_the_same(config, tmp_path, monkeypatch):
    whole = train(config(), out=tmp_path / "whole")

    def killed(*args, **kwargs):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("calibrant.fitting.run.fit_calibrator", killed)
        with pytest.raises(KeyboardInterrupt):
            train(config(), out=tmp_path / "run")
    with pytest.raises(UserError, match="has not finished training"):
        store.load(tmp_path / "run")
    resumed = train(config(), out=tmp_path / "run")
    assert temperature_of(resumed) == pytest.approx(temperature_of(whole), rel=1e-6)
