"""The loop: accumulation, selection, logging, resumption."""

import contextlib
import signal
import subprocess
import sys
import textwrap
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from accelerate.state import AcceleratorState
from safetensors.torch import load_file
from transformers import (
    EvalPrediction,
    Trainer,
    TrainerCallback,
    TrainerControl,
    TrainerState,
    TrainingArguments,
)
from transformers.trainer_pt_utils import LengthGroupedSampler

from calibrant import CalibratedTrainer, RunConfig, UserError, load
from calibrant.calibrators import new_calibrator
from calibrant.classifier import _batches
from calibrant.data.encode import Collate, EncodedTexts, encode
from calibrant.errors import Diverged
from calibrant.fitting.calibrating import fit_calibrator
from calibrant.models import fast
from calibrant.objectives import CrossEntropy, ManifoldSmoothing
from calibrant.runs.card import settings_in_words
from calibrant.runs.texts import load_splits
from calibrant.tasks.evaluate import evaluate
from calibrant.tasks.train import train
from calibrant.training import StopByItself, dev_metrics
from calibrant.training.order import EpochSeededSampler
from support.tiny import WORDS, corpus, noisy_corpus, tiny_bert, tiny_tokenizer
from support.training_arguments import arguments


def encoded(n: int, seed: int = 0) -> EncodedTexts:
    rows = corpus(n, seed)
    ids = encode(tiny_tokenizer(), [text for text, _ in rows], 32)
    return EncodedTexts(ids, [list(WORDS).index(label) for _, label in rows])


def update(tmp_path, objective, batch_size, accumulation, n=32, trainer_class=CalibratedTrainer, **more):
    """The weights' change in one optimizer step over the same texts in the same order."""
    model = tiny_bert(dropout=0.0)
    before = {name: weight.detach().clone() for name, weight in model.named_parameters()}
    kwargs = {} if trainer_class is Trainer else {"objective": objective, **more}
    trainer = trainer_class(
        model=model,
        args=arguments(
            tmp_path,
            per_device_train_batch_size=batch_size,
            gradient_accumulation_steps=accumulation,
            train_sampling_strategy="sequential",
            max_grad_norm=0.0,
        ),
        train_dataset=encoded(n),
        data_collator=Collate(0),
        **kwargs,
    )
    trainer.train()
    return {name: weight.detach() - before[name] for name, weight in model.named_parameters()}


OFF_ONLY = ManifoldSmoothing(lambda_on=0)  # the partner of the on-manifold term is drawn from the micro-batch


@pytest.mark.parametrize(
    "objective", [CrossEntropy(), OFF_ONLY, ManifoldSmoothing(lambda_on=0, solver="pgd")]
)
def test_accumulating_4_by_8_is_one_batch_of_32(tmp_path, objective):
    whole = update(tmp_path, objective, 32, 1)
    parts = update(tmp_path, objective, 8, 4)
    for name, change in whole.items():
        torch.testing.assert_close(parts[name], change, rtol=1e-4, atol=1e-5 * 1e-2, msg=name)


def test_accumulation_with_partners_within_the_micro_batch(tmp_path, monkeypatch):
    """With partners that do not cross micro-batches the on-manifold term accumulates exactly too."""
    monkeypatch.setattr(torch, "randperm", lambda n, **_: torch.arange(n) ^ 1)
    whole = update(tmp_path, ManifoldSmoothing(), 32, 1)
    parts = update(tmp_path, ManifoldSmoothing(), 8, 4)
    for name, change in whole.items():
        torch.testing.assert_close(parts[name], change, rtol=1e-4, atol=1e-5 * 1e-2, msg=name)


def test_a_short_last_micro_batch_counts_by_its_texts(tmp_path):
    """20 texts as 8 + 8 + 4 are the mean over 20, not the mean of three means."""
    whole = update(tmp_path, CrossEntropy(), 20, 1, n=20)
    parts = update(tmp_path, CrossEntropy(), 8, 3, n=20)
    for name, change in whole.items():
        torch.testing.assert_close(parts[name], change, rtol=1e-4, atol=1e-7, msg=name)


