"""Trackers: what they are told of a training, read back from where they keep it."""

import io

import numpy as np
import pytest
from PIL import Image

from calibrant import RunConfig, UserError
from calibrant.tasks.train import train
from calibrant.training.tracking import PICTURE, TRACKERS, check_trackers
from support.sentences import one_sentence
from support.tiny import corpus

TERMS = ("ce", "r_on", "r_off")


@pytest.fixture
def settings(csv_file, model_dir, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return RunConfig(
        train=str(csv_file("train.csv", corpus(60))),
        model=str(model_dir),
        method="manifold-smoothing",
        epochs=2,
        batch_size=16,
        max_length=16,
    )


def is_drawn(picture):
    """Not one colour."""
    pixels = np.asarray(picture)
    return pixels.shape[2] >= 3 and min(pixels.shape[:2]) > 200 and len(np.unique(pixels)) > 20


def test_tensorboard_has_terms_dev_figures_and_a_picture_of_each_epoch(settings, tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    run = train(settings, out=tmp_path / "run", report_to=["tensorboard"])
    log = EventAccumulator(str(run.path / "tensorboard"))
    log.Reload()
    history = run.training.history
    terms = [entry for entry in history if "loss" in entry]
    dev = [entry for entry in history if "eval_nll" in entry]
    for name in ("loss", *TERMS):
        told = [event.value for event in log.Scalars(f"train/{name}")]
        assert told == pytest.approx([entry[name] for entry in terms], rel=1e-5)
    for name in ("accuracy", "nll", "ece", "confidence"):
        told = [event.value for event in log.Scalars(f"eval/{name}")]
        assert told == pytest.approx([entry[f"eval_{name}"] for entry in dev], rel=1e-5)
    pictures = log.Images(PICTURE)
    assert [event.step for event in pictures] == [entry["step"] for entry in dev]
    assert all(is_drawn(Image.open(io.BytesIO(event.encoded_image_string))) for event in pictures)
    assert run.complete


def test_mlflow_with_a_local_store(settings, tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/mlflow.db")
    run = train(settings, out=tmp_path / "run", report_to=["mlflow"])
    (told,) = mlflow.MlflowClient().search_runs(["0"])
    assert (told.info.status, told.info.run_name) == ("FINISHED", str(run.path))
    last = [entry for entry in run.training.history if "eval_nll" in entry][-1]
    assert told.data.metrics["eval_nll"] == pytest.approx(last["eval_nll"])
    assert set(TERMS) <= set(told.data.metrics)


def test_wandb_offline(settings, tmp_path, monkeypatch):
    pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    train(settings, out=tmp_path / "run", report_to=["wandb"])
    (kept,) = (tmp_path / "wandb").glob("offline-run-*")
    assert len(list(kept.glob("files/media/images/eval/*.png"))) == 2


def test_what_is_not_installed_is_named(monkeypatch):
    monkeypatch.setattr("calibrant.training.tracking.find_spec", lambda name: None)
    for name in TRACKERS:
        with pytest.raises(UserError) as error:
            check_trackers([name])
        sentence = f"--report-to {name} needs a package that is not installed: pip install {name}."
        assert str(error.value) == sentence


def test_an_unknown_tracker_gets_the_nearest(command, csv_file, model_dir, tmp_path):
    rows = csv_file("train.csv", corpus(20))
    one_sentence(
        command("train", "--train", rows, "--out", tmp_path / "run", "--report-to", "tensorbord"),
        "Unknown tracker 'tensorbord'; did you mean 'tensorboard'? Known: tensorboard, mlflow, wandb.",
    )
    assert not (tmp_path / "run").exists()


def test_a_method_without_steps_says_so(command, csv_file, model_dir, tmp_path):
    rows = csv_file("train.csv", corpus(120))
    options = ("--model", model_dir, "--quick", "--out", tmp_path / "run", "--report-to", "tensorboard")
    code, _, err = command("train", "--train", rows, *options)
    assert code == 0
    assert "linear-probe has no steps to report to tensorboard" in " ".join(err.split())
    assert not (tmp_path / "run" / "tensorboard").exists()
