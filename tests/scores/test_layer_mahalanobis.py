"""Scores of inner layers: Mahalanobis distances of other features, and of a real model's."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import calibrant
from calibrant.classifier import outputs_of
from calibrant.inference import DeepEnsemble, SinglePass
from calibrant.models import fast
from calibrant.scores import LayerMahalanobis, Mahalanobis, MeanMahalanobis, scores
from calibrant.types import Outputs
from support.encoders import tiny
from support.made_runs import make_run

LAYERS = frozenset({"middle", "layers"})


def said(n, seed, layers=7):
    """Inner layers of texts in three classes, each with classes and spreads of its own."""
    rng = np.random.default_rng(seed)
    means = np.random.default_rng(99).normal(size=(3, layers, 6))
    y = np.arange(n) % 3
    inner = means[y] + rng.normal(size=(n, layers, 6)) * np.linspace(0.2, 2, layers)[:, None]
    inner = inner.astype(np.float32)
    return Outputs(rng.normal(size=(n, 3)), middle=inner[:, layers // 2], layers=inner), y


def of_features(train, y, test):
    """What ``mahalanobis`` says of these features."""
    fitted = Mahalanobis().fit(Outputs(np.zeros((len(y), 3)), train), y)
    return fitted(Outputs(np.zeros((len(test), 3)), test))


@pytest.mark.parametrize(("layers", "middle"), [(2, 1), (3, 1), (7, 3), (13, 6)])
def test_the_middle_layer(layers, middle):
    """Of L layers and the embeddings: the third of six, the sixth of twelve."""
    (train, y), (test, _) = said(90, 0, layers), said(20, 1, layers)
    got = LayerMahalanobis().fit(train, y)(test)
    np.testing.assert_array_equal(got, of_features(train.layers[:, middle], y, test.layers[:, middle]))
    for other in set(range(layers)) - {middle}:
        assert not np.allclose(got, of_features(train.layers[:, other], y, test.layers[:, other]))


def test_the_mean_of_all():
    (train, y), (test, _) = said(90, 0), said(20, 1)
    got = MeanMahalanobis().fit(train, y)(test)
    means = (outputs.layers.astype(np.float64).mean(axis=1) for outputs in (train, test))
    np.testing.assert_allclose(got, of_features(next(means), y, next(means)), rtol=1e-4)


@pytest.mark.parametrize("kind", [LayerMahalanobis, MeanMahalanobis])
def test_the_last_layer_has_no_part_in_it(kind):
    """Features may be there or not."""
    (train, y), (test, _) = said(90, 0), said(20, 1)
    rng = np.random.default_rng(2)
    others = [replace(o, features=rng.normal(size=(len(o), 5))) for o in (train, test)]
    np.testing.assert_array_equal(kind().fit(train, y)(test), kind().fit(others[0], y)(others[1]))


def rows(n, seed):
    rng = np.random.default_rng(seed)
    return [rng.integers(10, 60, size=rng.integers(3, 12)).tolist() for _ in range(n)]


def by_hand(model, texts, pick):
    """The features that ``pick`` makes of (L + 1, h), text by text without padding."""
    found = []
    for row in texts:
        with torch.no_grad():
            states = model.base_model(torch.tensor([row]), output_hidden_states=True).hidden_states
        found.append(pick(np.stack([state[0].mean(dim=0).numpy() for state in states])))
    return np.stack(found)


@pytest.mark.parametrize(
    ("kind", "pick"),
    [(LayerMahalanobis, lambda inner: inner[1]), (MeanMahalanobis, lambda i: i.mean(axis=0))],
)
@pytest.mark.parametrize("family", ["bert", "deberta-v2", "t5"])
def test_of_a_model(family, kind, pick):
    model = tiny(family).eval()
    train, test, y = rows(80, seed=0), rows(9, seed=1), np.arange(80) % 3
    expected = of_features(by_hand(model, train, pick), y, by_hand(model, test, pick))
    fast.apply(model)
    padding = model.config.pad_token_id or 0
    train_said, test_said = (outputs_of(SinglePass(), [model], r, padding, LAYERS) for r in (train, test))
    np.testing.assert_allclose(kind().fit(train_said, y)(test_said), expected, rtol=1e-3)


def test_of_an_ensemble():
    """Members' inner layers stand side by side, as their features do."""
    models = [tiny("bert").eval(), tiny("bert").eval()]
    torch.manual_seed(1)
    for weight in models[1].parameters():
        torch.nn.init.normal_(weight, std=0.1)
    ensemble = outputs_of(DeepEnsemble(members=2), models, rows(80, seed=0), 0, LAYERS)
    assert ensemble.layers.shape == (80, 3, 64)
    np.testing.assert_array_equal(ensemble.middle, ensemble.layers[:, 1])
    assert LayerMahalanobis().fit(ensemble, np.arange(80) % 3)(ensemble).shape == (80,)


def test_a_textcnn_has_its_last_hidden_states_only():
    """They stand for all of its layers, so that scores of inner ones can be had of it, too."""
    needs = LAYERS | {"features"}
    said_of_it = outputs_of(SinglePass(), [tiny("textcnn").eval()], rows(9, seed=0), 0, needs)
    np.testing.assert_array_equal(said_of_it.middle, said_of_it.features)
    np.testing.assert_array_equal(said_of_it.layers, said_of_it.features[:, None])


@pytest.mark.parametrize("family", ["bert", "textcnn"])
def test_every_score_can_be_had_of_every_model(tmp_path, family):
    assert calibrant.load(make_run(tmp_path, family)).usable_scores() == [*scores()]
