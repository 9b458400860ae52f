"""The linear probe, against scikit-learn, and as the head of a model."""

import numpy as np
import pytest
import torch
from scipy.special import log_softmax, softmax
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, cross_val_predict

from calibrant.calibrators.temperature import refined_nll
from calibrant.classifier import outputs_of
from calibrant.data.encode import encode
from calibrant.inference.single import SinglePass
from calibrant.models import probe
from calibrant.models.pretrained import load_classifier
from calibrant.models.probe import ABSENT, HEADS, STRENGTHS, fit_probe, head_layer, unseen_logits
from calibrant.training import start_head
from support.encoders import FAMILIES, tiny
from support.tiny import WORDS, corpus, tiny_tokenizer


def drawn(n, classes, width=6, seed=0):
    """Features around a point for each class, far from 0 and of a scale of their own."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % classes
    points = rng.normal(size=(classes, width))
    return 40 + 5 * (points[y] + rng.normal(size=(n, width))), y


def logits_of(found, f):
    return f @ found.weight.T + found.bias


def by_scikit_learn(f, y, strength):
    """Probabilities of each class that there is, of features less their mean and over one common scale."""
    standard = (f - f.mean(axis=0)) / f.std()
    return LogisticRegression(C=strength, max_iter=500, tol=1e-3).fit(standard, y).predict_proba(standard)


@pytest.mark.parametrize("classes", [2, 3, 7])
def test_it_is_scikit_learns_logistic_regression(classes):
    f, y = drawn(90, classes)
    found = fit_probe(f, y, classes)
    assert found.weight.shape == (classes, 6)
    assert found.bias.shape == (classes,)
    assert found.strength in STRENGTHS
    expected = by_scikit_learn(f, y, found.strength)
    np.testing.assert_allclose(softmax(logits_of(found, f), axis=1), expected, atol=1e-9)


@pytest.mark.parametrize("classes", [2, 3])
def test_class_weights_are_scikit_learns(classes):
    f, y = drawn(90, classes)
    kept = (y == 0) | (np.arange(90) < 30)  # the others are rare
    f, y = f[kept], y[kept]
    found = fit_probe(f, y, classes, len(y) / (classes * np.bincount(y)))
    standard = (f - f.mean(axis=0)) / f.std()
    reference = LogisticRegression(C=found.strength, class_weight="balanced", max_iter=500, tol=1e-3)
    expected = reference.fit(standard, y).predict_proba(standard)
    np.testing.assert_allclose(softmax(logits_of(found, f), axis=1), expected, atol=1e-9)
    assert np.abs(by_scikit_learn(f, y, found.strength) - expected).max() > 0.01


@pytest.mark.parametrize("classes", [2, 3])
def test_it_is_where_the_penalised_likelihood_is_highest(classes, monkeypatch):
    """By the formula: no step away from it, in any direction, has a lower loss.

    Of two classes scikit-learn penalises the difference of their weights, w: with ± w/2 each, ‖W‖² = ‖w‖²/2.
    """
    monkeypatch.setattr(probe, "STRENGTHS", (0.1,))
    f, y = drawn(90, classes)
    found = fit_probe(f, y, classes)
    scale = f.std()
    standard = (f - f.mean(axis=0)) / scale
    penalty = 2 if classes == 2 else 1

    def loss(w, b):
        nll = -log_softmax(standard @ w.T + b, axis=1)[np.arange(len(y)), y].sum()
        return nll + penalty * (w**2).sum() / (2 * 0.1)

    w, b = found.weight * scale, found.bias + found.weight @ f.mean(axis=0)
    rng = np.random.default_rng(1)
    for _ in range(50):
        dw, db = 0.05 * rng.normal(size=w.shape), 0.05 * rng.normal(size=b.shape)
        assert loss(w + dw, b + db) > loss(w, b)


def test_the_scale_and_place_of_the_features_make_no_difference():
    f, y = drawn(60, 3)
    expected = logits_of(fit_probe(f, y, 3), f)
    for other in (1e-3 * f, f - 1000, 50 * f + 7):
        np.testing.assert_allclose(logits_of(fit_probe(other, y, 3), other), expected, atol=1e-6)


def test_the_strength_is_that_of_the_lowest_loss_on_texts_left_out():
    from sklearn.model_selection import KFold

    f, y = drawn(120, 4, seed=3)
    standard = (f - f.mean(axis=0)) / f.std()
    losses = []
    for strength in STRENGTHS:
        z = np.empty((120, 4))
        for kept, left in KFold(3, shuffle=True, random_state=0).split(standard):
            fitted = LogisticRegression(C=strength, max_iter=500, tol=1e-3).fit(standard[kept], y[kept])
            z[left] = fitted.decision_function(standard[left])
        losses.append(refined_nll(z, y))
    assert fit_probe(f, y, 4).strength == STRENGTHS[int(np.argmin(losses))]


def test_features_of_noise_get_the_strongest_penalty():
    rng = np.random.default_rng(0)
    found = fit_probe(rng.normal(size=(200, 30)), rng.integers(0, 3, 200), 3)
    assert found.strength == min(STRENGTHS)


def test_a_class_of_which_there_is_no_text_is_hardly_ever_answered():
    f, y = drawn(60, 3)
    y[y == 1] = 3  # of five classes, 1 and 4 have none
    found = fit_probe(f, y, 5)
    p = softmax(logits_of(found, f), axis=1)
    assert np.isfinite(p).all()
    assert p[:, [1, 4]].max() < 1e-2
    np.testing.assert_array_equal(found.bias[[1, 4]], ABSENT)
    np.testing.assert_allclose(
        p[:, [0, 2, 3]] / p[:, [0, 2, 3]].sum(axis=1, keepdims=True),
        by_scikit_learn(f, y, found.strength),
        atol=1e-9,
    )


def test_a_class_that_a_fold_lacks():
    """A single text of it: whichever fold leaves it out has not seen the class."""
    f, y = drawn(40, 2)
    y[7] = 2
    found = fit_probe(f, y, 3)
    assert np.isfinite(found.weight).all()
    np.testing.assert_allclose(
        softmax(logits_of(found, f), axis=1), by_scikit_learn(f, y, found.strength), atol=1e-9
    )


@pytest.mark.parametrize("classes", [2, 3, 5, 6, 20, 150])
def test_one_text_of_each_class(classes):
    """Whatever is left out, its class has no other text."""
    f = np.random.default_rng(0).normal(size=(classes, 8))
    found = fit_probe(f, np.arange(classes), classes)
    assert np.isfinite(found.weight).all()
    assert np.isfinite(found.bias).all()
    if classes <= 8:  # more classes than dimensions cannot all be told apart
        assert (logits_of(found, f).argmax(axis=1) == np.arange(classes)).all()


def test_folds_with_a_single_class():
    """Six texts, five of one class: two folds of three are fitted where there may be one class only."""
    f = np.random.default_rng(0).normal(size=(6, 4))
    found = fit_probe(f, np.array([0, 0, 0, 0, 0, 1]), 2)
    assert np.isfinite(logits_of(found, f)).all()


def test_texts_that_are_all_alike():
    found = fit_probe(np.ones((8, 4)), np.arange(8) % 2, 2)
    np.testing.assert_allclose(softmax(logits_of(found, np.ones((1, 4))), axis=1), 0.5, atol=1e-6)


# as a head


@pytest.mark.parametrize("classes", [3, 7])
def test_its_own_texts_are_answered_as_scikit_learn_cross_validates(classes):
    f, y = drawn(90, classes)
    z, known = unseen_logits(f, y, classes)
    model = LogisticRegression(C=fit_probe(f, y, classes).strength, max_iter=500, tol=1e-3)
    folds = KFold(HEADS, shuffle=True, random_state=0)
    standard = (f - f.mean(axis=0)) / f.std()
    expected = cross_val_predict(model, standard, y, cv=folds, method="predict_proba")
    np.testing.assert_allclose(softmax(z, axis=1), expected, atol=1e-9)
    assert known.all()


def test_noise_that_the_probe_learns_by_heart_is_unseen_to_the_other_heads():
    rng = np.random.default_rng(0)
    f, y = rng.normal(size=(60, 100)), np.arange(60) % 3
    z, _ = unseen_logits(f, y, 3)
    assert (logits_of(fit_probe(f, y, 3), f).argmax(axis=1) == y).mean() > 0.9
    assert (z.argmax(axis=1) == y).mean() < 0.6  # a guess: 0.33


def test_the_only_text_of_a_class_tells_nothing():
    f, y = drawn(30, 3)
    y = np.append(y[:-1], 3)  # the last text is all there is of a fourth class
    z, known = unseen_logits(f, y, 4)
    assert known.tolist() == [True] * 29 + [False]
    assert np.isfinite(z).all()
    assert unseen_logits(f[:2], np.array([0, 1]), 2)[1].tolist() == [False, False]


def encoded(n=60, seed=0):
    rows = corpus(n, seed)
    ids = encode(tiny_tokenizer(), [text for text, _ in rows], 32)
    return ids, np.array([list(WORDS).index(label) for _, label in rows])


def logits(model, rows):
    """One text at a time, without padding."""
    with torch.no_grad():
        return np.concatenate([model(torch.tensor([row]), torch.ones(1, len(row))).logits for row in rows])


def asked(model, rows):
    """What it says of them, and what its last layer reads."""
    return outputs_of(SinglePass(), [model], rows, model.config.pad_token_id or 0, frozenset({"head"}))


@pytest.mark.parametrize("pooling", ["first", "mean", "first+mean"])
def test_the_models_logits_are_those_of_the_probe(model_dir, pooling):
    model = load_classifier(str(model_dir), tuple(WORDS), pooling=pooling)[0].eval()
    encoder = {name: weight.clone() for name, weight in model.encoder.state_dict().items()}
    rows, y = encoded()
    said = start_head(model.classifier, asked(model, rows), y)
    for name, weight in model.encoder.state_dict().items():
        assert torch.equal(weight, encoder[name]), name
    np.testing.assert_allclose(logits(model, rows), said.logits, atol=1e-4)
    f = asked(model, rows).head
    expected = fit_probe(f, y, 3)
    np.testing.assert_allclose(model.classifier.weight.detach(), expected.weight, rtol=1e-6, atol=1e-7)
    np.testing.assert_array_equal(said.logits, logits_of(expected, f))
    right = (logits(model, rows).argmax(axis=1) == y).mean()
    assert right > (0.35 if pooling == "first" else 0.8)  # the first token of a random encoder says little


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_any_architectures_own_head_can_be_started(family):
    """Its last layer gets the probe of what that layer reads, whatever comes before it."""
    model = tiny(family).eval()
    rows, y = encoded(30)
    before = asked(model, rows)
    said = start_head(head_layer(model, rows, model.config.pad_token_id or 0), before, y)
    np.testing.assert_array_equal(said.logits, logits_of(fit_probe(before.head, y, 3), before.head))
    np.testing.assert_allclose(logits(model, rows), said.logits, atol=1e-3)