def test_class_weights_do_not_depend_on_how_a_step_is_divided(tmp_path):
    weights = [0.5, 1.0, 3.0]
    whole = update(tmp_path, CrossEntropy(), 32, 1, class_weights=weights)
    parts = update(tmp_path, CrossEntropy(), 8, 4, class_weights=weights)
    plain = update(tmp_path, CrossEntropy(), 32, 1)
    for name, change in whole.items():
        torch.testing.assert_close(parts[name], change, rtol=1e-4, atol=1e-7, msg=name)
    assert not torch.allclose(plain["classifier.bias"], whole["classifier.bias"], rtol=0.1)


def test_cross_entropy_trains_as_the_stock_trainer_does(tmp_path):
    ours = update(tmp_path, CrossEntropy(), 32, 1)
    stock = update(tmp_path, None, 32, 1, trainer_class=Trainer)
    for name, change in stock.items():
        torch.testing.assert_close(ours[name], change, rtol=1e-4, atol=1e-7, msg=name)


def test_the_users_own_collator_and_tokenizer_work(tmp_path):
    """As the README writes it, with the collator that the Trainer picks for a tokenizer."""
    tokenizer = tiny_tokenizer()
    rows = corpus(16)
    data = [{**tokenizer(text), "labels": list(WORDS).index(label)} for text, label in rows]
    trainer = CalibratedTrainer(
        model=tiny_bert(),
        args=arguments(tmp_path, logging_steps=1, max_steps=2),
        train_dataset=data,
        eval_dataset=data,
        processing_class=tokenizer,
        objective=ManifoldSmoothing(),
    )
    trainer.train()
    logged = [entry for entry in trainer.state.log_history if "loss" in entry]
    assert len(logged) == 2
    for entry in logged:
        # the Trainer rounds the loss that it logs
        assert entry["loss"] == pytest.approx(entry["ce"] + entry["r_on"] + entry["r_off"], abs=1e-3)
    assert {"eval_accuracy", "eval_confidence", "eval_nll", "eval_selection"} <= set(trainer.evaluate())


def kinds(model):
    return {name: type(module) for name, module in model.named_modules()}, model.config._attn_implementation


@pytest.mark.parametrize("fails", [False, True], ids=["finished", "failed"])
def test_the_model_is_quick_while_it_trains_and_given_back_as_it_came(tmp_path, fails):
    model, quick, seen = tiny_bert(), tiny_bert(), []
    before = kinds(model)
    fast.apply(quick)
    assert kinds(quick) != before

    class Look(TrainerCallback):
        def on_step_end(self, args, state, control, **given):
            seen.append(kinds(given["model"]))
            if fails:
                raise KeyboardInterrupt

    trainer = CalibratedTrainer(
        model=model,
        args=arguments(tmp_path),
        train_dataset=encoded(32),
        data_collator=Collate(0),
        callbacks=[Look()],
    )
    assert kinds(model) == before
    with pytest.raises(KeyboardInterrupt) if fails else contextlib.nullcontext():
        trainer.train()
    assert seen == [kinds(quick)]
    assert kinds(model) == before


def test_selection_orders_by_accuracy_then_by_nll():
    labels = np.array([0, 1, 0, 1])

    def selection(*margins):
        logits = np.array([[m, 0.0] if y == 0 else [0.0, m] for m, y in zip(margins, labels, strict=True)])
        return dev_metrics(EvalPrediction(predictions=logits, label_ids=labels))["selection"]

    three_right_terrible_nll = selection(1, 1, 1, -1000)
    two_right_good_nll = selection(5, 5, -0.01, -0.01)
    assert three_right_terrible_nll > two_right_good_nll
    assert selection(2, 2, 2, -1) > selection(1, 1, 1, -1)


def test_mean_confidence_on_dev_by_hand():
    logits = np.log([[0.9, 0.1], [0.3, 0.7]])
    found = dev_metrics(EvalPrediction(predictions=logits, label_ids=np.array([0, 0])))
    assert found["confidence"] == pytest.approx(0.8)
    assert found["accuracy"] == 0.5
    assert found["nll"] == pytest.approx(-np.log([0.9, 0.3]).mean())
    assert found["ece"] == pytest.approx((0.1 + 0.7) / 2)  # each text in a bin of its own


