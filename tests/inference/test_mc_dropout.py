import math

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.modules.dropout import _DropoutNd

from calibrant.classifier import outputs_of
from calibrant.errors import UserError
from calibrant.inference.mc_dropout import TEXTS_AT_ONCE, MCDropout
from calibrant.inference.single import SinglePass
from calibrant.models import fast
from calibrant.models.fast.first_token import first_token_only
from support.encoders import FAMILIES, tiny
from support.tiny import tiny_bert

WITH_DROPOUT = [family for family in FAMILIES if family != "modernbert"]


def batch(texts=4, seed=0):
    ids = torch.randint(5, 64, (texts, 9), generator=torch.Generator().manual_seed(seed))
    mask = torch.ones_like(ids)
    mask[-1, 5:] = 0
    return ids, mask


def logits_of(inference, model, ids, mask):
    with torch.inference_mode():
        return inference.outputs([model], ids, mask, frozenset())["logits"]


def one_pass(model, seed, texts=4):
    return logits_of(MCDropout(passes=1, seed=seed), model, *batch(texts))


@pytest.mark.parametrize("quick", [False, True], ids=["as it came", "quick"])
@pytest.mark.parametrize("family", WITH_DROPOUT)
def test_a_pass_is_what_training_mode_computes(family, quick):
    """So every dropout is on, that of the attention weights included."""
    model = tiny(family).eval()
    if quick:
        fast.apply(model)
    got = one_pass(model, seed=3)
    assert not any(module.training for module in model.modules())
    model.train()
    torch.manual_seed(3)
    ids, mask = batch()
    with torch.inference_mode(), first_token_only():
        expected = model(input_ids=ids, attention_mask=mask).logits.log_softmax(dim=-1)
    torch.testing.assert_close(got, expected)


@pytest.mark.parametrize("family", WITH_DROPOUT)
def test_passes_differ(family):
    model = tiny(family)
    p = torch.stack([one_pass(model, seed).exp() for seed in range(5)])
    assert (p.var(dim=0) > 0).all()


@pytest.mark.parametrize("rate", ["hidden_dropout_prob", "attention_probs_dropout_prob"])
def test_either_kind_of_dropout_alone_is_enough(rate):
    model = tiny_bert(dropout=0.0)
    for name, module in model.named_modules():
        if isinstance(module, nn.Dropout) and name.endswith("self.dropout") == rate.startswith("attention"):
            module.p = 0.2
    assert not torch.equal(one_pass(model, 0), one_pass(model, 1))


def test_only_dropout_is_on():
    model = tiny_bert()
    seen = {}
    for name, module in model.named_modules():
        module.register_forward_hook(lambda module, *_, name=name: seen.update({name: module.training}))
    one_pass(model, 0)
    training = {name for name, mode in seen.items() if mode}
    modules = dict(model.named_modules())
    assert {"dropout", "bert.embeddings.dropout", "bert.encoder.layer.0.attention.self"} <= training
    for name in training:
        assert isinstance(modules[name], _DropoutNd) or "attention" in name.split(".")[-2:]
    assert {"", "bert", "bert.encoder.layer.0", "bert.embeddings.LayerNorm"} <= set(seen) - training


@pytest.mark.parametrize("texts", [1, 4, 31, 40])
def test_the_mean_of_the_passes(texts):
    """However many go side by side: the passes drawn one after another, and their mean written plainly."""
    model = tiny_bert()
    fast.apply(model)
    ids, mask = batch(texts)
    side_by_side = max(1, TEXTS_AT_ONCE // texts)
    model.train()
    torch.manual_seed(7)
    probabilities = []
    with torch.no_grad(), first_token_only():
        for done in range(0, 10, side_by_side):
            copies = min(side_by_side, 10 - done)
            z = model(input_ids=ids.repeat(copies, 1), attention_mask=mask.repeat(copies, 1)).logits
            probabilities += z.softmax(dim=-1).split(texts)
    assert len(probabilities) == 10
    got = logits_of(MCDropout(seed=7), model, ids, mask)
    torch.testing.assert_close(got.exp(), sum(probabilities) / 10)


def test_ten_passes_cost_at_most_ten(monkeypatch):
    """Counted in texts: no copy more than asked for, and few texts share a pass."""
    model, calls = tiny_bert(), []
    model.register_forward_pre_hook(
        lambda module, args, kwargs: calls.append(len(kwargs["input_ids"])), with_kwargs=True
    )
    for texts, expected in ((1, [10]), (3, [30]), (8, [32, 32, 16]), (32, [32] * 10), (40, [40] * 10)):
        logits_of(MCDropout(), model, *batch(texts))
        assert calls == expected
        assert sum(calls) == 10 * texts
        calls.clear()


@pytest.mark.parametrize("cheap", [False, True], ids=["stock dropout", "quick"])
def test_reproducible_whatever_ran_before_and_nothing_disturbed(cheap):
    model = tiny_bert()
    if cheap:
        fast.apply(model)
    rows = [list(range(5, 5 + n)) for n in range(3, 40)]
    torch.manual_seed(1)
    first = outputs_of(MCDropout(), [model], rows, 0).logits
    torch.manual_seed(2)
    model.train()
    torch.rand(17)
    state = torch.get_rng_state()
    again = outputs_of(MCDropout(), [model], rows, 0).logits
    np.testing.assert_array_equal(first, again)
    assert torch.equal(torch.get_rng_state(), state)
    assert not np.allclose(first, outputs_of(MCDropout(seed=1), [model], rows, 0).logits)


def test_many_passes_approach_a_limit():
    """Means over disjoint sets of passes agree to their standard error, as single passes do not."""
    model, (ids, mask) = tiny_bert(dropout=0.3), batch(1)
    means = [logits_of(MCDropout(passes=400, seed=seed), model, ids, mask).exp() for seed in (0, 1)]
    ones = torch.stack([one_pass(model, seed, texts=1).exp() for seed in range(50)])
    assert (means[0] - means[1]).abs().max() < 5 * ones.std(dim=0).max() * math.sqrt(2 / 400)


def test_it_is_not_the_single_pass():
    model, (ids, mask) = tiny_bert().eval(), batch()
    one = logits_of(SinglePass(), model, ids, mask).softmax(dim=-1)
    assert (logits_of(MCDropout(), model, ids, mask).exp() - one).abs().max() > 1e-4


@pytest.mark.parametrize("model", [tiny("modernbert"), tiny_bert(dropout=0.0)], ids=["ModernBERT", "BERT, 0"])
def test_a_model_without_dropout_is_refused(model):
    model.config.name_or_path = "some/model"
    for ask in (lambda: MCDropout().check(model), lambda: logits_of(MCDropout(), model, *batch())):
        with pytest.raises(UserError) as refused:
            ask()
        assert str(refused.value) == (
            f"MC dropout needs dropout, and {type(model).__name__} (some/model) has none (all its rates are "
            "0). Use another method, or a model trained with dropout."
        )


def test_passes():
    with pytest.raises(UserError, match=r"^`passes` must be at least 1, got 0\.$"):
        MCDropout(passes=0)
