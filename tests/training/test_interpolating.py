"""The point between the start and the end of fine-tuning."""

import pytest
import torch
from safetensors.torch import load_file
from transformers import EvalPrediction

from calibrant import RunConfig, load
from calibrant.runs.texts import load_splits
from calibrant.tasks.train import train
from calibrant.training.interpolating import INNER, between
from calibrant.training.trainer import dev_metrics
from support.tiny import noisy_corpus

SETTINGS = {"batch_size": 16, "max_length": 32, "epochs": 3, "learning_rate": 3e-3, "calibrator": "none"}


@pytest.fixture
def config(csv_file, model_dir):
    texts = csv_file("texts.csv", noisy_corpus(192))
    return RunConfig(train=str(texts), model=str(model_dir), **SETTINGS)


def weights(run):
    return load_file(run.model_dir / "model.safetensors")


def points(run):
    return [entry for entry in run.training.history if "share" in entry]


def said(run):
    return [(point["share"], point["eval_refinement"]) for point in points(run)]


def say(monkeypatch, *values):
    """Dev says these, one after another: of the start, the epochs, and the points between."""
    told = iter(values)
    figures = {"accuracy": 0.5, "confidence": 0.5, "nll": 1.0, "ece": 0.0, "selection": 0.5}
    monkeypatch.setattr(
        "calibrant.training.trainer.dev_metrics", lambda _: figures | {"refinement": next(told)}
    )


def test_the_ends_are_those_of_training_to_the_bit():
    start = {"w": torch.randn(50), "positions": torch.arange(3)}
    end = {"w": torch.randn(50), "positions": torch.arange(3)}
    for share, expected in ((0.0, start), (1.0, end)):
        found = between(start, end, share)
        assert all(torch.equal(found[name], expected[name]) for name in end)


@pytest.mark.parametrize(
    ("values", "share", "kept"),
    [
        ((-4, -3, -3, -3, -3, -3, -1, -3), 0.6, "point 60% of the way from the start to epoch 3"),
        ((-1, -3, -3, -3, -3, -3, -3, -3), 0.0, "epoch 0"),
        ((-4, -3, -3, -1, -3, -3, -3, -3), 1.0, "epoch 3"),
        ((-4, -1, -3, -2, -3, -3, -3, -3), 1.0, "epoch 3"),  # no epoch but the last is on the line
    ],
)
def test_the_best_point_of_the_line_is_kept(config, tmp_path, monkeypatch, values, share, kept):
    probe = train(config.model_copy(update={"method": "linear-probe"}), out=tmp_path / "probe")
    last = config.model_copy(update={"keep": "refinement"})
    say(monkeypatch, -4, -3, -2, -1)
    end = train(last, out=tmp_path / "end")
    say(monkeypatch, *values)
    run = train(config, out=tmp_path / "run")
    assert (run.training.share, run.training.kept) == (share, kept)
    assert run.record.chosen_from == len(INNER) + 2
    impatient = run.record.model_copy(update={"method": run.record.method.model_copy(update={"patience": 2})})
    assert impatient.chosen_from == 1 + 3 * (len(INNER) + 1)  # the line could have ended at any of 3 epochs
    expected, found = between(weights(probe), weights(end), share), weights(run)
    assert found.keys() == expected.keys()
    assert all(torch.equal(found[name], expected[name]) for name in found)


def test_dev_says_of_the_kept_model_what_the_record_does(config, tmp_path):
    run = train(config, out=tmp_path / "run")
    best, *others = points(run)
    assert {point["share"] for point in points(run)} == {0.0, *INNER, 1.0}
    assert all(other["eval_refinement"] <= best["eval_refinement"] for other in others)
    classifier, dev = load(run.path), load_splits(config).dev
    found = dev_metrics(EvalPrediction(classifier.outputs(dev.texts).logits, classifier.class_ids(dev)))
    assert found["refinement"] == pytest.approx(best["eval_refinement"], abs=1e-4)
    assert found["accuracy"] == best["eval_accuracy"] == run.training.dev_accuracy
    assert run.training.share == best["share"]


@pytest.mark.parametrize("at", [15, 25, 30], ids=["in epoch 2", "in epoch 3", "at the end"])
def test_resumed_it_ends_where_it_would_have(config, tmp_path, at):
    whole = train(config, out=tmp_path / "whole")

    def progress(what, done, total):
        if what.startswith("train") and done == at:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(config, out=tmp_path / "run", progress=progress)
    resumed = train(config, out=tmp_path / "run")
    assert resumed.record.files == whole.record.files
    assert said(resumed) == said(whole)


def test_killed_between_the_points_it_begins_with_the_first_again(config, tmp_path, monkeypatch):
    whole = train(config, out=tmp_path / "whole")

    def killed(*args, **kwargs):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("calibrant.training.CalibratedTrainer.predict", killed)
        with pytest.raises(KeyboardInterrupt):
            train(config, out=tmp_path / "run")
    assert train(config, out=tmp_path / "run").record.files == whole.record.files
