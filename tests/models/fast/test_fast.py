"""All that makes a model quick together: it can be undone, threads can share it, and training undoes it."""

import copy
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from transformers import AutoModelForSequenceClassification, TrainerCallback, TrainingArguments
from transformers.modeling_outputs import BaseModelOutputWithPastAndCrossAttentions
from transformers.models.bert.modeling_bert import BertEncoder

from calibrant import CalibratedTrainer
from calibrant.classifier import outputs_of
from calibrant.data.encode import Collate, EncodedTexts, encode
from calibrant.inference.mc_dropout import MCDropout
from calibrant.inference.single import SinglePass
from calibrant.models import fast
from calibrant.models.fast.dropout import ATTENTION
from calibrant.models.fast.first_token import HEADS
from calibrant.objectives import ManifoldSmoothing
from support.encoders import FAMILIES, assert_says_the_same, tiny
from support.tiny import WORDS, corpus, tiny_bert, tiny_tokenizer

BATCH = {
    "input_ids": torch.tensor([[7, 8, 9, 10, 11], [12, 13, 14, 1, 1]]),
    "attention_mask": torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]]),
}
ROWS = [list(range(10, 10 + n)) for n in (9, 4, 20, 7, 3, 12)]


@pytest.fixture(autouse=True)
def available(monkeypatch):
    """As on the machines that the linear layers are made for, whatever this one is."""
    for library in (torch.backends.mkl, torch.backends.mkldnn):
        monkeypatch.setattr(library, "is_available", lambda: True)


def build(model):
    """All that is switched: the class of every module, and how it attends."""
    return {name: type(module) for name, module in model.named_modules()}, model.config._attn_implementation


def contents(model):
    """All that must not be touched: the own attributes of every module, weights included, and the config."""
    weights = {name: id(weight) for name, weight in model.named_parameters()}
    return (
        {name: set(vars(module)) for name, module in model.named_modules()},
        weights,
        model.config.to_dict(),
    )


def answers(model):
    """Of evaluation mode, and of training mode with its dropout."""
    said = []
    for mode in (False, True):
        torch.manual_seed(0)
        with torch.no_grad():
            said.append(model.train(mode)(**BATCH).logits)
    return said


