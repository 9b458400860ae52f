"""One training step of an objective on a padded batch, and what a plain reference must agree with."""

import torch

from calibrant.models.fast import first_token
from calibrant.models.split import SplitModel
from calibrant.objectives import CrossEntropy
from calibrant.types import Batch
from support.tiny import tiny_bert

LENGTHS = (8, 6, 3, 7, 5)


def make_batch() -> Batch:
    torch.manual_seed(2)
    ids = torch.randint(5, 64, (5, 8))
    mask = (torch.arange(8) < torch.tensor(LENGTHS).unsqueeze(1)).long()
    return Batch(ids * mask, mask, torch.tensor([0, 1, 2, 1, 0]))


def tiny_model(dropout=0.0):
    """In float64, so that rounding hides no wrong formula; its head scaled up, so that it is sure of some."""
    model = tiny_bert(dropout=dropout).double().train()
    with torch.no_grad():
        model.classifier.weight *= 20
    return model


def own_tokens(x, i):
    """Text i of a batch by itself, without padding: (1, n, …)."""
    return x[i : i + 1, : LENGTHS[i]]


def logits_of(model, x):
    """Of unpadded embeddings, by the model's own forward pass: (1, n, e) → (K,)."""
    return model(inputs_embeds=x, attention_mask=torch.ones(x.shape[:2], dtype=torch.long)).logits[0]


def step(objective, dropout=0.0, seed=3, batch=None):
    """Loss and gradients of the objective."""
    model = tiny_model(dropout)
    first_token.apply(model)  # as while training; what it is compared with is not switched
    batch = make_batch() if batch is None else batch
    torch.manual_seed(seed)
    loss = objective.loss(SplitModel(model), batch)
    return loss, gradients(loss.total, model)


def gradients(total, model):
    model.zero_grad()
    total.backward()
    return {name: weight.grad for name, weight in model.named_parameters()}


def assert_same(got, expected, tolerance=1e-5):
    """(total, gradients) beside (total, gradients)."""
    torch.testing.assert_close(got[0], expected[0], rtol=tolerance, atol=0)
    for name, gradient in expected[1].items():
        torch.testing.assert_close(got[1][name], gradient, rtol=tolerance, atol=1e-9, msg=name)


def assert_is_cross_entropy(objective):
    """To the last bit and with dropout on: not even a random number more is drawn."""
    loss, found = step(objective, dropout=0.1)
    plain, expected = step(CrossEntropy(), dropout=0.1)
    assert torch.equal(loss.total, plain.total)
    assert all(torch.equal(found[name], expected[name]) for name in expected)


def count_passes(monkeypatch, objective):
    passes = []
    encode = SplitModel.encode
    with monkeypatch.context() as patch:
        patch.setattr(SplitModel, "encode", lambda *args: passes.append(1) or encode(*args))
        step(objective)
    return len(passes)
