"""What the Trainer of transformers offers around a training: search, fresh models, early stopping."""

import math

import pytest
import torch
from transformers import EarlyStoppingCallback, TrainerCallback

from calibrant import CalibratedTrainer, UserError
from calibrant.data.encode import Collate, EncodedTexts, encode
from calibrant.models import fast
from calibrant.objectives import ManifoldSmoothing
from support.tiny import WORDS, corpus, tiny_bert, tiny_tokenizer
from support.training_arguments import arguments


def texts(n, seed=0):
    rows = corpus(n, seed)
    ids = encode(tiny_tokenizer(), [text for text, _ in rows], 32)
    return EncodedTexts(ids, [list(WORDS).index(label) for _, label in rows])


def trainer(tmp_path, *callbacks, objective=None, settings=None, **more):
    more = {"model_init": lambda: tiny_bert()} | more
    return CalibratedTrainer(
        args=arguments(tmp_path, **{"max_steps": 3, "logging_steps": 1} | (settings or {})),
        train_dataset=texts(48),
        eval_dataset=texts(24, seed=1),
        data_collator=Collate(0),
        objective=objective,
        callbacks=list(callbacks),
        **more,
    )


class Seen(TrainerCallback):
    """The models that trained, whether they were quick, and their loss terms."""

    def __init__(self):
        self.models, self.quick, self.logs = [], [], []

    def on_step_end(self, args, state, control, model, **kwargs):
        if not any(model is other for other in self.models):
            self.models.append(model)
            self.quick.append(model.config._attn_implementation == fast.dropout.ATTENTION)

    def on_log(self, args, state, control, logs, **kwargs):
        self.logs.append(logs)


def test_a_search_trains_a_fresh_model_for_each_trial(tmp_path):
    seen = Seen()
    search = trainer(tmp_path, seen, objective=ManifoldSmoothing(solver="learned"))
    rates = iter([1e-4, 0.5])
    best = search.hyperparameter_search(
        lambda trial: {"learning_rate": trial.suggest_float("learning_rate", *[next(rates)] * 2)},
        n_trials=2,
        backend="optuna",
    )
    assert len(seen.models) == 2
    assert seen.quick == [True, True]
    assert all(model.config._attn_implementation == "sdpa" for model in seen.models)
    losses = [logs for logs in seen.logs if "loss" in logs]
    assert len(losses) == 6
    assert all({"ce", "r_on", "r_off"} <= set(logs) for logs in losses)
    refined = [-logs["eval_refinement"] for logs in seen.logs if "eval_refinement" in logs]
    assert best.objective == pytest.approx(min(refined), abs=1e-6)
    assert best.hyperparameters["learning_rate"] == [1e-4, 0.5][refined.index(min(refined))]
    assert search.minimised == ManifoldSmoothing(solver="learned")


def test_model_init_begins_anew_each_time(tmp_path):
    """And ends where a model that was given does."""
    seen, settings = (
        Seen(),
        {"train_sampling_strategy": "sequential"},
    )  # and no dropout, so that nothing is drawn
    twice, ends = trainer(tmp_path, seen, settings=settings, model_init=lambda: tiny_bert(dropout=0.0)), []
    for _ in range(2):
        twice.train()
        ends.append({name: value.clone() for name, value in twice.model.state_dict().items()})
    given = trainer(tmp_path, settings=settings, model=tiny_bert(dropout=0.0), model_init=None)
    given.train()
    for name, value in given.model.state_dict().items():
        torch.testing.assert_close(ends[0][name], value)
        torch.testing.assert_close(ends[1][name], value)
    assert len(seen.models) == 2


def test_what_a_search_compares_is_said_or_dev_nll(tmp_path):
    with pytest.raises(UserError, match="direction='maximize' needs compute_objective"):
        trainer(tmp_path).hyperparameter_search(direction="maximize")
    own = trainer(tmp_path, compute_metrics=lambda prediction: {"half": 0.5})
    with pytest.raises(UserError, match="hyperparameter_search needs compute_objective"):
        own.hyperparameter_search(lambda trial: {}, n_trials=1, backend="optuna")


def test_early_stopping_of_transformers(tmp_path):
    settings = {
        "max_steps": 8,
        "eval_strategy": "steps",
        "save_strategy": "steps",
        "eval_steps": 1,
        "save_steps": 1,
        "load_best_model_at_end": True,
        "metric_for_best_model": "refinement",
        "greater_is_better": True,
        "learning_rate": 5.0,  # after the first step it gets worse
    }
    stopped = trainer(tmp_path, EarlyStoppingCallback(early_stopping_patience=2), settings=settings)
    stopped.train()
    log = [entry["eval_refinement"] for entry in stopped.state.log_history if "eval_refinement" in entry]
    best = max(range(len(log)), key=log.__getitem__)
    assert len(log) == best + 3 < 8
    assert stopped.evaluate()["eval_refinement"] == pytest.approx(log[best])
    assert math.isfinite(log[best])
