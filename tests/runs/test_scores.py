"""Fitted scores saved with a run."""

import json

import numpy as np
import pytest
from safetensors.numpy import load_file

from calibrant.classifier import load
from calibrant.errors import UserError
from calibrant.runs import store
from calibrant.runs.scores import is_saved, load_score, save_scores
from calibrant.runs.texts import own_splits
from calibrant.scores import FittedScore, scores
from calibrant.types import Outputs
from support.tiny import UNFAMILIAR, corpus

FITTED = [name for name, kind in scores().items() if issubclass(kind, FittedScore)]
ALL = frozenset({"features", "middle", "layers"})
TEXTS = [text for text, _ in corpus(40, seed=5)]


def test_fitted_once_and_the_same_afterwards(run_copy, monkeypatch):
    classifier = load(run_copy)
    assert classifier.usable_scores() == list(scores())
    seen = []
    fitted = classifier.fitted_scores(scores(), lambda *step: seen.append(step))
    assert list(fitted) == list(scores())
    assert {what for what, *_ in seen} == {"train manifold-smoothing"}  # once over the training texts
    assert seen[-1][1:] == (160, 160)
    outputs = classifier.outputs(TEXTS, ALL)
    values = {name: score(outputs) for name, score in fitted.items()}
    assert sorted(file.stem for file in (run_copy / "scores").iterdir()) == sorted(FITTED)
    record = json.loads((run_copy / "calibrant.json").read_text())
    assert sorted(record["scores"]) == sorted(FITTED)
    assert classifier.run.record == store.load(run_copy).record
    assert all(load_file(file) for file in (run_copy / "scores").iterdir())

    def refuse(*args):
        raise AssertionError("it is fitted already")

    monkeypatch.setattr("calibrant.classifier.own_train", refuse)
    again = load(run_copy)
    for name, score in again.fitted_scores(scores()).items():
        np.testing.assert_array_equal(score(outputs), values[name])


def test_fitted_on_the_training_texts(run_copy):
    classifier = load(run_copy)
    knn = classifier.fitted_scores(["knn"])["knn"]
    train = own_splits(classifier.run).train
    outputs = classifier.outputs(train.texts, knn.needs)
    np.testing.assert_allclose(
        knn.neighbours, outputs.features / np.linalg.norm(outputs.features, axis=1)[:, None], atol=1e-6
    )
    strange = classifier.outputs(UNFAMILIAR, knn.needs)
    assert knn(strange).mean() > knn(outputs).mean()


def test_a_missing_file_is_fitted_again(run_copy):
    classifier = load(run_copy)
    classifier.fitted_scores(FITTED)
    path = run_copy / "scores" / "knn.safetensors"
    before = path.read_bytes()
    path.unlink()
    assert not is_saved(classifier.run, "knn")
    load(run_copy).fitted_scores(FITTED)
    assert path.read_bytes() == before


@pytest.mark.parametrize("damage", ["missing", "shorter", "another"])
def test_a_missing_or_damaged_file_is_refused(run_copy, damage):
    classifier = load(run_copy)
    classifier.fitted_scores(["knn"])
    path = run_copy / "scores" / "knn.safetensors"
    content = path.read_bytes()
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes(content[:-4] if damage == "shorter" else content[:-1] + b"!")
    with pytest.raises(UserError) as refused:
        load_score(store.load(run_copy), "knn")
    assert str(refused.value) == (
        f"{path} is missing or not the file that was saved with the run; restore it, or remove it and fit it "
        f"again with `calibrant evaluate {run_copy} --test test.csv --scores`."
    )
    if damage != "missing":
        with pytest.raises(UserError, match="is missing or not the file that was saved"):
            load(run_copy).fitted_scores(["knn"])


def test_one_that_was_never_fitted(run_copy):
    with pytest.raises(UserError, match=r"scores/mahalanobis\.safetensors is missing or not the file"):
        load_score(store.load(run_copy), "mahalanobis")


def test_saving_one_keeps_the_others(run_copy):
    old = store.load(run_copy)
    kinds = scores()
    rng, labels = np.random.default_rng(0), np.arange(20) % 2
    outputs = Outputs(rng.normal(size=(20, 2)), rng.normal(size=(20, 4)).astype(np.float32))
    save_scores(store.load(run_copy), [kinds["knn"]().fit(outputs, labels)])
    save_scores(old, [kinds["mahalanobis"]().fit(outputs, labels)])
    assert set(store.load(run_copy).record.scores) == {"knn", "mahalanobis"}
    assert not list((run_copy / "scores").glob(".*"))


def test_training_texts_that_are_gone(run_copy):
    record = json.loads((run_copy / "calibrant.json").read_text())
    record["config"]["train"] = "gone.csv"
    (run_copy / "calibrant.json").write_text(json.dumps(record))
    classifier = load(run_copy)
    with pytest.raises(UserError) as refused:
        classifier.fitted_scores(["entropy", "knn", "mahalanobis"])
    assert str(refused.value) == (
        "knn, mahalanobis: fitted on the run's training texts, and these cannot be had again (No file "
        "'gone.csv'; check the path); restore them, or use what needs no fitting on them."
    )
    assert list(classifier.fitted_scores(["entropy"])) == ["entropy"]


def test_an_unknown_score(run_copy):
    with pytest.raises(UserError, match=r"^Unknown score 'kn'; did you mean 'knn'\?"):
        load(run_copy).fitted_scores(["kn"])


def test_the_energy_of_an_average_says_nothing(run_copy):
    record = json.loads((run_copy / "calibrant.json").read_text())
    record["inference"] = {"name": "mc-dropout", "passes": 2, "seed": 0}
    (run_copy / "calibrant.json").write_text(json.dumps(record))
    classifier = load(run_copy)
    outputs = classifier.outputs(TEXTS)
    np.testing.assert_allclose(scores()["energy"]()(outputs), 0, atol=1e-5)  # whatever the text
    assert set(scores()) - set(classifier.usable_scores()) == {"energy"}
    with pytest.raises(UserError) as refused:
        classifier.fitted_scores(["energy"])
    assert str(refused.value).startswith(
        "The score 'energy' says nothing of a run that averages several passes (mc-dropout); take another of "
        "entropy, knn, "
    )
