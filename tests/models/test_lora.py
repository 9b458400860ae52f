"""Adapters: what is trained, that every objective trains them, and that a run of them is a run."""

import json
import sys

import numpy as np
import pytest
import torch
from peft import LoraConfig, PeftModel, PromptTuningConfig, TaskType, get_peft_model
from safetensors.torch import load_file

from calibrant import CalibratedTrainer, RunConfig, UserError, load
from calibrant.data.encode import Collate, EncodedTexts, encode
from calibrant.models.lora import with_lora
from calibrant.models.pretrained import load_classifier
from calibrant.models.split import SplitModel
from calibrant.objectives import ManifoldSmoothing, objectives
from calibrant.objectives.solvers import solvers
from calibrant.tasks.export import export
from calibrant.tasks.train import train
from support.encoders import FAMILIES, tiny
from support.tiny import WORDS, corpus, tiny_bert, tiny_tokenizer
from support.training_arguments import arguments

EVERY = [kind() for kind in objectives().values()] + [
    ManifoldSmoothing(solver=solver) for solver in solvers() if solver != ManifoldSmoothing().solver
]
TEXTS = [text for text, _ in corpus(20, seed=5)]


def encoded(n):
    rows = corpus(n)
    ids = encode(tiny_tokenizer(), [text for text, _ in rows], 32)
    return EncodedTexts(ids, [list(WORDS).index(label) for _, label in rows])


def of_a_user(kind=LoraConfig, **more):
    """A model as peft's own pages make it."""
    return get_peft_model(tiny_bert(), kind(task_type=TaskType.SEQ_CLS, **more))


def trainer_of(model, tmp_path, **more):
    return CalibratedTrainer(
        model=model,
        args=arguments(tmp_path, max_steps=2, optim="adamw_torch"),
        train_dataset=encoded(32),
        eval_dataset=encoded(16),
        data_collator=Collate(0),
        **more,
    )


@pytest.mark.parametrize("objective", EVERY, ids=lambda o: f"{o.name} {getattr(o, 'solver', '')}".strip())
def test_every_objective_and_solver_trains_the_adapter_and_the_head_alone(tmp_path, objective):
    model = of_a_user(r=4, lora_alpha=8)
    before = {name: weight.detach().clone() for name, weight in model.named_parameters()}
    trainer = trainer_of(model, tmp_path, objective=objective)
    trainer.train()
    moved = {name for name, weight in model.named_parameters() if not torch.equal(weight, before[name])}
    trained = {name for name, weight in model.named_parameters() if weight.requires_grad}
    assert moved == trained
    assert {name.rpartition(".default")[0].rpartition(".")[2] for name in moved} >= {"lora_A", "lora_B"}
    assert any("classifier" in name for name in moved)
    assert np.isfinite(trainer.evaluate()["eval_nll"])


@pytest.mark.parametrize("family", [family for family in FAMILIES if family != "textcnn"])
def test_the_head_is_trained_whole_and_merging_changes_no_answer(family):
    model = with_lora(tiny(family), 4, None, family).eval()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "lora_B" in name:  # which is 0 at the start
                weight.normal_(std=0.1)
    split = SplitModel(model)
    split.verify()
    own = [name for name, weight in model.named_parameters() if weight.requires_grad and "lora" not in name]
    plain = tiny(family)
    encoder = f"{plain.base_model_prefix}."
    head = [name for name, _ in plain.named_parameters() if not name.startswith(encoder)]
    assert head
    assert len(own) == len(head) + (2 if getattr(plain.base_model, "pooler", None) is not None else 0)
    ids = torch.randint(5, 64, (3, 9))
    mask = torch.ones_like(ids)
    with torch.no_grad():
        expected = model(input_ids=ids, attention_mask=mask).logits
        merged = model.merge_and_unload()
        assert type(merged) is type(plain)
        assert merged.state_dict().keys() == plain.state_dict().keys()
        torch.testing.assert_close(merged(input_ids=ids, attention_mask=mask).logits, expected)


def test_an_adapter_that_the_objectives_would_pass_by_is_refused(tmp_path):
    with pytest.raises(UserError, match="from word embeddings"):
        trainer_of(of_a_user(PromptTuningConfig, num_virtual_tokens=3), tmp_path)


