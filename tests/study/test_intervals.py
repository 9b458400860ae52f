"""Intervals from what cells keep of each text."""

import numpy as np
import pytest

from calibrant.metrics.measure import measure
from calibrant.study.cells import Confidences
from calibrant.study.intervals import intervals, numbers
from calibrant.types import Prediction

CLASSES = 5


def predictions(seed, n=400, m=200, right=0.8, sharpness=3.0):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(CLASSES, 1 / sharpness), size=n + m)
    labels = np.where(rng.random(n) < right, p[:n].argmax(axis=1), rng.integers(CLASSES, size=n))
    return Prediction(p[:n], labels), Prediction(p[n:])


def kept(test, ood):
    true = test.probabilities[np.arange(len(test)), test.labels]
    return Confidences(test.confidence, test.correct, ood.confidence, -np.log(np.maximum(true, 1e-300)))


def test_the_numbers_are_those_that_evaluate_prints():
    test, ood = predictions(0)
    expected, found = measure(test, ood), numbers(kept(test, ood))
    assert len(found) == 5 + 2 * 3
    for (group, name), value in found.items():
        where = expected[group] if group else expected
        assert value == pytest.approx(where["mean_confidence_test" if name == "confidence" else name]), name


def test_intervals_are_as_wide_as_the_standard_error_says():
    found = intervals({"a": [kept(*predictions(0))]}, draws=300)
    accuracy = found.values["a"]["", "accuracy"]
    low, high = found.of("a", ("", "accuracy"))
    assert (high - low) / 2 == pytest.approx(1.96 * np.sqrt(accuracy * (1 - accuracy) / 400), rel=0.15)
    # no narrower where only a part of the texts is drawn at a time
    part = intervals({"a": [kept(*predictions(0))]}, draws=300, most=150)
    assert np.ptp(part.of("a", ("", "accuracy"))) == pytest.approx(high - low, rel=0.25)


def test_seeds_widen_an_interval_and_pairs_narrow_a_difference():
    one = kept(*predictions(0, right=0.6))
    worse = kept(*predictions(0, right=0.57))  # the same texts, and a few more of them wrong
    other = kept(*predictions(3, right=0.9))
    found = intervals({"one": [one], "two": [one, other], "worse": [worse], "same": [one]}, draws=300)
    name = ("", "accuracy")
    assert found.values["two"][name] == pytest.approx((one.correct.mean() + other.correct.mean()) / 2)
    assert np.ptp(found.of("two", name)) > 2 * np.ptp(found.of("one", name))
    d, interval, p = found.difference("one", "worse", name)
    assert d == pytest.approx(one.correct.mean() - worse.correct.mean())
    assert interval[0] < d < interval[1]
    assert np.ptp(interval) < np.ptp(found.of("one", name))
    assert 0 < p < 0.1
    assert found.difference("one", "same", name) == (0, (0, 0), 1)


def test_without_unfamiliar_text():
    test, _ = predictions(0)
    alone = kept(test, Prediction(test.probabilities[:0].reshape(0, CLASSES)))
    found = intervals({"a": [alone]}, draws=10)
    assert not any(group == "ood" for group, _ in found.values["a"])
