import warnings

import numpy as np
import pytest
from scipy.special import softmax

from calibrant.calibrators.temperature import COLDEST, HOTTEST, Temperature
from calibrant.metrics.nll import negative_log_likelihood
from calibrant.types import Outputs


@pytest.fixture(scope="module")
def calibrated():
    """Logits whose softmax is the truth: classes are drawn from it. 40 000 texts, 4 classes."""
    rng = np.random.default_rng(0)
    z = rng.normal(scale=2, size=(40_000, 4))
    y = (softmax(z, axis=1).cumsum(axis=1) < rng.random((len(z), 1))).sum(axis=1)
    return z, y


@pytest.mark.parametrize("scale", [0.05, 0.5, 1.0, 3.0, 50.0])
def test_the_scale_of_the_logits_is_recovered(calibrated, scale):
    z, y = calibrated
    found = Temperature().fit(Outputs(scale * z), y).temperature
    assert found == pytest.approx(scale, rel=0.01)
    # and the search itself is far closer than the draw of the classes
    assert found == pytest.approx(scale * Temperature().fit(Outputs(z), y).temperature, rel=1e-6)


def test_it_is_the_best_there_is(calibrated):
    """Against a plain grid of the NLL as the metric computes it."""
    z, y = 5 * calibrated[0][:500], calibrated[1][:500]
    grid = np.exp(np.linspace(np.log(0.5), np.log(50), 2001))
    nll = [negative_log_likelihood(softmax(z / t, axis=1), y) for t in grid]
    assert Temperature().fit(Outputs(z), y).temperature == pytest.approx(grid[np.argmin(nll)], rel=0.003)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_all_right(scale):
    y = np.arange(30) % 3
    z = scale * np.random.default_rng(0).random((30, 3))
    z[np.arange(30), y] += scale
    with pytest.warns(UserWarning, match=r"kept at its bound 0\.01, since .* surer is always better"):
        fitted = Temperature().fit(Outputs(z), y)
    assert fitted.temperature == COLDEST
    assert np.isfinite(fitted.probabilities(Outputs(z))).all()


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_all_wrong(scale):
    y = np.arange(30) % 2
    z = scale * np.random.default_rng(0).random((30, 2))
    z[np.arange(30), y] -= 2 * scale
    with pytest.warns(UserWarning, match=r"kept at its bound 100, since .* no better than a guess"):
        fitted = Temperature().fit(Outputs(z), y)
    assert fitted.temperature == HOTTEST
    assert np.isfinite(fitted.probabilities(Outputs(z))).all()


def test_all_wrong_but_second_best_has_an_optimum():
    """Nothing is right, yet the truth always comes second: a temperature between the bounds is best."""
    y = np.array([1, 2, 0] * 10)
    z = np.array([[4.0, 3.0, -5.0], [-5.0, 4.0, 3.0], [3.0, -5.0, 4.0]] * 10)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = Temperature().fit(Outputs(z), y).temperature
    nll = [negative_log_likelihood(softmax(z / t, axis=1), y) for t in (found / 1.01, found, found * 1.01)]
    assert nll[1] == min(nll)
    assert COLDEST < found < HOTTEST


def test_logits_that_say_nothing():
    with pytest.warns(UserWarning, match="kept at its bound"):
        fitted = Temperature().fit(Outputs(np.zeros((4, 3))), [0, 1, 2, 0])
    np.testing.assert_allclose(fitted.probabilities(Outputs(np.zeros((1, 3)))), 1 / 3)


@pytest.mark.parametrize("temperature", [COLDEST, 0.05, 1.0, 7.3, HOTTEST])
def test_accuracy_never_changes(calibrated, temperature):
    z, _ = calibrated
    p = Temperature(temperature).probabilities(Outputs(z))
    np.testing.assert_array_equal(p.argmax(axis=1), z.argmax(axis=1))


def test_logits_that_look_like_probabilities_are_logits():
    rng = np.random.default_rng(1)
    z = softmax(rng.normal(size=(200, 3)), axis=1)
    y = np.where(rng.random(200) < 0.8, z.argmax(axis=1), rng.integers(0, 3, 200))
    fitted = Temperature().fit(Outputs(z), y)
    shifted = Temperature().fit(Outputs(z + 5), y)  # a constant is nothing to logits
    assert fitted.temperature == pytest.approx(shifted.temperature, rel=1e-6)
