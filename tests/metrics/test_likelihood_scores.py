"""NLL and Brier score: the two that see the whole distribution."""

import math

import numpy as np
import pytest
from sklearn.metrics import brier_score_loss, log_loss

from calibrant.metrics import brier_score, negative_log_likelihood

RNG = np.random.default_rng(0)
P = RNG.dirichlet(np.ones(4), size=300)
Y = RNG.integers(4, size=300)


def test_nll_hand_computed():
    expected = -(math.log(0.7) + math.log(0.25)) / 2
    assert negative_log_likelihood([[0.7, 0.3], [0.75, 0.25]], [0, 1]) == pytest.approx(expected)


def test_nll_agrees_with_scikit_learn():
    assert negative_log_likelihood(P, Y) == pytest.approx(log_loss(Y, P, labels=range(4)))


@pytest.mark.parametrize(("dtype", "nats"), [(np.float32, 103.28), (np.float64, 744.44)])
def test_nll_of_the_impossible_is_finite(dtype, nats):
    assert negative_log_likelihood(np.array([[1, 0]], dtype=dtype), [1]) == pytest.approx(nats, abs=0.01)


def test_nll_does_not_clip_what_a_float_can_hold():
    assert negative_log_likelihood([[1.0, 1e-300]], [1]) == pytest.approx(300 * math.log(10))


def test_nll_of_certainty_is_a_plain_zero():
    assert str(negative_log_likelihood([[1.0, 0.0]], [0])) == "0.0"


def test_brier_hand_computed():
    # (0.3² + 0.2² + 0.1²) and, wrong, (0.7² + 0.8² + 0.1²)
    p = [[0.7, 0.2, 0.1], [0.7, 0.2, 0.1]]
    assert brier_score(p, [0, 1]) == pytest.approx((0.14 + 1.14) / 2)


def test_brier_agrees_with_a_loop_and_with_scikit_learn():
    by_loop = np.mean([sum((P[i, k] - (k == Y[i])) ** 2 for k in range(P.shape[1])) for i in range(len(Y))])
    assert brier_score(P, Y) == pytest.approx(by_loop)
    assert brier_score(P, Y) == pytest.approx(brier_score_loss(Y, P, labels=range(4), scale_by_half=False))


def test_brier_extremes():
    assert brier_score([[1.0, 0.0]], [0]) == 0.0
    assert brier_score([[1.0, 0.0]], [1]) == 2.0


def test_brier_of_float32_is_summed_in_double():
    assert brier_score(P.astype(np.float32), Y) == pytest.approx(brier_score(P, Y), abs=1e-6)
