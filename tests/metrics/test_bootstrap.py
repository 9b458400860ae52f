import math

import numpy as np
import pytest

from calibrant.metrics import reliability
from calibrant.metrics.bootstrap import Noise, accuracy_bands, flat, noise
from calibrant.metrics.measure import measure
from calibrant.types import Prediction


def two_classes(confidence, correct, answered=None):
    c = np.asarray(confidence, dtype=float)
    answered = None if answered is None else np.asarray(answered)
    return Prediction(np.stack([c, 1 - c], axis=1), np.where(correct, 0, 1), answered=answered)


def test_numbers_lie_by_group_and_name():
    measured = {"accuracy": 0.5, "ood": None, "misclassification": {"auroc": None, "aupr": 0.25}}
    numbers = flat(measured)
    assert numbers["", "accuracy"] == 0.5
    assert numbers["misclassification", "aupr"] == 0.25
    assert math.isnan(numbers["misclassification", "auroc"])
    assert math.isnan(numbers["", "ood"])


def test_an_interval_is_the_value_plus_the_quantiles_of_the_deviations():
    # 41 draws, evenly from −20 to 20: the 2.5 % quantile is the second, −19.
    found = Noise({("", "x"): np.array([np.arange(-20.0, 21), np.zeros(41)])})
    assert found.interval(("", "x"), 0, 100.0) == (81.0, 119.0)
    assert found.interval(("", "x"), 0, 5.0) == (0.0, 24.0)  # no metric goes below 0
    assert found.difference(("", "x"), 0, 1, -3.0) == (-22.0, 16.0)  # a difference may


def test_the_spread_of_an_accuracy_is_the_binomial_one():
    test = two_classes([0.9] * 400, [True] * 320 + [False] * 80)
    low, high = noise([test], [None], draws=400).interval(("", "accuracy"), 0, 0.8)
    sigma = math.sqrt(0.8 * 0.2 / 400)
    assert (high - low) / 2 == pytest.approx(1.96 * sigma, rel=0.2)
    assert low < 0.8 < high


def test_fewer_texts_a_draw_give_the_same_spread():
    rng = np.random.default_rng(0)
    c = rng.uniform(0.5, 1, size=2000)
    test = two_classes(c, rng.random(2000) < c)
    key = "misclassification", "auroc"
    wide, narrow = (
        noise([test], [None], draws=200, most=most).deviations[key][0].std() for most in (2000, 300)
    )
    assert narrow == pytest.approx(wide, rel=0.25)


def test_models_share_their_draws_so_that_a_difference_is_paired():
    rng = np.random.default_rng(0)
    right = rng.random(300) < 0.7
    one, two = two_classes([0.8] * 300, right), two_classes([0.6] * 300, right)
    found = noise([one, two], [None, None], draws=50)
    low, high = found.interval(("", "accuracy"), 0, 0.7)
    assert high - low > 0.05
    assert found.difference(("", "accuracy"), 0, 1, 0.0) == (0.0, 0.0)  # right on the same texts


def test_the_interval_of_a_calibrated_models_ece_holds_the_ece():
    """The ECE of a resample is larger than that of the sample: plain quantiles would leave it out."""
    rng = np.random.default_rng(0)
    c = rng.uniform(0.5, 1, size=300)
    test = two_classes(c, rng.random(300) < c)
    ece = measure(test)["ece"]
    low, high = noise([test], [None], draws=100).interval(("", "ece"), 0, ece)
    assert low < ece < high


def test_what_no_draw_defines_has_no_interval():
    test = two_classes([0.9, 0.8], [True, True])
    found = noise([test], [None], draws=5)
    assert found.interval(("misclassification", "auroc"), 0, 0.5) is None
    assert found.interval(("", "accuracy"), 0, 1.0) == (1.0, 1.0)


def test_unfamiliar_text_and_the_rule_are_drawn_too():
    test = two_classes([0.9] * 60, [True] * 50 + [False] * 10, answered=[True, False] * 30)
    ood = two_classes(np.linspace(0.5, 1, 40), [True] * 40, answered=[True] * 10 + [False] * 30)
    told = []
    found = noise([test], [ood], draws=20, progress=lambda *step: told.append(step))
    for key in (("ood", "auroc"), ("abstention", "coverage"), ("abstention", "ood_answered")):
        assert found.deviations[key].shape == (1, 20)
        assert found.deviations[key].std() > 0
    assert told[-1] == ("intervals", 20, 20)


def test_a_model_that_was_not_asked_about_unfamiliar_text():
    test = two_classes([0.9, 0.6] * 10, [True, False] * 10)
    found = noise([test, test], [None, two_classes([0.7] * 5, [True] * 5)], draws=5)
    assert found.interval(("ood", "auroc"), 0, 0.5) is None
    assert found.interval(("ood", "auroc"), 1, 0.5) is not None


def test_bands_of_bins():
    c = [0.3] * 4 + [0.9] * 200
    correct = [True] * 4 + [True] * 150 + [False] * 50
    low, high = accuracy_bands(reliability(c, correct, bins=4))
    assert np.isnan([low[0], high[0], low[2], high[2]]).all()  # empty
    assert (low[1], high[1]) == (1, 1)  # all right, in every draw
    sigma = math.sqrt(0.75 * 0.25 / 200)
    assert (low[3], high[3]) == pytest.approx((0.75 - 1.96 * sigma, 0.75 + 1.96 * sigma), abs=0.01)


def test_bands_are_those_of_resampling_texts():
    rng = np.random.default_rng(1)
    c = rng.uniform(0.5, 1, size=150)
    correct = rng.random(150) < c
    accuracy = []
    for _ in range(1000):
        drawn = rng.integers(150, size=150)
        accuracy.append(reliability(c[drawn], correct[drawn], bins=4).accuracy)
    expected = np.quantile(np.array(accuracy)[:, 2:], [0.025, 0.975], axis=0)
    found = accuracy_bands(reliability(c, correct, bins=4))
    assert np.array(found)[:, 2:] == pytest.approx(expected, abs=0.03)
