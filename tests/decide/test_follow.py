"""An alarm that may be looked at for ever: the urn by hand, false alarms and power."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from calibrant.decide.follow import SHARES, add_up, count, edges, log_evidence, place


@pytest.mark.parametrize("n", [1, 5, 20, 100, 473])
def test_groups_hold_all_gaps(n):
    ends = edges(n)
    assert ends[-1] == n + 1
    assert list(ends) == sorted(set(ends))
    assert ends[0] == max(1, round(SHARES[0] * (n + 1)))


def test_where_texts_fall():
    then = np.random.default_rng(0).permutation(np.arange(1.0, 100.0))
    assert place(then, np.array([0.5, 1.5, 2.5, 60.5]), seed=0).tolist() == [0, 1, 2, 6]
    assert count(np.array([0, 1, 2, 6, 6]), 99).tolist() == [1, 1, 1, 0, 0, 0, 2]
    assert count(place(then, np.array([]), seed=0), 99).tolist() == [0] * 7


def test_equal_values_fall_by_lot():
    """Texts that all look the same fall into the groups about as their gaps are wide."""
    then, now = np.zeros(99), np.zeros(20_000)
    counts = count(place(then, now, seed=1), 99)
    assert counts.sum() == 20_000
    assert (counts > 0).all()
    assert counts.tolist() == count(place(then, now, seed=1), 99).tolist()
    assert counts.tolist() != count(place(then, now, seed=2), 99).tolist()
    assert counts[-1] / 20_000 == pytest.approx(0.5, abs=0.2)


def test_the_evidence_is_a_martingale():
    """Over all ways in which three texts can fall, by the urn's own odds, its mean is 1: exactly."""
    n = 30
    gaps = np.diff(edges(n), prepend=0).tolist()
    mean = 0.0
    for falls in product(range(len(gaps)), repeat=3):
        chance, counts = Fraction(1), [0] * len(gaps)
        for so_far, group in enumerate(falls):
            chance *= Fraction(gaps[group] + counts[group], n + 1 + so_far)
            counts[group] += 1
        mean += float(chance) * math.exp(log_evidence(np.array(counts), n))
    assert mean == pytest.approx(1, abs=1e-9)


def test_the_urn_is_how_texts_fall():
    """Two new texts and 9 dev texts: both are the strangest of all with 1/10 · 2/11, and not with 1/100."""
    rng = np.random.default_rng(0)
    drawn = rng.random((20_000, 11))
    both = (drawn[:, 9:] < drawn[:, :9].min(axis=1, keepdims=True)).all(axis=1).mean()
    assert both == pytest.approx(2 / 110, abs=0.004)


def looks(rng, n, batch, number, strays):
    """Of two orders that hang together."""
    then = rng.normal(size=(2, n)) + rng.normal(size=n)
    found = []
    for seed in range(number):
        now = rng.normal(size=(2, batch)) + rng.normal(size=batch)
        now = np.where(rng.random(batch) < strays, now - 4, now)
        counts = (count(place(a, b, seed), n) for a, b in zip(then, now, strict=True))
        found.append(dict(zip(("familiarity", "confidence"), counts, strict=True)))
    return found


@pytest.mark.parametrize(("n", "batch"), [(100, 30), (500, 10)])
def test_false_alarms_at_any_of_30_looks(n, batch):
    draws, level = 150, 0.1
    rng = np.random.default_rng(n)
    alarms = [add_up(looks(rng, n, batch, 30, 0.0), n, level).alarm_at is not None for _ in range(draws)]
    assert np.mean(alarms) <= level + 3 * math.sqrt(level * (1 - level) / draws)


@pytest.mark.parametrize(("strays", "latest"), [(0.1, 15), (0.3, 4), (1.0, 1)])
def test_strays_are_found(strays, latest):
    rng = np.random.default_rng(0)
    found = [add_up(looks(rng, 200, 30, 20, strays), 200, 0.01).alarm_at or 99 for _ in range(20)]
    assert np.median(found) <= latest


def test_an_alarm_is_not_taken_back():
    strange, familiar = (np.array(counts) for counts in ([20, 0, 0, 0, 0, 0, 0], [0, 2, 5, 10, 30, 100, 200]))
    first = add_up([{"confidence": strange}], 99, 0.01)
    assert first.alarm_at == 1
    assert (first.texts, first.unfamiliar_now, first.unfamiliar_then) == (20, 1.0, 0.05)
    later = add_up([{"confidence": c} for c in (strange, familiar, familiar, familiar)], 99, 0.01)
    assert (later.looks, later.alarm_at, later.p) == (4, 1, first.p)
    assert log_evidence(strange + 3 * familiar, 99) < log_evidence(strange, 99)


def test_two_orders_share_the_level():
    counts = np.array([3, 0, 0, 1, 2, 5, 6])
    one, two = add_up([{"a": counts}], 99, 0.01), add_up([{"a": counts, "b": counts}], 99, 0.01)
    assert two.p == pytest.approx(2 * one.p)
    assert one.p == pytest.approx(math.exp(-log_evidence(counts, 99)))


def test_too_few_to_tell():
    familiar = np.array([0, 0, 0, 0, 1, 1, 1])
    assert not add_up([{"a": familiar}], 99, 0.01).enough
    assert add_up([{"a": 5 * familiar}], 99, 0.01).enough
