"""From settings to a run: what is refused, what a run answers, and ensembles."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors import SafetensorError
from scipy.special import softmax

from calibrant import RunConfig, UserError, load
from calibrant.calibrators.temperature import Temperature
from calibrant.errors import Busy, NotWritten
from calibrant.methods import METHODS
from calibrant.metrics import accuracy, negative_log_likelihood
from calibrant.runs.store import Run
from calibrant.runs.texts import load_splits
from calibrant.tasks.evaluate import evaluate
from calibrant.tasks.train import train
from calibrant.training import CalibratedTrainer
from support.encoders import tiny
from support.tiny import corpus, tiny_tokenizer

TEXTS = [text for text, _ in corpus(40, seed=5)]


@pytest.fixture
def settings(csv_file, model_dir):
    """A few seconds of training, as keyword arguments; 39 training texts: 5 steps an epoch."""
    train = csv_file("train.csv", corpus(48))
    return {
        "train": str(train),
        "model": str(model_dir),
        "method": "bert",
        "epochs": 2,
        "batch_size": 8,
        "learning_rate": 3e-3,
    }


@pytest.mark.parametrize(
    ("choices", "sentence"),
    [
        ({"objective": "cross-entropi"}, "Unknown objective 'cross-entropi'; did you mean 'cross-entropy'?"),
        ({"inference": "mc-drop"}, "Unknown inference 'mc-drop'; did you mean 'mc-dropout'?"),
        ({"calibrator": "temprature"}, "Unknown calibrator 'temprature'; did you mean 'temperature'?"),
        ({"objective": {"name": 1}}, "objective: expected a name, got 1; see `calibrant list objectives`."),
        (
            {"inference": {"name": None}},
            "inference: expected a name, got None; see `calibrant list inferences`.",
        ),
        ({"inference": {"members": 3}}, "The inference 'single' has no 'members'; it has none."),
        ({"inference": {"name": "ensemble", "members": 1}}, "`members` must be at least 2, got 1."),
        (
            {"method": "mc-dropout", "inference": {"passes": 2.5}},
            "`passes`: Input should be a valid integer, got a number with a fractional part, got 2.5.",
        ),
        (
            {"method": "bert", "objective": {"name": "cross-entropy", "delta_y": 1}},
            "The objective 'cross-entropy' has no 'delta_y'; it has none.",
        ),
    ],
)
def test_refused_before_any_text_is_read(choices, sentence):
    with pytest.raises(UserError) as refused:
        train(RunConfig(train="there is no such file.csv", **choices), out="nowhere")
    assert str(refused.value).startswith(sentence)


def test_temperature_scaling_is_bert_with_a_temperature_fitted_on_dev(settings, tmp_path):
    plain = train(RunConfig(**settings), out=tmp_path / "plain")
    scaled = train(RunConfig(**settings | {"method": "temperature-scaling"}), out=tmp_path / "scaled")
    assert scaled.record.files == plain.record.files  # the same trained model
    dev = load_splits(scaled.config).dev
    before, after = load(plain.path), load(scaled.path)
    labels = before.class_ids(dev)
    expected = Temperature().fit(before.outputs(dev.texts), labels)
    assert after.calibrator == expected
    assert scaled.record.calibrator.fitted_on == scaled.record.data.dev
    probabilities = softmax(before.outputs(TEXTS).logits / expected.temperature, axis=1)
    np.testing.assert_allclose(after.predict_proba(TEXTS), probabilities, atol=1e-12)
    np.testing.assert_array_equal(after.outputs(TEXTS).logits, before.outputs(TEXTS).logits)
    on_dev = after.predict_proba(dev.texts)
    training = scaled.training
    assert training.dev_confidence == pytest.approx(on_dev.max(axis=1).mean())
    assert training.dev_nll == pytest.approx(negative_log_likelihood(on_dev, labels))
    assert training.dev_nll < plain.training.dev_nll
    assert training.dev_accuracy == plain.training.dev_accuracy


def test_a_run_of_before_there_was_a_choice_still_answers(run_copy):
    expected = load(run_copy).predict_proba(TEXTS)
    record = json.loads((run_copy / "calibrant.json").read_text())
    record["format"] = 1
    del record["inference"]
    for new in ("inference", "calibrator"):
        del record["config"][new]
    (run_copy / "calibrant.json").write_text(json.dumps(record))
    np.testing.assert_array_equal(load(run_copy).predict_proba(TEXTS), expected)


# MC dropout


def test_mc_dropout(settings, tmp_path):
    choices = {"method": "mc-dropout", "inference": {"passes": 4}, "epochs": 1}
    run = train(RunConfig(**settings | choices), out=tmp_path / "run")
    assert run.record.inference == {"name": "mc-dropout", "passes": 4, "seed": 0}
    assert run.record.calibrator is None
    classifier = load(run.path)
    first = classifier.predict_proba(TEXTS)
    np.testing.assert_array_equal(load(run.path).predict_proba(TEXTS), first)
    np.testing.assert_allclose(first.sum(axis=1), 1, atol=1e-6)
    plain = softmax(classifier.models[0].eval()(**tiny_batch()).logits.detach().numpy(), axis=1)
    assert np.abs(first - plain).max() > 1e-3
    dev = load_splits(run.config).dev
    on_dev = classifier.predict_proba(dev.texts)
    assert run.training.dev_accuracy == accuracy(on_dev, classifier.class_ids(dev))


def tiny_batch():
    return tiny_tokenizer()(TEXTS, padding=True, return_tensors="pt", return_token_type_ids=False)


def test_mc_dropout_on_a_model_without_dropout_is_refused_before_training(settings, tmp_path, monkeypatch):
    tiny("modernbert").save_pretrained(tmp_path / "modern")
    tiny_tokenizer().save_pretrained(tmp_path / "modern")
    monkeypatch.setattr(CalibratedTrainer, "train", must_not_train)
    config = RunConfig(**settings | {"method": "mc-dropout", "model": str(tmp_path / "modern")})
    with pytest.raises(UserError, match=r"ModernBertForSequenceClassification \(.*modern\) has none"):
        train(config, out=tmp_path / "run")


def must_not_train(*args, **kwargs):
    raise AssertionError("it is trained already, or should have been refused")


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"), True),
        (RuntimeError("MPS backend out of memory"), True),
        (RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory"), True),
        (RuntimeError("something else"), False),
    ],
)
def test_out_of_memory_is_told_in_a_sentence(settings, tmp_path, monkeypatch, error, told):
    def no_memory(*args, **kwargs):
        raise error

    monkeypatch.setattr(CalibratedTrainer, "train", no_memory)
    with pytest.raises(
        UserError if told else RuntimeError, match="--batch-size" if told else "something else"
    ):
        train(RunConfig(**settings), out=tmp_path / "run")


def test_a_run_of_an_earlier_default_is_not_taken_for_todays(settings, tmp_path, monkeypatch, caplog):
    config = RunConfig(**settings | {"method": "calibrant", "calibrator": "none"})
    then = replace(METHODS["calibrant"], keep="refinement", patience=1)
    with monkeypatch.context() as earlier:
        earlier.setitem(METHODS, "calibrant", then)
        done = train(config, out=tmp_path / "done")
        earlier.setattr(Run, "keep", must_not_train)
        with pytest.raises(AssertionError):
            train(config, out=tmp_path / "begun")
    caplog.clear()
    assert train(config, out=tmp_path / "done").record == done.record
    name = train(config, out=tmp_path / "today").record.method.name
    moved = f"keep refinement, patience 1, where {name} has keep interpolation, patience 0 today"
    assert f"done was trained with {moved}; give another --out to train anew." in caplog.text
    with pytest.raises(UserError) as refused:
        train(config, out=tmp_path / "begun")
    assert str(refused.value).endswith(f"begun was begun with {moved}; give another --out or remove it.")


# ensembles

ENSEMBLE = {"method": "deep-ensemble", "inference": {"members": 3}, "epochs": 1}


@pytest.fixture(scope="module")
def ensemble(tmp_path_factory, model_dir):
    """A finished ensemble of three, for reading only."""
    folder = tmp_path_factory.mktemp("ensemble")
    (folder / "train.csv").write_text("text,label\n" + "".join(f"{t},{y}\n" for t, y in corpus(48)))
    base = {"train": str(folder / "train.csv"), "model": str(model_dir), "batch_size": 8, "seed": 7}
    labels = []
    config = RunConfig(**base | ENSEMBLE, learning_rate=3e-3)
    run = train(config, out=folder / "run", progress=lambda what, done, total: labels.append(what))
    return run, list(dict.fromkeys(labels))


def test_members_are_plain_runs_from_the_next_seeds(ensemble, tmp_path):
    run, labels = ensemble
    assert labels == [
        *(f"train deep-ensemble, member {i} of 3" for i in (1, 2, 3)),
        "dev deep-ensemble",
    ]
    assert sorted(entry.name for entry in run.path.iterdir()) == [
        *("README.md", "calibrant.json", "members", "model"),
    ]
    assert sorted(entry.name for entry in (run.path / "members").iterdir()) == ["2", "3"]
    plain = run.config.model_dump() | {"method": "bert", "inference": {}}
    for number, files in ((1, run.record.files), *enumerate(run.record.members, start=2)):
        alone = train(RunConfig(**plain | {"seed": 6 + number}), out=tmp_path / str(number))
        assert alone.record.files == files  # the very weights of a plain run with that seed
        if number > 1:
            member = load(run.member(number)).run
            assert member.config.seed == 6 + number
            assert member.record.method.name == "bert"
            assert member.record.data == run.record.data
    digests = [files["model.safetensors"] for files in (run.record.files, *run.record.members)]
    assert len(set(digests)) == 3


def test_the_answer_is_the_mean_of_the_members(ensemble):
    run, _ = ensemble
    classifier = load(run.path)
    alone = [load(run.member(number)).predict_proba(TEXTS) for number in (2, 3)]
    first = softmax(classifier.models[0].eval()(**tiny_batch()).logits.detach().numpy(), axis=1)
    expected = (first + sum(alone)) / 3
    np.testing.assert_allclose(classifier.predict_proba(TEXTS), expected, atol=1e-5)
    dev = load_splits(run.config).dev
    found = accuracy(classifier.predict_proba(dev.texts), classifier.class_ids(dev))
    assert run.training.dev_accuracy == found
    member_seconds = [load(run.member(n)).run.training.seconds for n in (2, 3)]
    assert run.training.seconds >= sum(member_seconds)


def test_members_are_checked_against_their_fingerprints(ensemble, tmp_path):
    run = shutil.copytree(ensemble[0].path, tmp_path / "run")
    weights = run / "members" / "3" / "model" / "model.safetensors"
    whole = weights.read_bytes()
    weights.write_bytes(whole + b" ")
    with pytest.raises(UserError, match=r"members/3/model/model.safetensors is missing or not the file"):
        load(run)
    weights.write_bytes(whole)
    load(run)
    shutil.rmtree(run / "members" / "2")
    shutil.copytree(run / "members" / "3", run / "members" / "2")  # whole in itself, but another model
    with pytest.raises(UserError, match=r"members/2 is not the member that was trained with the run"):
        load(run)
    shutil.rmtree(run / "members" / "2")
    with pytest.raises(UserError, match=r"members/2 is not a run"):
        load(run)


KILLED = """
import os, signal, sys
import torch
from calibrant.config import RunConfig
from calibrant.tasks.train import train

