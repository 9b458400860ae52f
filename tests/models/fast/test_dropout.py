import pytest
import torch
from torch import nn
from transformers import AutoModelForSequenceClassification

from calibrant.models.fast import dropout
from calibrant.models.fast.dropout import CheapDropout, cheap_dropout
from support.encoders import FAMILIES, assert_says_the_same
from support.tiny import tiny_bert


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_the_share_dropped_and_the_expectation(p):
    torch.manual_seed(0)
    n = 1_000_003  # not a multiple of four
    y = cheap_dropout(torch.ones(n), p)
    standard_error = (p * (1 - p) / n) ** 0.5
    assert (y == 0).float().mean().item() == pytest.approx(p, abs=4 * standard_error + 1e-5)
    assert y.mean().item() == pytest.approx(1, abs=4 * standard_error / (1 - p) + 1e-5)
    assert y.unique().numel() == 2


def test_each_of_the_four_elements_of_a_draw_is_dropped_alike():
    """The top bits of a draw must be as random as the others."""
    torch.manual_seed(1)
    dropped = (cheap_dropout(torch.ones(4_000_000), 0.1) == 0).view(-1, 4).float()
    torch.testing.assert_close(dropped.mean(0), torch.full((4,), 0.1), rtol=0, atol=1.5e-3)
    assert torch.corrcoef(dropped.T).fill_diagonal_(0).abs().max() < 5e-3


def test_the_gradient_passes_where_the_value_did():
    torch.manual_seed(0)
    x = torch.randn(7, 13, requires_grad=True)
    y = cheap_dropout(x, 0.3)
    y.sum().backward()
    torch.testing.assert_close(x.grad * x.detach(), y.detach())


def test_seeded_like_everything_else_of_torch():
    x = torch.randn(64)
    torch.manual_seed(5)
    first = cheap_dropout(x, 0.5)
    assert not torch.equal(cheap_dropout(x, 0.5), first)
    torch.manual_seed(5)
    assert torch.equal(cheap_dropout(x, 0.5), first)


@pytest.mark.parametrize("p", [0.0, 1.0])
def test_nothing_and_everything(p):
    x = torch.randn(8)
    assert torch.equal(CheapDropout(p)(x), x * (1 - p))
    assert torch.equal(CheapDropout(p).eval()(x), x)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_model_switched_over_says_the_same_without_dropout(family):
    _, switched = assert_says_the_same(family, dropout.apply)
    switched.train()
    assert not any(type(module) is nn.Dropout for module in switched.modules())


def test_attention_weights_are_dropped_and_the_mean_is_right():
    """With dropout in the attention alone, many passes average to about the pass without."""
    ids = torch.randint(5, 64, (2, 9), generator=torch.Generator().manual_seed(0))
    mask = torch.ones_like(ids)
    mask[1, 5:] = 0
    model = tiny_bert(dropout=0.0, layers=1)
    for layer in model.bert.encoder.layer:
        layer.attention.self.dropout.p = 0.2
    dropout.apply(model)
    model.eval()
    expected = model(input_ids=ids, attention_mask=mask).logits
    model.train()
    with torch.no_grad():
        passes = torch.stack([model(input_ids=ids, attention_mask=mask).logits for _ in range(400)])
    assert passes.std(0).min() > 0
    assert ((passes.mean(0) - expected).abs() < 5 * passes.std(0) / 400**0.5 + 2e-3).all()
    # what lies at padding makes no difference
    torch.manual_seed(0)
    one = model(input_ids=ids, attention_mask=mask).logits
    torch.manual_seed(0)
    other = model(input_ids=ids.masked_fill(mask == 0, 7), attention_mask=mask).logits
    torch.testing.assert_close(one, other)


@pytest.mark.parametrize("texts_at_a_time", [1, 2, 5])
@pytest.mark.parametrize("masked", [True, False])
def test_attention_and_its_gradients_are_those_of_the_equation(texts_at_a_time, masked, monkeypatch):
    """The same draws of dropout in a plain implementation, differentiated by torch."""
    torch.manual_seed(0)
    q, k, v = (
        torch.randn(5, 7, 2, 4, dtype=torch.float64).transpose(1, 2).requires_grad_() for _ in range(3)
    )
    mask = torch.ones(5, 1, 7, 7, dtype=torch.bool)
    mask[1, :, :, 4:] = False
    monkeypatch.setattr(dropout, "IN_CACHE", texts_at_a_time * 2 * 7 * 7)
    torch.manual_seed(1)
    got, _ = dropout.cheap_attention(None, q, k, v, mask if masked else None, dropout=0.3, scaling=0.7)

    torch.manual_seed(1)
    sizes = [min(texts_at_a_time, 5 - start) for start in range(0, 5, texts_at_a_time)]
    kept = torch.cat([cheap_dropout(torch.ones(n, 2, 7, 7, dtype=torch.float64), 0.3) for n in sizes])
    scores = q @ k.transpose(2, 3) * 0.7
    if masked:
        scores = scores.masked_fill(~mask, -torch.inf)
    expected = (scores.softmax(dim=-1) * kept @ v).transpose(1, 2)
    torch.testing.assert_close(got, expected, rtol=1e-12, atol=1e-12)
    g = torch.randn_like(expected)
    for a, b in zip(
        torch.autograd.grad(got, (q, k, v), g), torch.autograd.grad(expected, (q, k, v), g), strict=True
    ):
        torch.testing.assert_close(a, b, rtol=1e-11, atol=1e-12)


def test_nothing_of_it_is_saved(tmp_path):
    model = tiny_bert()
    dropout.apply(model)
    model.save_pretrained(tmp_path)
    assert "cheap" not in (tmp_path / "config.json").read_text()
    loaded = AutoModelForSequenceClassification.from_pretrained(tmp_path)
    assert loaded.config._attn_implementation == "sdpa"