def assert_same(before, after):
    for one, other in zip(before, after, strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_model_is_given_back_as_it_came(family):
    model = tiny(family)
    came, held, said = build(model), contents(model), answers(model)
    for _ in range(2):  # nothing is left that would be in the way of another time
        fast.apply(model)
        switched = build(model)
        assert switched[0] != came[0]
        fast.apply(model)
        assert build(model) == switched
        assert contents(model) == held
        fast.remove(model)
        assert build(model) == came
        assert contents(model) == held
        assert_same(answers(model), said)
    fast.remove(model)
    assert build(model) == came


@pytest.mark.parametrize("family", FAMILIES)
def test_a_quick_model_says_the_same(family):
    assert_says_the_same(family, fast.apply)


def unknown_attention(monkeypatch, model):
    """transformers calls attention with arguments of another name."""

    def attention(module, query, key, value, attention_mask, dropout_p=0.0, scaling=None, **kwargs):
        raise AssertionError("nobody calls it")

    monkeypatch.setattr("transformers.integrations.sdpa_attention.sdpa_attention_forward", attention)
    return "its attention takes other arguments"


def missing_module(monkeypatch, model):
    """It has moved what a part is made of."""
    monkeypatch.setitem(sys.modules, "transformers.masking_utils", None)
    return "import of transformers.masking_utils halted"


def run_layers(monkeypatch, layers, mask):
    """The layers have another name, or take their mask by another."""

    def forward(self, hidden_states, attention_mask=None, **_):
        for layer in getattr(self, layers):
            hidden_states = layer(hidden_states, **{mask: attention_mask})
        return BaseModelOutputWithPastAndCrossAttentions(last_hidden_state=hidden_states)

    monkeypatch.setattr(BertEncoder, "forward", forward)


def other_layers(monkeypatch, model):
    encoder = model.bert.encoder
    encoder.layers = encoder.layer
    del encoder.layer
    run_layers(monkeypatch, "layers", "attention_mask")
    return "AttributeError: 'BertEncoder' object has no attribute 'layer'"


def mask_by_name(monkeypatch, model):
    """So that the first token is mixed with padding."""
    run_layers(monkeypatch, "layer", "attention_mask")
    return "they change its answers"


@pytest.mark.parametrize("change", [unknown_attention, missing_module, other_layers, mask_by_name])
def test_a_transformers_that_nobody_knows_works_without_it(monkeypatch, change):
    model = tiny_bert().eval()
    said = model(**BATCH).logits
    why = change(monkeypatch, model)
    came = build(model)
    fast.dropout._register.cache_clear()
    with pytest.warns(
        UserWarning, match=r"BertForSequenceClassification of transformers \d.* is not as "
    ) as told:
        fast.apply(model)
    assert why in str(told[0].message)
    assert build(model) == came
    if change is not missing_module:
        torch.testing.assert_close(model(**BATCH).logits, said)
    fast.dropout._register.cache_clear()


def test_an_attention_that_is_not_ours_stays():
    model = tiny("bert")
    model.set_attn_implementation("eager")
    came = build(model)
    fast.apply(model)
    assert model.config._attn_implementation == "eager"
    fast.remove(model)
    assert build(model) == came


def test_a_copy_of_a_quick_model_is_one():
    model = tiny("bert").eval()
    fast.apply(model)
    other = copy.deepcopy(model)
    assert build(other) == build(model)
    fast.remove(other)
    assert build(other) == build(tiny("bert"))
    assert build(model) != build(other)


def test_nothing_of_it_is_saved(tmp_path):
    model = tiny("bert")
    came = build(model)
    fast.apply(model)
    model.save_pretrained(tmp_path)
    assert build(AutoModelForSequenceClassification.from_pretrained(tmp_path)) == came


@pytest.fixture
def hasty(monkeypatch):
    """Threads that take turns as often as Python can."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.parametrize("family", FAMILIES)
def test_threads_that_ask_one_model_for_different_things(family, hasty):
    """A pass for the logits leaves tokens out, one for features does not, and both are under way at once."""
    model = tiny(family).eval()
    fast.apply(model)
    padding = model.config.pad_token_id or 0
    asked = [frozenset(), frozenset({"features"})]
    if family != "textcnn":
        asked.append(frozenset({"layers"}))

    def ask(needs):
        return outputs_of(SinglePass(), [model], ROWS, padding, needs)

    alone = [ask(needs) for needs in asked]
    together = threading.Barrier(len(asked), timeout=60)

    def wait(*_):
        together.wait()

    model.base_model.register_forward_pre_hook(wait)
    with ThreadPoolExecutor(len(asked)) as threads:
        for _ in range(10):
            for got, expected in zip(threads.map(ask, asked), alone, strict=True):
                np.testing.assert_array_equal(got.logits, expected.logits)
                for name in ("features", "layers"):
                    assert (getattr(got, name) is None) == (getattr(expected, name) is None)
                    if getattr(expected, name) is not None:
                        np.testing.assert_array_equal(getattr(got, name), getattr(expected, name))


@pytest.mark.parametrize("family", [name for name, (kind, _) in FAMILIES.items() if kind.__name__ in HEADS])
def test_what_threads_ask_for_does_differ(family):
    """Else the test above would prove nothing: the logits alone do run a shorter last layer."""
    model = tiny(family).eval()
    fast.apply(model)
    seen = []
    model.base_model.encoder.layer[-1].register_forward_hook(lambda *args: seen.append(args[-1].shape[1]))
    for needs in (frozenset(), frozenset({"features"})):
        outputs_of(SinglePass(), [model], ROWS[:1], 0, needs)
    assert seen == [1, len(ROWS[0])]


def test_threads_that_draw_random_numbers(hasty):
    model = tiny_bert(dropout=0.2).eval()
    fast.apply(model)
    asked = [(MCDropout(passes=3, seed=seed), needs) for seed in (0, 1) for needs in ((), ("features",))]

    def ask(how):
        inference, needs = how
        return outputs_of(inference, [model], ROWS, 0, frozenset(needs)).logits

    alone = [ask(how) for how in asked]
    with ThreadPoolExecutor(4) as threads:
        for got, expected in zip(threads.map(ask, asked * 5), alone * 5, strict=True):
            np.testing.assert_array_equal(got, expected)


class Seen(TrainerCallback):
    """What the model looks like while it is trained; it may stop the training by an error."""

    def __init__(self, error=None):
        self.builds, self.error = [], error

    def on_step_end(self, args, state, control, model=None, **kwargs):
        self.builds.append(build(model))
        if self.error is not None:
            raise self.error


def trainer(model, tmp_path, seen):
    rows = corpus(32)
    ids = encode(tiny_tokenizer(), [text for text, _ in rows], 32)
    texts = EncodedTexts(ids, [list(WORDS).index(label) for _, label in rows])
    arguments = TrainingArguments(
        output_dir=str(tmp_path),
        max_steps=2,
        per_device_train_batch_size=8,
        eval_strategy="steps",
        eval_steps=1,
        report_to="none",
        disable_tqdm=True,
        save_strategy="no",
        use_cpu=True,
        dataloader_pin_memory=False,
    )
    return CalibratedTrainer(
        model,
        arguments,
        train_dataset=texts,
        eval_dataset=texts,
        data_collator=Collate(0),
        objective=ManifoldSmoothing(),
        callbacks=[seen],
    )


def test_training_gives_the_users_model_back_as_it_came(tmp_path):
    model = tiny_bert()
    came, said = build(model), answers(model)
    seen = Seen()
    trained = trainer(model, tmp_path, seen)
    assert build(model) == came
    trained.train()
    modules, attention = seen.builds[-1]
    assert attention == ATTENTION
    assert modules.keys() == came[0].keys()
    assert sum(modules[name] is not kind for name, kind in came[0].items()) > 10
    assert trained.model is model
    assert build(model) == came
    assert not torch.equal(answers(model)[0], said[0])  # it has learnt
    model.save_pretrained(tmp_path / "saved")
    stock = AutoModelForSequenceClassification.from_pretrained(tmp_path / "saved")
    assert_same(answers(model), answers(stock))
    assert "eval_accuracy" in trained.evaluate()


def test_training_that_fails_gives_it_back_too(tmp_path):
    model = tiny_bert()
    came = build(model)
    seen = Seen(error=KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        trainer(model, tmp_path, seen).train()
    assert seen.builds[0][1] == ATTENTION
    assert build(model) == came