def test_dev_figures_of_a_model_that_diverged_are_not_numbers():
    logits = np.array([[np.nan, 0.0], [1.0, 0.0]])
    found = dev_metrics(EvalPrediction(predictions=logits, label_ids=np.array([0, 1])))
    assert set(found) == {"accuracy", "confidence", "nll", "ece", "selection", "refinement"}
    assert np.isnan(list(found.values())).all()


def test_the_order_of_an_epoch_depends_on_seed_and_epoch_only():
    lengths = list(range(1, 101))

    def order(seed, epoch):
        sampler = EpochSeededSampler(LengthGroupedSampler(8, lengths=lengths), seed)
        sampler.set_epoch(epoch)
        return list(sampler)

    torch.manual_seed(0)
    first = order(0, 1)
    torch.manual_seed(123)
    assert order(0, 1) == first
    assert sorted(first) == list(range(100))
    assert order(0, 2) != first
    assert order(1, 1) != first


def test_data_parallel_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(TrainingArguments, "n_gpu", 2)
    with pytest.raises(UserError, match=r"DataParallel, .* 2 GPUs; .*`torchrun --nproc-per-node 2 …`"):
        CalibratedTrainer(model=tiny_bert(), args=arguments(tmp_path))


def settings(csv_file, model_dir, **more):
    train = csv_file("train.csv", corpus(96))
    test = csv_file("test.csv", corpus(60, seed=9))
    defaults = {
        "train": str(train),
        "model": str(model_dir),
        "method": "manifold-smoothing",
        "epochs": 3,
        "batch_size": 8,
        "learning_rate": 1e-3,
    }
    return RunConfig(**{**defaults, **more}), str(test)


def test_the_best_epoch_on_dev_is_kept(csv_file, model_dir, tmp_path):
    config, _ = settings(csv_file, model_dir, epochs=4)
    run = train(config, out=tmp_path / "run")
    training = run.training
    evaluations = [entry for entry in training.history if "eval_selection" in entry]
    assert len(evaluations) == 4
    best = max(evaluations, key=lambda entry: (entry["eval_accuracy"], -entry["eval_nll"]))
    assert training.best_epoch == best["epoch"]
    dev = load(run.path)
    splits_dev = load_splits(config).dev
    prediction = dev.prediction(splits_dev)
    assert (prediction.predicted == prediction.labels).mean() == pytest.approx(best["eval_accuracy"])
    assert not run.checkpoints.exists()
    terms = [entry for entry in training.history if "loss" in entry]
    assert all({"ce", "r_on", "r_off"} <= set(entry) for entry in terms)


KILLED = """
import os, signal, sys
import torch
from calibrant.config import RunConfig
from calibrant.tasks.train import train
from calibrant.training import Watch

torch.set_num_threads(1)
config, out, kill_at, every = sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
Watch.__init__.__defaults__ = (every,)

def progress(what, done, total):
    if done == kill_at:
        os.kill(os.getpid(), signal.SIGKILL)

train(RunConfig.model_validate_json(config), out=out, progress=progress)
"""


