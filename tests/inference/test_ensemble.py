import numpy as np
import pytest
import torch

from calibrant.classifier import Classifier, outputs_of
from calibrant.errors import UserError
from calibrant.inference.ensemble import DeepEnsemble
from support.tiny import tiny_bert, tiny_tokenizer


def members(n):
    models = [tiny_bert() for _ in range(n)]
    for i, model in enumerate(models):
        torch.manual_seed(i)
        torch.nn.init.normal_(model.classifier.weight)
    return [model.eval() for model in models]


def predict_logits(models, rows):
    return outputs_of(DeepEnsemble(members=len(models)), models, rows, 0).logits


def test_the_mean_of_the_members_probabilities():
    models = members(3)
    rows = [[2, 7, 8, 3], [2, 9, 3]]
    got = np.exp(predict_logits(models, rows))
    expected = 0
    for model in models:
        for_each = [model(torch.tensor([row])).logits.softmax(dim=-1) for row in rows]
        expected = expected + torch.cat(for_each).detach().numpy() / 3
    np.testing.assert_allclose(got, expected, atol=1e-6)


def test_dropout_is_off():
    models = members(2)
    expected = predict_logits(models, [[2, 7, 3]])
    for model in models:
        model.train()
    asked = Classifier(models, tiny_tokenizer(), ("a", "b", "c"), 8, DeepEnsemble(members=2))
    assert not any(module.training for model in models for module in model.modules())
    first, again = (predict_logits(models, [[2, 7, 3]]) for _ in range(2))
    np.testing.assert_array_equal(first, again)
    np.testing.assert_allclose(first, expected, atol=1e-6)
    np.testing.assert_array_equal(*(asked.outputs(["my refund"]).logits for _ in range(2)))


def test_certain_members_give_finite_logarithms():
    models = members(2)
    for sign, model in zip((1, -1), models, strict=True):
        model.classifier.bias.data = sign * torch.tensor([1e4, 0.0, -1e4])
    log_p = predict_logits(models, [[2, 7, 3]])
    assert np.isfinite(log_p).all()
    np.testing.assert_allclose(np.exp(log_p), [[0.5, 0, 0.5]], atol=1e-6)


def test_members():
    with pytest.raises(UserError, match=r"^`members` must be at least 2, got 1\.$"):
        DeepEnsemble(members=1)
