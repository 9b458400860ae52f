"""Every score against an implementation that is not ours, to 1e-5."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from scipy.special import logsumexp, softmax
from scipy.stats import entropy
from sklearn.covariance import EmpiricalCovariance, LedoitWolf
from sklearn.neighbors import NearestNeighbors

from calibrant.errors import UserError
from calibrant.scores import scores
from calibrant.scores.gaussian import shrunk_covariance
from calibrant.scores.knn import AT_ONCE, K
from calibrant.types import Outputs

CLASSES, WIDTH = 5, 24


def sample(n, seed):
    """Features of unequal spread about class means, their classes, and logits."""
    rng = np.random.default_rng(seed)
    means = 3 * np.random.default_rng(99).normal(size=(CLASSES, WIDTH))
    labels = np.arange(n) % CLASSES
    features = means[labels] + rng.normal(size=(n, WIDTH)) * np.linspace(0.1, 3, WIDTH)
    logits = 4 * rng.normal(size=(n, CLASSES))
    outputs = Outputs(logits, features.astype(np.float32))
    return outputs, labels


TEST = sample(80, seed=1)[0]
PROBABILITIES = softmax(TEST.logits, axis=1)


def score(name, train_texts=300):
    kind = scores()[name]()
    if hasattr(kind, "fit"):
        train, labels = sample(train_texts, seed=0)
        kind = kind.fit(train, labels)
    return kind(TEST)


def residuals(n=300):
    train, labels = sample(n, seed=0)
    features = train.features.astype(np.float64)
    means = np.stack([features[labels == k].mean(axis=0) for k in range(CLASSES)])
    return features, means, features - means[labels]


def close(got, expected):
    assert got.dtype == np.float64
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)


def test_max_probability():
    close(score("max-probability"), 1 - np.sort(PROBABILITIES)[:, -1])


def test_entropy():
    close(score("entropy"), entropy(PROBABILITIES, axis=1))
    certain = Outputs(np.zeros((1, 3)), calibrated=np.array([[1.0, 0.0, 0.0]]))
    assert scores()["entropy"]()(certain) == [0]


def test_margin():
    ordered = np.sort(PROBABILITIES)
    close(score("margin"), 1 - ordered[:, -1] + ordered[:, -2])


def test_max_logit():
    close(score("max-logit"), [-max(row) for row in TEST.logits.tolist()])


def test_energy():
    close(score("energy"), [-logsumexp(row) for row in TEST.logits])
    huge = Outputs(np.array([[1e4, 0.0]]))
    assert scores()["energy"]()(huge) == [-1e4]


@pytest.mark.parametrize("n", [15, 40, 300])  # fewer texts than dimensions, about as many, more
def test_covariance_is_ledoit_and_wolfs(n):
    centred = residuals(n)[2]
    expected = LedoitWolf(assume_centered=True).fit(centred)
    np.testing.assert_allclose(shrunk_covariance(centred), expected.covariance_, rtol=1e-9, atol=1e-12)


def empirical(centred):
    return EmpiricalCovariance(assume_centered=True).fit(centred).covariance_


def shrunk(centred):
    return LedoitWolf(assume_centered=True).fit(centred).covariance_


def mahalanobis(means, covariance):
    features = TEST.features.astype(np.float64)
    return cdist(features, means, "mahalanobis", VI=np.linalg.inv(covariance)) ** 2


@pytest.mark.parametrize("n", [15, 300])
def test_mahalanobis(n):
    _, means, centred = residuals(n)
    close(score("mahalanobis", n), mahalanobis(means, shrunk(centred)).min(axis=1))


@pytest.mark.parametrize("n", [15, 300])
def test_relative_mahalanobis(n):
    features, means, centred = residuals(n)
    mean = features.mean(axis=0, keepdims=True)
    between = empirical(features - mean) - empirical(centred)  # of total and within, what is left
    to_all = mahalanobis(mean, shrunk(centred) + between)[:, 0]
    close(score("relative-mahalanobis", n), mahalanobis(means, shrunk(centred)).min(axis=1) - to_all)


def test_of_many_texts_it_is_the_definition_without_shrinkage():
    n = 60_000
    features, means, centred = residuals(n)
    mean = features.mean(axis=0, keepdims=True)
    to_class = mahalanobis(means, empirical(centred)).min(axis=1)
    np.testing.assert_allclose(score("mahalanobis", n), to_class, rtol=0.05)
    to_all = mahalanobis(mean, empirical(features - mean))[:, 0]
    relative = score("relative-mahalanobis", n)
    assert np.corrcoef(relative, to_class - to_all)[0, 1] > 0.99


def test_one_text_a_class_has_no_spread():
    with pytest.raises(UserError, match=r"the same features, so that .* two different texts or more\.$"):
        score("mahalanobis", CLASSES)


def normalised(features):
    return features / np.linalg.norm(features.astype(np.float64), axis=1, keepdims=True)


def neighbours(n, k):
    nearest = NearestNeighbors(n_neighbors=k, algorithm="brute").fit(
        normalised(sample(n, seed=0)[0].features)
    )
    return nearest.kneighbors(normalised(TEST.features))[0][:, -1]


@pytest.mark.parametrize("n", [K + 1, 300])
def test_nearest_neighbours(n):
    close(score("knn", n), neighbours(n, K))


def test_fewer_texts_than_neighbours():
    close(score("knn", K - 3), neighbours(K - 3, K - 3))


def test_neighbours_in_several_parts(monkeypatch):
    whole = score("knn")
    monkeypatch.setattr("calibrant.scores.knn.AT_ONCE", 300 * 7)  # seven texts at once, of 80
    np.testing.assert_allclose(score("knn"), whole, rtol=1e-12)
    monkeypatch.setattr("calibrant.scores.knn.AT_ONCE", 1)
    np.testing.assert_allclose(score("knn"), whole, rtol=1e-12)
    assert 300 * len(TEST) < AT_ONCE  # else the first was in parts, too


def test_a_text_without_features_has_a_finite_distance():
    """A TextCNN's may be all 0."""
    train, labels = sample(50, seed=0)
    knn = scores()["knn"]().fit(train, labels)
    nothing = Outputs(np.zeros((1, 3)), np.zeros((1, WIDTH), dtype=np.float32))
    np.testing.assert_allclose(knn(nothing), 1, atol=1e-6)