@pytest.mark.parametrize(("given", "rate"), [({}, 2e-4 * 384 / 32), ({"learning_rate": 0.01}, 0.01)])
def test_the_learning_rate_is_the_methods_where_none_is_named(csv_file, model_dir, tmp_path, given, rate):
    config, _ = settings(csv_file, model_dir)
    changes = {"method": "calibrant", "learning_rate": None, "epochs": 1, "batch_size": 77} | given
    run = train(config.model_copy(update=changes), out=tmp_path / "run")
    (logged,) = [entry for entry in run.training.history if "loss" in entry]
    assert logged["learning_rate"] == pytest.approx(rate)  # of the one step that there is


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kill_at", "seconds_between_checkpoints", "objective"),
    [
        (15, 300.0, {}),
        (15, 0.0, {}),
        (4, 300.0, {}),
        (15, 0.0, {"name": "manifold-smoothing", "solver": "learned", "delta_off": 0.1}),
    ],
    ids=[
        "after an epoch's checkpoint",
        "after a checkpoint within an epoch",
        "before any checkpoint",
        "with a solver that learns",
    ],
)
def test_a_killed_run_resumes_to_the_same_end(
    csv_file, model_dir, tmp_path, kill_at, seconds_between_checkpoints, objective
):
    config, test = settings(csv_file, model_dir)  # 77 training texts: 10 steps an epoch
    if objective:
        config = config.model_copy(update={"objective": objective})
    script = tmp_path / "killed.py"
    script.write_text(textwrap.dedent(KILLED))
    out = tmp_path / "killed"
    command = [sys.executable, str(script), config.model_dump_json(), str(out), str(kill_at)]
    done = subprocess.run([*command, str(seconds_between_checkpoints)], capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    checkpoints = {path.name for path in (out / "checkpoints").glob("checkpoint-*")}
    assert bool(checkpoints) == (kill_at > 10 or seconds_between_checkpoints == 0.0)

    resumed = train(config, out=out)
    whole = train(config, out=tmp_path / "whole")
    assert resumed.training.steps == whole.training.steps == 30
    assert evaluate(resumed.path, test=test).entry.metrics == evaluate(whole.path, test=test).entry.metrics
    history = [run.training.history for run in (resumed, whole)]
    for ours, theirs in zip(*history, strict=True):
        assert ours.get("eval_nll") == theirs.get("eval_nll")


def test_a_resumed_run_counts_the_time_of_all_its_steps_once(csv_file, model_dir, tmp_path, monkeypatch):
    config, _ = settings(csv_file, model_dir, epochs=2)  # 10 steps an epoch
    clock = [0.0]
    monkeypatch.setattr("calibrant.training.callbacks.time", SimpleNamespace(monotonic=lambda: clock[0]))

    def progress(what, done, total):
        clock[0] += 10  # a step
        if clock[0] == 150:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(config, out=tmp_path / "run", progress=progress)
    clock[0] = 1000.0
    assert train(config, out=tmp_path / "run", progress=progress).training.seconds == 20 * 10


def test_a_half_written_checkpoint_is_passed_over(csv_file, model_dir, tmp_path):
    config, _ = settings(csv_file, model_dir, epochs=1)
    half = tmp_path / "run" / "checkpoints" / "checkpoint-7"

    def progress(what, done, total):
        if done == 5:
            half.mkdir(parents=True, exist_ok=True)
            (half / "model.safetensors").write_bytes(b"cut off")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(config, out=tmp_path / "run", progress=progress)
    assert train(config, out=tmp_path / "run").complete


def test_fp16_is_refused(tmp_path, monkeypatch):
    # As `accelerate launch` does; fp16=True needs a GPU.
    monkeypatch.setenv("ACCELERATE_MIXED_PRECISION", "fp16")
    AcceleratorState._reset_state(reset_partial_state=True)
    with pytest.raises(UserError, match="float32 or bf16"):
        CalibratedTrainer(model=tiny_bert(), args=arguments(tmp_path))
    AcceleratorState._reset_state(reset_partial_state=True)


def test_a_model_over_several_devices_is_refused(tmp_path):
    model = tiny_bert()
    model.hf_device_map = {"bert": 0, "classifier": 1}
    with pytest.raises(UserError, match="without device_map"):
        CalibratedTrainer(model=model, args=arguments(tmp_path))


def test_compilation_is_refused(tmp_path):
    with pytest.raises(UserError, match="torch_compile does nothing"):
        CalibratedTrainer(model=tiny_bert(), args=arguments(tmp_path, torch_compile=True))


@pytest.mark.parametrize(
    ("kwargs", "sentence"),
    [
        (
            {"model": None, "model_init": lambda: tiny_bert().half()},
            "load the model with dtype=torch.float32",
        ),
        ({"compute_loss_func": lambda *_: 0}, "compute_loss_func would do nothing"),
        ({"model": tiny_bert().half()}, "load the model with dtype=torch.float32"),
    ],
)
def test_what_an_objective_cannot_go_with_is_refused(tmp_path, kwargs, sentence):
    with pytest.raises(UserError, match=sentence):
        CalibratedTrainer(**{"model": tiny_bert(), "args": arguments(tmp_path), **kwargs})


def test_the_trainers_own_label_smoothing_is_refused(tmp_path):
    with pytest.raises(UserError, match=r"objective=LabelSmoothing"):
        CalibratedTrainer(model=tiny_bert(), args=arguments(tmp_path, label_smoothing_factor=0.1))


def test_pairs_of_texts_train_as_with_the_stock_trainer(tmp_path):
    def collate(rows):
        batch = Collate(0)(rows)
        types = torch.zeros_like(batch["input_ids"])
        types[:, 3:] = 1
        return batch | {"token_type_ids": types * batch["attention_mask"]}

    found = []
    for kind in (CalibratedTrainer, Trainer):
        model = tiny_bert(dropout=0.0)
        args = arguments(tmp_path, train_sampling_strategy="sequential")
        kind(model=model, args=args, train_dataset=encoded(32), data_collator=collate).train()
        found.append(model.state_dict())
    for name, weights in found[1].items():
        torch.testing.assert_close(found[0][name], weights, rtol=1e-4, atol=1e-6, msg=name)
    table = "bert.embeddings.token_type_embeddings.weight"
    assert not torch.equal(found[0][table][1], tiny_bert().state_dict()[table][1])


def test_a_data_seed_of_nought_is_a_seed(tmp_path):
    def order(**seeds):
        args = arguments(tmp_path, train_sampling_strategy="group_by_length", **seeds)
        trainer = CalibratedTrainer(model=tiny_bert(), args=args, train_dataset=encoded(100))
        return list(trainer._get_train_sampler())

    assert order(seed=5, data_seed=0) == order(seed=0) != order(seed=5)


def test_training_ends_with_the_epoch_in_which_it_diverges(csv_file, model_dir, tmp_path):
    config, _ = settings(csv_file, model_dir, learning_rate=1e30, method="bert")
    steps = []
    with pytest.raises(Diverged):
        train(config, out=tmp_path / "run", progress=lambda what, done, total: steps.append(done))
    assert max(steps) == 10  # of 30


# the recipe: where training stops, and which epoch is kept


def log_of(*values, criterion="eval_refinement"):
    """As the Trainer keeps it: an entry with the loss of each epoch, and one of what dev says of it."""
    log = [{criterion: values[0], "epoch": 0.0}]
    for epoch, value in enumerate(values[1:], start=1):
        log += [{"loss": 1.0, "epoch": float(epoch)}, {criterion: value, "epoch": float(epoch)}]
    return log


@pytest.mark.parametrize(
    ("values", "patience", "stops"),
    [
        ((-3, -2, -1), 2, False),
        ((-1, -2), 2, False),
        ((-1, -2, -3), 2, True),  # the start was best
        ((-3, -1, -2), 2, False),
        ((-3, -1, -2, -1.5), 2, True),
        ((-3, -1, -2, -0.5), 2, False),
        ((-3, -1, -1), 1, True),  # no worse is no better
        ((-1, -2, -3, -4, -5), 0, False),  # never
        ((-1, -2, -3), 3, False),
        ((-1,), 1, False),
    ],
)
def test_training_stops_after_some_epochs_that_were_no_better(values, patience, stops, tmp_path):
    stop, control = StopByItself("refinement", patience), TrainerControl()
    state = TrainerState(log_history=log_of(*values), epoch=float(len(values) - 1))
    stop.on_evaluate(None, state, control)
    assert control.should_training_stop == stops
    # and a checkpoint that was written then is where a resumed training ends
    state.save_to_json(tmp_path / "trainer_state.json")
    assert stop.epochs(9, tmp_path) == (len(values) - 1 if stops else 9)
    assert stop.epochs(9, None) == 9


def test_other_criteria_are_passed_over():
    stop, control = StopByItself("selection", 1), TrainerControl()
    stop.on_evaluate(None, TrainerState(log_history=log_of(-1, -2, -3)), control)
    assert not control.should_training_stop


def test_refinement_does_not_hold_against_an_epoch_what_a_temperature_mends():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 200)
    logits = 2 * np.eye(3)[labels] + rng.normal(size=(200, 3))

    def figures(scale):
        return dev_metrics(EvalPrediction(predictions=scale * logits, label_ids=labels))

    sure, right = figures(20), figures(2)
    assert sure["nll"] > 1.5 * right["nll"]
    assert sure["refinement"] == pytest.approx(right["refinement"], rel=1e-6)
    assert -right["refinement"] <= right["nll"]
    noisier = dev_metrics(EvalPrediction(predictions=logits + rng.normal(size=(200, 3)), label_ids=labels))
    assert noisier["refinement"] < right["refinement"]


