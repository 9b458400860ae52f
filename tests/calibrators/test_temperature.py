import warnings

import numpy as np
import pytest
from scipy.special import log_softmax, softmax

from calibrant.calibrators.temperature import COLDEST, HOTTEST, Temperature, refined_nll
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
    """Against a plain grid of the cross-entropy to the smoothed targets."""
    z, y = 5 * calibrated[0][:500], calibrated[1][:500]
    grid = np.exp(np.linspace(np.log(0.5), np.log(50), 2001))
    targets = (1 - 1 / 2004) * np.eye(4)[y] + 1 / 2004 / 4
    loss = [-(targets * log_softmax(z / t, axis=1)).sum(axis=1).mean() for t in grid]
    assert Temperature().fit(Outputs(z), y).temperature == pytest.approx(grid[np.argmin(loss)], rel=0.003)


def test_of_many_texts_it_has_the_lowest_nll_there_is(calibrated):
    """Of all 40 000, against a grid of the NLL as the metric computes it: the smoothing is not seen."""
    z, y = 5 * calibrated[0], calibrated[1]
    grid = np.exp(np.linspace(np.log(4), np.log(6), 177))
    nll = [negative_log_likelihood(softmax(z / t, axis=1), y) for t in grid]
    assert Temperature().fit(Outputs(z), y).temperature == pytest.approx(grid[np.argmin(nll)], rel=0.003)


def all_right(n, scale=1.0):
    """Of each text the true class is the largest by far."""
    y = np.arange(n) % 3
    z = np.random.default_rng(0).random((n, 3))
    z[np.arange(n), y] += 1
    return scale * z, y


@pytest.mark.parametrize("n", [1, 3, 30, 1000])
def test_texts_that_are_all_right_do_not_make_it_certain(n):
    """Where all margins are 1, p of the true class is its smoothed target q: T = 1 / log(2·q / (1 − q))."""
    y = np.arange(n) % 3
    q = 1 - 2 / 3 / (4 * n + 4)
    found = Temperature().fit(Outputs(np.eye(3)[y]), y)
    assert found.temperature == pytest.approx(1 / np.log(2 * q / (1 - q)), rel=1e-6)
    np.testing.assert_allclose(found.probabilities(Outputs(np.eye(3)[y])).max(axis=1), q)


def test_texts_that_are_all_right_at_any_scale():
    once = Temperature().fit(Outputs(all_right(30)[0]), all_right(30)[1]).temperature
    for scale in (0.1, 10.0, 100.0):
        z, y = all_right(30, scale)
        assert Temperature().fit(Outputs(z), y).temperature == pytest.approx(scale * once, rel=1e-6)


@pytest.mark.parametrize(
    ("scale", "bound", "why"),
    [(1e-3, COLDEST, "surer is always better"), (1e4, HOTTEST, "less sure is always better .* huge")],
)
def test_all_right_and_out_of_reach(scale, bound, why):
    z, y = all_right(30, scale)
    with pytest.warns(UserWarning, match=rf"kept at its bound {bound:g}, since on these dev texts {why}"):
        fitted = Temperature().fit(Outputs(z), y)
    assert fitted.temperature == bound
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
    y = np.array([1, 2, 0] * 1000)
    z = np.array([[4.0, 3.0, -5.0], [-5.0, 4.0, 3.0], [3.0, -5.0, 4.0]] * 1000)
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


def test_what_no_temperature_mends():
    """min_T NLL: the same at every scale of the logits, and no more than the NLL as it is."""
    rng = np.random.default_rng(2)
    z = 3 * rng.normal(size=(2000, 3))
    y = (softmax(z, axis=1).cumsum(axis=1) < rng.random((2000, 1))).sum(axis=1)
    found = [refined_nll(scale * z, y) for scale in (0.1, 1.0, 7.0)]
    np.testing.assert_allclose(found, found[0], rtol=1e-6)
    assert found[1] <= negative_log_likelihood(softmax(z, axis=1), y) * (1 + 1e-4)
    assert refined_nll(7 * z, y) < negative_log_likelihood(softmax(7 * z, axis=1), y)


def test_what_no_temperature_mends_is_told_without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert refined_nll(np.zeros((4, 2)), np.array([0, 1, 0, 1])) == pytest.approx(np.log(2))
