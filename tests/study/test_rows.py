"""The two rows that no model has: what they score, and what they leave alone."""

import numpy as np
import pytest

from calibrant.metrics.measure import measure
from calibrant.study.rows import constant, oracle
from calibrant.types import Prediction


def said(classes, right, n=1000, seed=0):
    """Answers of a model that is right in this share of n texts."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(classes, 0.2), size=n)
    labels = np.where(np.arange(n) < right * n, p.argmax(axis=1), (p.argmax(axis=1) + 1) % classes)
    return Prediction(p, labels)


@pytest.mark.parametrize("classes", [10, 20, 77])
@pytest.mark.parametrize("right", [0.5, 0.874])
def test_a_constant_scores_by_its_doubt_alone(classes, right):
    """NBAUCC_0.5 = (1 − 2/K) · 2π/(1 + π), up to the 50 thresholds being 50."""
    test, ood = said(classes, right), said(classes, 0, n=300, seed=1)
    numbers = measure(constant(test), constant(Prediction(ood.probabilities)))
    for group, share in (("misclassification", 1 - right), ("ood", 300 / 1300)):
        expected = (1 - 2 / classes) * 2 * share / (1 + share)
        assert numbers[group]["nbaucc_0.5"] == pytest.approx(expected, abs=1 / 50 if classes == 77 else 1e-9)
        assert numbers[group]["auroc"] == pytest.approx(0.5)
    assert numbers["accuracy"] == pytest.approx(right)
    assert numbers["mean_confidence_test"] == pytest.approx(1 / classes)


def test_on_the_papers_split_a_constant_beats_the_papers_method():
    """20ng-15: 15 classes, 87.4 % right, 1,699 of 7,532 texts unfamiliar; published are 9.10 and 9.69."""
    test, ood = said(15, 0.874, n=5833), said(15, 0, n=1699, seed=1)
    numbers = measure(constant(test), constant(Prediction(ood.probabilities)))
    assert numbers["misclassification"]["nbaucc_0.5"] > 0.19
    assert numbers["ood"]["nbaucc_0.5"] > 0.31


def test_the_oracle_finds_every_mistake_and_is_not_asked_for_more():
    test, ood = said(10, 0.8), said(10, 0, n=300, seed=1)
    numbers = measure(oracle(test), oracle(Prediction(ood.probabilities)))
    assert numbers["accuracy"] == pytest.approx(0.8)
    assert numbers["misclassification"]["auroc"] == 1
    assert numbers["misclassification"]["nbaucc_0.5"] == pytest.approx(1 - 2 / 10)
    assert numbers["ece"] == pytest.approx((1 - 0.8) / 10, abs=1e-6)
    assert numbers["mean_confidence_ood"] == pytest.approx(0.1)


def test_labels_and_probabilities_stay_what_they_are():
    test = said(7, 0.6)
    for row in (constant, oracle):
        answered = row(test)
        np.testing.assert_array_equal(answered.predicted, test.predicted)
        np.testing.assert_allclose(answered.probabilities.sum(axis=1), 1)