# 153 training texts: 10 steps an epoch.
RECIPE = {
    **{"method": "calibrant", "keep": "refinement", "calibrator": "temperature"},
    **{"batch_size": 16, "max_length": 32},
}


def recipe(csv_file, model_dir, **more):
    texts = csv_file("texts.csv", noisy_corpus(192))
    return RunConfig(**{"train": str(texts), "model": str(model_dir), **RECIPE, **more})


def measured(run):
    return [entry for entry in run.training.history if "eval_refinement" in entry]


def make_worse(monkeypatch, *values):
    """Dev says these of the start and the epochs, one after another, whatever the model."""
    told = iter(values)
    figures = {"accuracy": 0.5, "confidence": 0.5, "nll": 1.0, "ece": 0.0, "selection": 0.5}
    monkeypatch.setattr(
        "calibrant.training.trainer.dev_metrics", lambda _: figures | {"refinement": next(told)}
    )


def weights(folder):
    return load_file(folder / "model.safetensors")


def test_with_patience_it_stops_and_keeps_the_best_epoch(csv_file, model_dir, tmp_path, monkeypatch):
    make_worse(monkeypatch, -3.0, -1.0, -2.0, -1.5, -0.1)
    run = train(recipe(csv_file, model_dir, epochs=9, patience=2), out=tmp_path / "run")
    assert [entry["eval_refinement"] for entry in measured(run)] == [-3.0, -1.0, -2.0, -1.5]
    assert [entry["epoch"] for entry in measured(run)] == [0, 1, 2, 3]
    assert run.training.best_epoch == 1
    assert run.training.steps == 30


