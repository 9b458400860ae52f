"""Processes that train together: the same steps, one run, one voice."""

import logging
import shutil
import time

import numpy as np
import pytest
import torch

from calibrant import CalibratedTrainer, RunConfig, UserError, load
from calibrant._system import processes
from calibrant.errors import Elsewhere, Lost
from calibrant.tasks.train import train
from calibrant.training.callbacks import Watch
from support.tiny import noisy_corpus, tiny_bert
from support.training_arguments import arguments
from support.two_processes import cases, difference, in_processes, trained

SGD = {"optim": "sgd", "learning_rate": 0.1, "max_grad_norm": 0.0}  # Adam would not notice a wrong scale


def steps_of(names):
    return {case: trained(case, 4, **SGD) for case in names}


@pytest.mark.parametrize(
    "names",
    [
        ["cross-entropy", "manifold-smoothing, learned"],
        pytest.param(sorted(cases()), marks=pytest.mark.slow, id="every objective and solver"),
    ],
)
def test_two_processes_make_the_steps_of_one(names):
    """The last of the four steps has 28 texts of 32."""
    one = steps_of(names)
    first, second = in_processes(steps_of, names)
    for case in names:
        assert difference(first[case], second[case]) == (0, 0), case  # the models stay the same bit for bit
        assert max(difference(one[case], first[case])) < 1e-5, case
        assert one[case][0][0] != one[case][0][-1], case


def odd():
    """7 texts in the last step, and micro-batches that are gathered."""
    return trained("cross-entropy", 4, texts=103, **SGD), trained("cross-entropy", 4, accumulation=2, **SGD)


def test_also_with_an_odd_last_step_and_with_accumulation():
    for alone, shared in zip(odd(), in_processes(odd)[0], strict=True):
        assert max(difference(alone, shared)) < 1e-5


@pytest.fixture
def settings(csv_file, model_dir):
    """80 training texts: 5 steps an epoch."""
    return RunConfig(
        train=str(csv_file("train.csv", noisy_corpus(100))),
        model=str(model_dir),
        method="calibrant",
        batch_size=16,
        max_length=32,
        epochs=3,
        patience=0,
        learning_rate=1e-3,
    )


def fitted(settings, out, kill_at=None, seconds_between_checkpoints=300.0):
    """The record of the run and what this process was told on the way, or the error that ended it."""
    told, lines = [], []

    def progress(what, done, total):
        told.append(what)
        if what.startswith("train") and done == kill_at:
            raise KeyboardInterrupt

    class Handler(logging.Handler):
        def emit(self, record):
            lines.append(record.getMessage())

    logger = logging.getLogger("calibrant")
    logger.addHandler(Handler())
    logger.setLevel(logging.INFO)
    Watch.__init__.__defaults__ = (seconds_between_checkpoints,)
    try:
        return train(settings, out=out, progress=progress).record, told, lines
    except (UserError, KeyboardInterrupt) as error:
        return error, told, lines


def nlls(record):
    return [entry["eval_nll"] for entry in record.training.history if "eval_nll" in entry]


def interrupted_and_resumed(settings, tmp_path, seconds):
    """With two processes, resumed with two; resumed with one it ends well, too."""
    (first, *_), (second, *_) = in_processes(fitted, settings, tmp_path / "two", 8, seconds)
    assert isinstance(first, KeyboardInterrupt)
    assert isinstance(second, Lost)
    assert str(second).endswith("The same command goes on from the last checkpoint.")
    shutil.copytree(tmp_path / "two", tmp_path / "one")
    resumed, _, lines = in_processes(fitted, settings, tmp_path / "two")[0]
    assert any(line.startswith("Resuming") for line in lines)
    alone = fitted(settings, tmp_path / "one")[0]
    assert (alone.status, alone.training.steps) == ("complete", 15)
    assert nlls(alone)[:2] == nlls(resumed)[:2]  # of before the interruption
    return resumed.files


def test_one_run_of_two_processes_and_the_same_after_an_interruption(settings, tmp_path):
    (first, told, lines), (second, *silence) = in_processes(fitted, settings, tmp_path / "whole")
    assert first == second
    assert first.status == "complete"
    assert [what.split()[0] for what in dict.fromkeys(told)] == ["features", "train", "train", "dev"]
    assert [line.split(":")[0][-7:] for line in lines if "epoch" in line][-1] == "epoch 3"
    assert silence == [[], []]
    alone = train(settings, out=tmp_path / "alone").record
    assert first.training.steps == alone.training.steps == 15
    start = [record.training.history[0] for record in (first, alone)]
    assert start[0]["epoch"] == 0
    for name in start[0].keys() & {"eval_nll", "eval_refinement", "eval_accuracy"}:  # the same probe
        assert start[0][name] == pytest.approx(start[1][name], abs=1e-5)
    texts = [text for text, _ in noisy_corpus(60, seed=3)]
    p, q = (load(tmp_path / name).predict_proba(texts) for name in ("whole", "alone"))
    assert np.abs(p - q).mean() < 0.1  # dropout draws differ
    assert 0 < load(tmp_path / "whole").predict(texts[:1])[0].familiarity <= 1
    assert {file.name for file in (tmp_path / "whole").iterdir()} == {
        *("model", "calibrant.json", "README.md"),
        f"calibrator-{first.calibrator.arrays[:16]}.safetensors",
    }
    assert interrupted_and_resumed(settings, tmp_path, 300.0) == first.files  # the very weights


