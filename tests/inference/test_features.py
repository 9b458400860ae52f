"""Logits and features of one pass, by every way to predict and of every family."""

import numpy as np
import pytest
import torch

from calibrant.inference import inferences
from calibrant.inference.ensemble import DeepEnsemble
from calibrant.inference.mc_dropout import MCDropout
from calibrant.inference.single import SinglePass
from calibrant.models.split import SplitModel
from calibrant.prediction import predict_logits, predict_logits_and_features
from conftest import tiny_bert
from families import FAMILIES, tiny

ROWS = [[2, 7, 8, 9, 3], [2, 9, 3], [2, 5, 6, 7, 8, 9, 10, 3]]


def own_features(model, row):
    """The mean over the tokens of a text by itself, where nothing is padded."""
    with torch.no_grad():
        return model.eval().base_model(torch.tensor([row])).last_hidden_state[0].mean(dim=0).numpy()


@pytest.mark.parametrize("family", FAMILIES)
def test_both_of_one_pass(family, monkeypatch):
    model = tiny(family).train()
    padding = model.config.pad_token_id or 0
    rows = [[token + 10 for token in row] for row in ROWS]
    expected = predict_logits(SinglePass(), [model], rows, padding)
    passes = []
    encode = SplitModel.encode
    monkeypatch.setattr(SplitModel, "encode", lambda *args: passes.append(1) or encode(*args))
    logits, features = predict_logits_and_features(SinglePass(), [model], rows, padding)
    assert len(passes) == 1
    np.testing.assert_allclose(logits, expected, atol=1e-5)
    np.testing.assert_allclose(features, [own_features(model, row) for row in rows], atol=1e-5)
    assert not any(module.training for module in model.modules())


def members():
    models = [tiny_bert() for _ in range(2)]
    torch.manual_seed(1)
    for weight in models[1].parameters():
        torch.nn.init.normal_(weight, std=0.1)
    return models


def test_members_stand_side_by_side():
    models = members()
    logits, features = predict_logits_and_features(DeepEnsemble(members=2), models, ROWS, 0)
    np.testing.assert_allclose(logits, predict_logits(DeepEnsemble(members=2), models, ROWS, 0), atol=1e-5)
    expected = [np.concatenate([own_features(model, row) for model in models]) for row in ROWS]
    np.testing.assert_allclose(features, expected, atol=1e-5)


def test_dropout_is_off_for_features_and_on_for_logits():
    model = tiny_bert(dropout=0.2)
    logits, features = predict_logits_and_features(MCDropout(passes=3), [model], ROWS, 0)
    np.testing.assert_array_equal(logits, predict_logits(MCDropout(passes=3), [model], ROWS, 0))
    np.testing.assert_allclose(features, [own_features(model, row) for row in ROWS], atol=1e-5)


def test_what_averages_says_so():
    """``averages`` is true just where the exponentials of the logits sum to 1."""
    for name, inference in inferences().items():
        models = members() if name == "ensemble" else [tiny_bert()]
        total = np.exp(predict_logits(inference(), models, ROWS, 0)).sum(axis=1)
        assert np.allclose(total, 1, atol=1e-5) == inference.averages


def test_no_text_gives_no_row():
    logits, features = predict_logits_and_features(SinglePass(), [tiny_bert()], [], 0)
    assert (logits.shape, len(features)) == ((0, 3), 0)