def test_the_default_trains_to_the_end_of_its_schedule(csv_file, model_dir, tmp_path, monkeypatch):
    """Its learning rate falls all the way, and the last epochs may be the best after worse ones."""
    make_worse(monkeypatch, -1.0, -2.0, -3.0, -4.0, -0.5)
    run = train(recipe(csv_file, model_dir, epochs=4), out=tmp_path / "run")
    assert (run.training.steps, run.training.best_epoch) == (40, 4)


def test_the_start_is_kept_where_it_is_best(csv_file, model_dir, tmp_path, monkeypatch):
    """It is the linear probe, on an encoder as it came."""
    make_worse(monkeypatch, -1.0, -2.0, -3.0, -0.5)
    run = train(recipe(csv_file, model_dir, epochs=9, patience=2, learning_rate=1e-2), out=tmp_path / "run")
    assert (run.training.best_epoch, run.training.steps) == (0, 20)
    probe = train(recipe(csv_file, model_dir, method="linear-probe"), out=tmp_path / "probe")
    kept, started = weights(run.model_dir), weights(probe.model_dir)
    assert kept.keys() == started.keys()
    assert all(torch.equal(kept[name], started[name]) for name in kept)


def test_what_is_kept_is_the_model_that_dev_found_best(csv_file, model_dir, tmp_path):
    """As measured, without any pretence."""
    config = recipe(csv_file, model_dir, epochs=4, learning_rate=3e-3, calibrator="none")
    run = train(config, out=tmp_path / "run")
    best = max(measured(run), key=lambda entry: entry["eval_refinement"])
    assert run.training.best_epoch == best["epoch"]
    classifier = load(run.path)
    dev = load_splits(config).dev
    found = dev_metrics(EvalPrediction(classifier.outputs(dev.texts).logits, classifier.class_ids(dev)))
    assert found["refinement"] == pytest.approx(best["eval_refinement"], abs=1e-4)
    assert found["accuracy"] == best["eval_accuracy"]


def interrupted(config, out, at):
    """Trained until the step after this one."""

    def progress(what, done, total):
        if what.startswith("train") and done == at:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(config, out=out, progress=progress)