@pytest.mark.slow
def test_interrupted_within_an_epoch(settings, tmp_path):
    whole = in_processes(fitted, settings, tmp_path / "whole")[0][0]
    assert interrupted_and_resumed(settings, tmp_path, 0.0) == whole.files


@pytest.mark.slow
def test_begun_with_one_it_goes_on_with_two(settings, tmp_path):
    assert isinstance(fitted(settings, tmp_path / "run", kill_at=8)[0], KeyboardInterrupt)
    first, second = in_processes(fitted, settings, tmp_path / "run")
    assert first[0] == second[0]
    assert (first[0].status, first[0].training.steps) == ("complete", 15)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (
            {"batch_size": 15},
            "--batch-size 15: the texts of a step are shared by 2 processes; take",
        ),
        ({"train": "nowhere.csv"}, "nowhere.csv"),
        ({"learning_rate": 1e30}, "Training diverged"),
    ],
)
def test_what_fails_is_told_once_and_ends_both(settings, tmp_path, change, sentence):
    (first, *_), (second, *_) = in_processes(fitted, settings.model_copy(update=change), tmp_path / "run")
    assert sentence in str(first)
    assert type(second) is Elsewhere
    assert str(second) == f"Process 0 of this training failed: {first}"


def test_a_folder_of_somebody_else_is_refused_once(settings, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "thesis.tex").touch()
    (first, *_), (second, *_) = in_processes(fitted, settings, tmp_path / "run")
    assert str(first).endswith("exists and is not a run of calibrant's; give another --out.")
    assert type(second) is Elsewhere


# the parts


def test_a_machine_that_lacks_a_file_says_so_itself(tmp_path):
    (tmp_path / "0").write_text("on the first machine")

    def both():
        try:
            with processes.together():
                return processes.one_first(lambda: (tmp_path / str(processes.rank())).read_text())
        except (OSError, UserError) as error:
            return error

    first, second = in_processes(both)
    assert isinstance(first, Elsewhere)
    assert isinstance(second, FileNotFoundError)


def test_a_process_that_fails_alone_ends_the_one_that_waits():
    """Also where it goes on with something else afterwards."""

    def both():
        with processes.together():
            if processes.is_main():
                raise KeyError("a mistake")
            return processes.on_main(lambda: 1)

    def outcome():
        begun = time.monotonic()
        try:
            return both()
        except (KeyError, Lost) as error:
            if isinstance(error, KeyError):
                time.sleep(5)
            return type(error).__name__, time.monotonic() - begun

    (first, _), (second, seconds) = in_processes(outcome)
    assert (first, second) == ("KeyError", "Lost")
    assert seconds < 4


def test_shares_come_together_in_order():
    def shares():
        with processes.together():
            return processes.in_shares(range(5), lambda own: {"twice": np.array([2 * i for i in own])})

    first, second, third = in_processes(shares, processes=3)
    assert first["twice"].tolist() == [0, 2, 4, 6, 8]
    assert second == third == {}


# what is refused


@pytest.mark.parametrize(("variable", "name"), processes.UNTESTED.items())
def test_other_ways_to_share_a_model_are_refused(tmp_path, settings, monkeypatch, variable, name):
    args = arguments(tmp_path)
    monkeypatch.setenv(variable, "true")
    with pytest.raises(UserError, match=f"does not train with {name}.*torchrun"):
        train(settings, out=tmp_path / "run")
    with pytest.raises(UserError, match=f"does not train with {name}.*torchrun"):
        CalibratedTrainer(model=tiny_bert(), args=args)


@pytest.mark.parametrize(("option", "name"), [("fsdp", "FSDP"), ("deepspeed", "DeepSpeed")])
def test_and_as_arguments(tmp_path, option, name):
    args = arguments(tmp_path)
    setattr(args, option, True)
    with pytest.raises(UserError, match=f"does not train with {name}.*leave `{option}` out"):
        CalibratedTrainer(model=tiny_bert(), args=args)


def test_processes_that_the_arguments_do_not_know_of_are_refused(tmp_path, monkeypatch):
    args = arguments(tmp_path)
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(UserError, match=r"started 2 processes .* know of 1; without a GPU, add use_cpu=True"):
        CalibratedTrainer(model=tiny_bert(), args=args)


def test_each_process_draws_its_own_noise():
    def drawn():
        trained("cross-entropy", 1)
        return torch.rand(3).tolist()

    first, second = in_processes(drawn)
    assert first != second
