"""A calibrator that reads features: fitted, kept, loaded and asked; the rest of the story is in tests/cli."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest
from scipy.special import softmax

import calibrant
from calibrant.calibrators import calibrators
from calibrant.calibrators.base import Calibrator
from calibrant.config import RunConfig
from calibrant.errors import UserError
from calibrant.runs import dev
from calibrant.runs.texts import own_splits
from calibrant.tasks.calibrate import calibrate, remove_calibrator
from calibrant.tasks.train import train
from support.tiny import UNFAMILIAR, corpus, noisy_corpus

FEATURES = frozenset({"features"})
TEXTS = [text for text, _ in corpus(40, seed=5)]


@dataclass(frozen=True, eq=False)
class CoolerFarAway(Calibrator):
    """p = softmax(z / (1 + d)), d the distance from the nearest training text over the usual one on dev."""

    name: ClassVar[str] = "cooler-far-away"
    citation: ClassVar[str] = "nobody"
    needs: ClassVar[frozenset[str]] = FEATURES
    learns_by_heart: ClassVar[bool] = False

    usual: float | None = None
    neighbours: np.ndarray | None = None  # (n, h)

    def _fit(self, outputs, y, train):
        placed = replace(self, usual=1.0, neighbours=train[0].features)
        return replace(placed, usual=float(placed.distance(outputs).mean()))

    def _probabilities(self, outputs):
        return softmax(outputs.logits / (1 + self.distance(outputs))[:, None], axis=1)

    def distance(self, outputs):
        away = outputs.features[:, None] - self.neighbours
        return np.sqrt((away.astype(np.float64) ** 2).sum(axis=-1)).min(axis=1) / self.usual


@pytest.fixture(autouse=True)
def one_more(monkeypatch):
    """As a file in calibrators/ would add it."""
    known = {**calibrators(), CoolerFarAway.name: CoolerFarAway}
    for place in ("calibrators", "decide.advice"):
        monkeypatch.setattr(f"calibrant.{place}.calibrators", lambda: known)


def expected(classifier, texts):
    """By the formula, from what the model says without a calibrator."""
    plain = replace(classifier, calibrator=None)
    own = own_splits(classifier.run)
    near, dev_outputs, outputs = (
        plain.outputs(part, FEATURES) for part in (own.train.texts, own.dev.texts, texts)
    )

    def distance(outputs):
        pairs = outputs.features.astype(np.float64)[:, None] - near.features
        return np.linalg.norm(pairs, axis=-1).min(axis=1)

    d = distance(outputs) / distance(dev_outputs).mean()
    return softmax(outputs.logits / (1 + d)[:, None], axis=1)


def test_a_calibrator_may_be_named(run_copy):
    done = calibrate(run_copy, calibrator="temperature+vector-scaling")
    assert done.calibrator.name == calibrant.load(run_copy).calibrator.name == "temperature+vector-scaling"
    with pytest.raises(UserError, match="temperature"):
        calibrate("no such run", calibrator="temprature")


def test_fitted_to_a_finished_run(run_copy):
    done = calibrate(run_copy, calibrator=CoolerFarAway())
    classifier = calibrant.load(run_copy)
    assert classifier.calibrator.usual == done.calibrator.usual
    assert classifier.calibrator.neighbours.shape == (160, 32)
    p = classifier.predict_proba(TEXTS)
    np.testing.assert_allclose(p, expected(classifier, TEXTS), atol=1e-5)
    outputs = classifier.outputs(TEXTS)  # its needs are met, whoever asks
    assert outputs.features.shape == (len(TEXTS), 32)
    np.testing.assert_array_equal(outputs.probabilities, p)
    assert [d.confidence for d in classifier.predict(TEXTS)] == p.max(axis=1).tolist()
    assert done.before["accuracy"] == done.after["accuracy"]
    assert done.before["confidence"] > done.after["confidence"]
    far = classifier.predict_proba(UNFAMILIAR).max(axis=1).mean()
    remove_calibrator(run_copy)
    assert not list(run_copy.glob("calibrator-*"))
    assert calibrant.load(run_copy).predict_proba(UNFAMILIAR).max(axis=1).mean() > far


def test_trained_with_it(csv_file, model_dir, tmp_path):
    config = RunConfig(
        train=str(csv_file("train.csv", noisy_corpus(80))),
        model=str(model_dir),
        method="bert",
        calibrator=CoolerFarAway.name,
        epochs=1,
        batch_size=16,
    )
    run = train(config, out=tmp_path / "run")
    assert run.name == "cross-entropy + cooler-far-away"
    classifier = calibrant.load(run.path)
    p = classifier.predict_proba(own_splits(run).dev.texts)
    assert run.training.dev_confidence == pytest.approx(p.max(axis=1).mean())
    np.testing.assert_allclose(classifier.predict_proba(TEXTS), expected(classifier, TEXTS), atol=1e-5)


def test_sets_are_fitted_on_what_it_makes_of_dev(run_copy, csv_file):
    path = str(csv_file("dev.csv", noisy_corpus(60, seed=9)))
    calibrant.load(run_copy).answer_dev(path)  # the logits alone
    calibrate(run_copy, calibrator=CoolerFarAway())
    classifier = calibrant.load(run_copy)
    with pytest.raises(UserError, match="keeps no answers on dev yet"):
        classifier.set_rule(0.9)
    answers = classifier.answer_dev(path)
    assert dev.read(classifier.run, FEATURES) is not None
    p = classifier.calibrator.probabilities(answers.outputs)
    rule = classifier.set_rule(0.9)
    sets = rule.labels(p, classifier.label_names)
    truth = [classifier.label_names[y] for y in answers.labels]
    assert np.mean([label in labels for label, labels in zip(truth, sets, strict=True)]) >= 0.9


def test_without_the_training_texts_it_cannot_be_fitted(run_copy):
    record = (run_copy / "calibrant.json").read_text()
    (run_copy / "calibrant.json").write_text(record.replace('train.csv"', 'gone.csv"'))
    dev_file = run_copy.parent / "dev.csv"
    dev_file.write_text("text,label\nmy card,billing\na parcel,shipping\n")
    with pytest.raises(UserError, match=r"^cooler-far-away: fitted on the run's training texts, and"):
        calibrate(run_copy, calibrator=CoolerFarAway(), dev=str(dev_file))
    assert calibrant.load(run_copy).calibrator is None