@pytest.mark.parametrize("at", [5, 15, 25], ids=["before a checkpoint", "in epoch 2", "in epoch 3"])
def test_resumed_it_stops_where_it_would_have(csv_file, model_dir, tmp_path, monkeypatch, at):
    """The start is measured once: a second time would count as one more epoch that is no better."""
    config, values = recipe(csv_file, model_dir, epochs=9, patience=2), (-3.0, -1.0, -2.0, -1.5, -0.1)
    make_worse(monkeypatch, *values)
    whole = train(config, out=tmp_path / "whole")
    make_worse(monkeypatch, *values)
    interrupted(config, tmp_path / "run", at)
    make_worse(monkeypatch, *(values if at == 5 else values[1 + at // 10 :]))
    resumed = train(config, out=tmp_path / "run")
    assert [entry["eval_refinement"] for entry in measured(resumed)] == [-3.0, -1.0, -2.0, -1.5]
    assert (resumed.training.best_epoch, resumed.training.steps) == (1, 30)
    assert resumed.record.files == whole.record.files


def test_killed_after_it_had_stopped_it_trains_no_further(csv_file, model_dir, tmp_path, monkeypatch):
    config, out = recipe(csv_file, model_dir, epochs=9, patience=2), tmp_path / "run"

    def killed(*args):
        raise KeyboardInterrupt

    make_worse(monkeypatch, -3.0, -1.0, -2.0, -1.5, -0.1)
    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "_finalize_training", killed)
        with pytest.raises(KeyboardInterrupt):
            train(config, out=out)
    kept = {path.name for path in (out / "checkpoints").iterdir()}
    assert kept == {"checkpoint-10", "checkpoint-20", "checkpoint-30"}  # the best, and the newest two
    seen = []
    resumed = train(config, out=out, progress=lambda what, done, total: seen.append(what))
    assert not any(what.startswith("train") for what in seen)
    assert (resumed.training.best_epoch, resumed.training.steps) == (1, 30)
    make_worse(monkeypatch, -3.0, -1.0, -2.0, -1.5, -0.1)
    assert resumed.record.files == train(config, out=tmp_path / "whole").record.files


def test_for_a_point_of_the_line_no_epoch_is_kept_as_the_best(csv_file, model_dir, tmp_path, monkeypatch):
    config, out = recipe(csv_file, model_dir, epochs=5, keep="interpolation"), tmp_path / "run"
    make_worse(monkeypatch, -3.0, -1.0, -2.0, -2.0, -2.0)  # epoch 1 is the best
    interrupted(config, out, 45)
    assert {path.name for path in (out / "checkpoints").iterdir()} == {"checkpoint-30", "checkpoint-40"}
    (out / "checkpoints" / "checkpoint-40" / "model.safetensors").write_bytes(b"damaged")
    seen = []
    make_worse(monkeypatch, *[-2.0] * 6)
    train(config, out=out, progress=lambda what, done, total: seen.append((what, done)))
    assert min(done for what, done in seen if what.startswith("train")) > 30


# the linear probe alone


def test_a_linear_probe_trains_nothing(csv_file, model_dir, tmp_path, monkeypatch):
    def must_not_train(*args, **kwargs):
        raise AssertionError("the encoder stays frozen")

    monkeypatch.setattr(CalibratedTrainer, "train", must_not_train)
    config = recipe(csv_file, model_dir, method="linear-probe")
    run = train(config, out=tmp_path / "run")
    before, after = weights(model_dir), weights(run.model_dir)
    encoder = {name for name in after if name.startswith("encoder.")}
    assert after.keys() - encoder == {"classifier.weight", "classifier.bias"}
    for name in encoder:
        assert torch.equal(after[name], before[name.replace("encoder.", "bert.", 1)]), name
    assert (run.training.steps, run.training.best_epoch) == (0, 0)
    (entry,) = run.training.history
    assert entry["epoch"] == 0
    assert entry["eval_accuracy"] == run.training.dev_accuracy
    assert entry["eval_nll"] > run.training.dev_nll  # which has the temperature
    classifier, dev = load(run.path), load_splits(config).dev
    p = classifier.prediction(dev)
    assert (p.predicted == p.labels).mean() == run.training.dev_accuracy
    assert run.training.dev_accuracy > 0.6  # a guess: 0.33
    assert "kept" not in settings_in_words("linear-probe", run.record)  # nothing was chosen
    assert train(config, out=tmp_path / "run").record == run.record


@pytest.mark.parametrize("method", ["linear-probe", "calibrant"])
def test_a_frozen_encoder_reads_each_training_text_once(csv_file, model_dir, tmp_path, monkeypatch, method):
    """The probe and the familiarity share a pass, and the run is that of a pass for each."""
    make_worse(monkeypatch, -1.0, -2.0, -3.0)  # so that the default keeps the probe, too
    read = []
    monkeypatch.setattr(
        "calibrant.classifier._batches",
        lambda rows, *rest: read.append(len(rows)) or _batches(rows, *rest),
    )
    config = recipe(csv_file, model_dir, method=method, calibrator="temperature+familiarity", epochs=2)
    run = train(config, out=tmp_path / "run")
    assert read == [153, 39]  # train, then dev
    classifier, splits = load(run.path), load_splits(config)
    needs = classifier.calibrator.needs
    on_dev, on_train = (classifier.outputs(part.texts, needs) for part in (splits.dev, splits.train))
    again = fit_calibrator(
        classifier,
        new_calibrator("temperature+familiarity"),
        on_dev,
        splits.dev,
        splits.train,
        on_train=on_train,
    )
    texts = [text for text, _ in corpus(40, seed=3)]
    expected = again.probabilities(classifier.outputs(texts, needs))
    np.testing.assert_allclose(classifier.predict_proba(texts), expected, atol=1e-6)


def test_the_same_seed_gives_the_same_probe(csv_file, model_dir, tmp_path):
    first, again = (
        train(recipe(csv_file, model_dir, method="linear-probe"), out=tmp_path / name) for name in "ab"
    )
    assert first.record.files == again.record.files


def test_a_probe_of_an_encoder_that_has_learnt_nothing_is_refused(csv_file, model_dir, tmp_path):
    config = recipe(csv_file, model_dir, method="linear-probe", model="textcnn")
    with pytest.raises(UserError, match="needs a pretrained encoder, and textcnn has none"):
        train(config, out=tmp_path / "run")


@pytest.mark.parametrize(
    ("method", "pooling"),
    [("linear-probe", "native"), *(("calibrant", each) for each in ("native", "declared", "first", "mean"))],
)
def test_every_pooling_can_be_trained(csv_file, model_dir, tmp_path, method, pooling):
    config = recipe(csv_file, model_dir, method=method, pooling=pooling, epochs=1)
    run = train(config, out=tmp_path / "run")
    assert run.record.method.pooling == pooling
    assert np.isfinite(load(run.path).predict_proba(["refund my card"])).all()
    model = load(run.path).models[0]
    if pooling == "native":
        assert type(model).__name__ == "BertForSequenceClassification"
    else:
        assert model.config.pooling == {"declared": "first"}.get(pooling, pooling)


def test_textcnn_by_the_recipe_starts_at_random(csv_file, model_dir, tmp_path):
    config = recipe(csv_file, model_dir, model="textcnn", epochs=2, learning_rate=1e-3)
    run = train(config, out=tmp_path / "run")
    assert type(load(run.path).models[0]).__name__ == "TextCNNForSequenceClassification"
    assert (run.record.method.start, run.record.method.pooling) == ("random", "native")
    again = train(recipe(csv_file, model_dir, model=str(run.model_dir), epochs=1), out=tmp_path / "again")
    assert type(load(again.path).models[0]).__name__ == "TextCNNForSequenceClassification"


def test_an_ensemble_by_the_recipe(csv_file, model_dir, tmp_path):
    config = recipe(
        csv_file,
        model_dir,
        inference={"name": "ensemble", "members": 2},
        calibrator="temperature+familiarity",
        epochs=1,
        learning_rate=1e-3,
    )
    run = train(config, out=tmp_path / "run")
    (first, second) = load(run.path).predict(["refund my card", "violin sonnet"])
    assert 0 < second.familiarity <= 1
    assert load(run.path).predict(["refund my card"])[0].confidence == pytest.approx(first.confidence)
    assert load(run.member(2)).run.record.method.start == "probe"