torch.set_num_threads(1)

def progress(what, done, total):
    if what.endswith("member 2 of 3") and done == 7:
        os.kill(os.getpid(), signal.SIGKILL)

train(RunConfig.model_validate_json(sys.argv[1]), out=sys.argv[2], progress=progress)
"""


@pytest.mark.slow
def test_an_ensemble_killed_in_its_second_member_resumes_to_the_same_end(settings, csv_file, tmp_path):
    config = RunConfig(**settings | ENSEMBLE | {"epochs": 2})
    out = tmp_path / "killed"
    done = subprocess.run(
        [sys.executable, "-c", KILLED, config.model_dump_json(), str(out)], capture_output=True, text=True
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert (out / "model").exists()
    assert [path.name for path in (out / "members" / "2" / "checkpoints").iterdir()] == ["checkpoint-5"]
    with pytest.raises(UserError, match="has not finished training"):
        load(out)
    with pytest.raises(UserError, match=r"holds another run \(deep-ensemble, training\)"):
        train(RunConfig(**settings | {"seed": 3}), out=out)

    seen = []
    resumed = train(config, out=out, progress=lambda what, done, total: seen.append((what, done)))
    assert seen[0] == ("train deep-ensemble, member 2 of 3", 6)  # the first is not trained again
    whole = train(config, out=tmp_path / "whole")
    assert resumed.record.files == whole.record.files
    assert resumed.record.members == whole.record.members
    test = str(csv_file("test.csv", corpus(30, seed=9)))
    assert evaluate(resumed.path, test=test).entry.metrics == evaluate(whole.path, test=test).entry.metrics


def test_interrupted_between_training_and_calibration(settings, tmp_path, monkeypatch):
    config = RunConfig(**settings | {"method": "temperature-scaling", "epochs": 1})

    def progress(what, done, total):
        if what.startswith("dev"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(config, out=tmp_path / "run", progress=progress)
    with pytest.raises(UserError, match="has not finished training"):
        load(tmp_path / "run")
    monkeypatch.setattr(CalibratedTrainer, "train", must_not_train)
    weights = tmp_path / "run" / "model" / "model.safetensors"
    whole = weights.read_bytes()
    weights.write_bytes(whole[:-1])
    with pytest.raises(UserError, match=r"model\.safetensors is missing or not the file that was saved"):
        train(config, out=tmp_path / "run")
    weights.write_bytes(whole)
    (tmp_path / "run" / "checkpoints").mkdir()  # as a kill leaves them
    assert train(config, out=tmp_path / "run").record.calibrator.name == "temperature"
    assert not (tmp_path / "run" / "checkpoints").exists()


@pytest.mark.parametrize("seed", [0, 1], ids=["equal", "different"])
def test_another_training_in_the_same_folder_is_refused(settings, tmp_path, seed):
    """Before the first checkpoint, too, when the folder holds nothing that could tell."""
    out, told = tmp_path / "run", []

    def also():
        with pytest.raises(Busy) as refused:
            train(RunConfig(**settings | {"seed": seed}), out=out)
        told.append(str(refused.value))

    def progress(what, done, total):
        if not told:
            thread = threading.Thread(target=also)
            thread.start()
            thread.join()

    run = train(RunConfig(**settings), out=out, progress=progress)
    assert told == [
        f"{out} is being trained by process {os.getpid()} now; wait until it is done, or take another folder."
    ]
    assert run.record.files == train(RunConfig(**settings), out=tmp_path / "alone").record.files
    assert not (out / ".lock").exists()


@pytest.mark.parametrize("damage", ["newest", "all"])
def test_a_damaged_checkpoint_does_not_block_resuming(settings, tmp_path, caplog, damage):
    config, out = RunConfig(**settings | {"epochs": 3}), tmp_path / "run"

    def progress(what, done, total):
        if done == 13:  # of 15
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(config, out=out, progress=progress)
    checkpoints = sorted((out / "checkpoints").iterdir(), key=lambda path: int(path.name.split("-")[1]))
    assert [path.name for path in checkpoints] == ["checkpoint-5", "checkpoint-10"]
    for path in checkpoints[-1 if damage == "newest" else 0 :]:
        half = (path / "optimizer.pt").read_bytes()
        (path / "optimizer.pt").write_bytes(half[: len(half) // 2])
    steps = []
    resumed = train(config, out=out, progress=lambda what, done, total: steps.append(done))
    assert steps[0] == (6 if damage == "newest" else 1)
    end = "training goes on from checkpoint-5." if damage == "newest" else "training begins again."
    told = next(message for message in caplog.messages if "damaged" in message)
    assert told.startswith(f"{checkpoints[-1] if damage == 'newest' else checkpoints[0]} is damaged")
    assert told.endswith(end)
    assert resumed.record.files == train(config, out=tmp_path / "whole").record.files


def test_a_training_goes_on_from_another_working_directory(settings, tmp_path, monkeypatch):
    """The best epoch's checkpoint is remembered by a path that no longer leads there."""
    config = RunConfig(**settings | {"learning_rate": 0.0001, "epochs": 3})

    def progress(what, done, total):
        if done == 15:  # after the last step, and before the best weights are taken
            raise KeyboardInterrupt

    monkeypatch.chdir(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        train(config, out="run", progress=progress)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    resumed = train(config, out="../run")
    assert resumed.record.files == train(config, out=tmp_path / "whole").record.files


def test_weights_have_the_mode_that_the_umask_gives(settings, tmp_path):
    run = train(RunConfig(**settings | {"epochs": 1}), out=tmp_path / "run")
    (tmp_path / "file").touch()
    modes = {path.stat().st_mode for path in run.model_dir.iterdir()}
    assert modes == {(tmp_path / "file").stat().st_mode}


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (
            SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)"),
            "checkpoints could not be written: the disk is full; make room. The checkpoints before it are "
            "safe, and the same command goes on from there.",
        ),
        (
            RuntimeError("[enforce fail at inline_container.cc:672] . unexpected pos 576 vs 534"),
            "checkpoints could not be written: the disk took less than was written to it, so it is probably "
            "full; make room. The checkpoints before it are safe, and the same command goes on from there.",
        ),
        (
            RuntimeError("basic_ios::clear: iostream error"),
            "checkpoints could not be written: the disk took less than was written to it, so it is probably "
            "full; make room. The checkpoints before it are safe, and the same command goes on from there.",
        ),
    ],
)
def test_a_full_disk_is_told_in_a_sentence(settings, tmp_path, monkeypatch, error, told):
    def full(*args, **kwargs):
        raise error

    monkeypatch.setattr(CalibratedTrainer, "train", full)
    with pytest.raises(NotWritten) as refused:
        train(RunConfig(**settings), out=tmp_path / "run")
    assert str(refused.value) == f"{tmp_path}/run/{told}"


