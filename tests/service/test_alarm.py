import math
from types import SimpleNamespace

import numpy as np
import pytest

from calibrant.decide.follow import place
from calibrant.service.alarm import LEVEL, Alarm
from calibrant.service.model import Model


def model(n, below=0.05, confidence=None):
    record = SimpleNamespace(calibrator=SimpleNamespace(fitted_on=SimpleNamespace(n=n)))
    made = SimpleNamespace(unfamiliar_below=below, run=SimpleNamespace(record=record), digest="a run")
    made.dev_familiarity = lambda: Model.dev_familiarity(made)
    made.dev_confidence = lambda: confidence
    return made


def said(values, name="familiarity", by="a run"):
    who = SimpleNamespace(digest=by)
    return [SimpleNamespace(decision=SimpleNamespace(**{name: value}), model=who) for value in values]


def familiarities(dev, new):
    """π of new texts, as the calibrator has it."""
    distances = np.sort(dev)
    return (1 + len(dev) - np.searchsorted(distances, new, side="left")) / (len(dev) + 1)


def test_familiarity_tells_between_which_dev_texts_a_text_lies():
    """As the distances themselves would."""
    rng = np.random.default_rng(0)
    dev, new = rng.normal(size=99), rng.normal(0.5, size=300)
    by_distance = place(-np.sort(dev), -new, seed=0)
    then = Model.dev_familiarity(model(99))
    assert np.array_equal(place(then, familiarities(dev, new), seed=0), by_distance)


def test_text_like_devs_seldom_rings():
    rng, rung = np.random.default_rng(1), 0
    for _ in range(200):
        dev, alarm = rng.normal(size=100), Alarm(model(100))
        for _ in range(20):
            alarm.observe(said(familiarities(dev, rng.normal(size=10))))
        rung += alarm.rings
    assert rung <= 200 * LEVEL + 5


def test_strays_ring_and_the_alarm_stays():
    rng = np.random.default_rng(2)
    dev, alarm = rng.normal(size=100), Alarm(model(100))
    alarm.observe(said(familiarities(dev, rng.normal(4, size=30))))
    assert alarm.rings == 1
    assert alarm.p <= LEVEL
    alarm.observe(said(familiarities(dev, rng.normal(size=2000))))
    assert alarm.rings == 1


def test_without_familiarity_confidence_orders_the_texts():
    rng = np.random.default_rng(3)
    alarm = Alarm(model(100, below=None, confidence=rng.uniform(0.7, 1, size=100)))
    alarm.observe(said(rng.uniform(0.2, 0.5, size=50), "confidence"))
    assert alarm.rings == 1


def test_what_the_model_before_it_says_is_nothing_to_it():
    alarm = Alarm(model(100))
    alarm.observe(said([None] * 50, by="another run"))
    assert (alarm.p, alarm.rings) == (1, 0)


@pytest.mark.parametrize("value", ["p", "rings"])
def test_not_known_without_dev(value):
    alarm = Alarm(model(100, below=None))
    alarm.observe(said([0.5], "confidence"))
    assert math.isnan(getattr(alarm, value))
