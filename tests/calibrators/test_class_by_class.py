"""Isotonic regression against scikit-learn's calibration, histogram binning against a loop."""

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator

from calibrant.calibrators.histogram_binning import HistogramBinning
from calibrant.calibrators.isotonic import Isotonic
from calibrant.errors import UserError
from calibrant.types import Outputs


def logits(n, classes, seed):
    rng = np.random.default_rng(seed)
    z = 3 * rng.normal(size=(n, classes))
    return z, (softmax(z / 3, axis=1).cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)


class Softmax(ClassifierMixin, BaseEstimator):
    """A classifier whose input is its logits."""

    def fit(self, z, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, z):
        return softmax(z, axis=1)

    def predict(self, z):
        return self.classes_[z.argmax(axis=1)]


@pytest.mark.parametrize("classes", [2, 5])
def test_isotonic_is_what_scikit_learn_does(classes):
    (z, y), (new, _) = logits(400, classes, seed=0), logits(300, classes, seed=1)
    assert len(np.unique(y)) == classes
    theirs = CalibratedClassifierCV(FrozenEstimator(Softmax().fit(z, y)), method="isotonic", ensemble=False)
    expected = theirs.fit(z, y).predict_proba(new)
    np.testing.assert_allclose(Isotonic().fit(Outputs(z), y).probabilities(Outputs(new)), expected, atol=1e-9)


@pytest.mark.parametrize("bins", [1, 7, 15])
def test_histogram_binning_by_a_loop(bins):
    (z, y), (new, _) = logits(200, 3, seed=2), logits(100, 3, seed=3)
    p, q = softmax(z, axis=1), softmax(new, axis=1)
    expected = np.empty_like(q)
    for i in range(len(q)):
        for k in range(3):
            b = next(b for b in range(bins) if b / bins < q[i, k] <= (b + 1) / bins)
            same = [y[j] == k for j in range(len(p)) if b / bins < p[j, k] <= (b + 1) / bins]
            expected[i, k] = sum(same) / len(same) if same else (b + 0.5) / bins
        expected[i] /= expected[i].sum()
    np.testing.assert_allclose(
        HistogramBinning(bins).fit(Outputs(z), y).probabilities(Outputs(new)), expected, atol=1e-12
    )


def test_nothing_seen_of_any_class_is_a_guess():
    fitted = HistogramBinning(bins=2, values=[[0.0, 1.0], [0.0, 1.0], [0.0, 1.0]])
    np.testing.assert_allclose(fitted.probabilities(Outputs([[0.0, 0.0, 0.0]])), 1 / 3)
    np.testing.assert_allclose(fitted.probabilities(Outputs([[9.0, 0.0, 0.0]])), [[1, 0, 0]])


def test_edges_belong_to_the_lower_bin_and_the_ends_are_inside():
    fitted = HistogramBinning(bins=2, values=[[0.2, 0.9], [0.1, 0.8]])
    certain, even = fitted.probabilities(Outputs([[1000.0, 0.0], [0.0, 0.0]]))
    np.testing.assert_allclose(certain, [0.9, 0.1])  # 1 and 0: the last bin and the first
    np.testing.assert_allclose(even, [0.2 / 0.3, 0.1 / 0.3])  # 0.5 is not above 0.5


def test_bins():
    with pytest.raises(UserError, match=r"^`bins` must be at least 1, got 0\.$"):
        HistogramBinning(bins=0)