def test_a_calibrator_that_cannot_be_fitted_does_not_cost_the_training(settings, csv_file, tmp_path, caplog):
    dev = csv_file("two.csv", corpus(2, seed=1))
    config = RunConfig(**settings | {"dev": str(dev), "calibrator": "matrix-scaling", "epochs": 1})
    run = train(config, out=tmp_path / "run")
    assert "needs 3 dev texts or more to choose its penalty, got 2. The run is kept without" in caplog.text
    assert load(run.path).calibrator is None
    assert run.name == "bert"


def test_seeds_of_members_stay_in_range(settings, tmp_path, monkeypatch):
    monkeypatch.setattr(CalibratedTrainer, "train", must_not_train)
    with pytest.raises(UserError, match=r"^--seed: Input should be less than 4294967296"):
        train(RunConfig(**settings | ENSEMBLE | {"seed": 2**32 - 2}), out=tmp_path / "run")


@pytest.mark.filterwarnings("ignore::UserWarning")  # what is left out for want of texts is told so
@pytest.mark.parametrize(
    "seed", [*range(4), *(pytest.param(s, marks=pytest.mark.slow) for s in range(4, 30))]
)
def test_whatever_the_number_of_classes_and_texts(csv_file, model_dir, tmp_path, seed):
    """The default and the probe alone: rows that sum to 1, and labels that no calibrator changes."""
    rng = random.Random(seed)
    classes, dev_texts = rng.choice([2, 3, 7, 40, 150]), rng.choice([2, 5, 19, 20, 21, 40, 80])
    per_class = rng.choice([2, 3, 5, 10])
    texts = [text for text, _ in corpus(classes * per_class + dev_texts, seed=seed)]
    names = [f"class {i:03d}" for i in range(classes)]
    train_rows = [(text, names[i % classes]) for i, text in enumerate(texts[dev_texts:])]
    dev_rows = [(text, rng.choice(names)) for text in texts[:dev_texts]]
    config = RunConfig(
        train=str(csv_file("train.csv", train_rows)),
        dev=str(csv_file("dev.csv", dev_rows)),
        model=str(model_dir),
        method=rng.choice(["calibrant", "linear-probe"]),
        epochs=1,
        batch_size=64,
    )
    run = train(config, out=tmp_path / "run")
    classifier = load(run.path)
    outputs = classifier.outputs([*TEXTS, "zero sheep", "!!!"])
    p = outputs.probabilities
    assert np.isfinite(p).all()
    np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-9)
    best = outputs.logits.max(axis=1)
    np.testing.assert_array_equal(outputs.logits[np.arange(len(p)), p.argmax(axis=1)], best)
    left_out = run.record.calibrator is None or "familiarity" not in run.record.calibrator.name
    assert left_out == (dev_texts < 20)
    if not left_out:
        assert ((outputs.familiarity > 0) & (outputs.familiarity <= 1)).all()