@pytest.fixture
def settings(csv_file, model_dir):
    """The default recipe with adapters; 10 steps an epoch."""
    return {
        "train": str(csv_file("train.csv", corpus(100))),
        "model": str(model_dir),
        "max_length": 32,
        "epochs": 3,
        "batch_size": 8,
        "lora": 4,
        "lora_targets": "query,value",
        "learning_rate": 1e-2,
    }


def test_a_run_with_adapters_is_a_run_and_resumes_to_the_same_end(settings, model_dir, tmp_path):
    config = RunConfig(**settings, keep="accuracy", patience=0)
    whole = train(config, out=tmp_path / "whole")
    assert (whole.training.best_epoch > 0, whole.training.steps) == (True, 30)

    def kill(what, done, total):
        if what.startswith("train") and done == 15:
            raise KeyboardInterrupt

    out = tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        train(config, out=out, progress=kill)
    (checkpoint,) = (out / "checkpoints").iterdir()
    assert (checkpoint / "adapter_model.safetensors").exists()
    assert not (checkpoint / "model.safetensors").exists()
    run = train(config, out=out)
    assert run.record.files == whole.record.files
    # The encoder stayed where no adapter is, and only there.
    base, kept = (load_file(path / "model.safetensors") for path in (model_dir, run.model_dir))
    for name in ("key", "query"):
        layer = f"encoder.layer.0.attention.self.{name}.weight"
        assert torch.equal(base[f"bert.{layer}"], kept[f"encoder.{layer}"]) == (name == "key")
    # The adapter, on the model that it was trained on, is the run.
    assert {path.name for path in run.adapter_dir.iterdir()} == {
        "adapter_config.json",
        "adapter_model.safetensors",
    }
    assert json.loads((run.adapter_dir / "adapter_config.json").read_text())["lora_alpha"] == 8
    model, tokenizer = load_classifier(str(model_dir), run.label_names, pooling="first+mean")
    adapted = PeftModel.from_pretrained(model, str(run.adapter_dir)).eval()
    batch = tokenizer(TEXTS, padding=True, return_tensors="pt")
    classifier = load(run.path)
    with torch.no_grad():
        logits = adapted(input_ids=batch.input_ids, attention_mask=batch.attention_mask).logits
    np.testing.assert_allclose(classifier.outputs(TEXTS).logits, logits.numpy(), atol=1e-4)
    assert classifier.predict(TEXTS)[0].familiarity is not None
    assert export(run.path, folder=tmp_path / "plain").difference < 1e-5


def test_the_start_is_kept_where_no_epoch_is_better(settings, tmp_path):
    """Rounding alone may change it: the adapter that is merged there is 0."""
    run = train(RunConfig(**settings | {"learning_rate": 10.0, "epochs": 1}), out=tmp_path / "run")
    assert run.training.best_epoch == 0
    probe = {**settings, "method": "linear-probe"}
    del probe["lora"], probe["lora_targets"]
    start = load(train(RunConfig(**probe), out=tmp_path / "probe").path)
    np.testing.assert_allclose(load(run.path).predict_proba(TEXTS), start.predict_proba(TEXTS), atol=1e-5)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (
            {"lora_targets": "query,valu"},
            "--lora-targets: {} has no linear layer 'valu'; it has dense, key, query, value.",
        ),
        (
            {"model": "textcnn", "lora_targets": None},
            "--lora: textcnn has no linear layers for adapters to go with; leave it out.",
        ),
        (
            {"method": "linear-probe"},
            "--lora: linear-probe trains the head alone; leave one of them out.",
        ),
    ],
)
def test_refused(settings, model_dir, tmp_path, change, sentence):
    with pytest.raises(UserError) as refused:
        train(RunConfig(**settings | change), out=tmp_path / "run")
    assert str(refused.value) == sentence.format(model_dir)


def test_targets_need_a_rank():
    with pytest.raises(UserError, match=r"Layers for adapters \(--lora-targets\) go with the adapters' rank"):
        RunConfig(train="a.csv", lora_targets="query")


def test_a_missing_extra_is_told_before_the_work(settings, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "peft", None)
    with pytest.raises(UserError) as refused:
        train(RunConfig(**settings), out=tmp_path / "run")
    assert str(refused.value) == "--lora needs peft, which is not installed: pip install 'calibrant[lora]'."
