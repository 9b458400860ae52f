"""False alarms, power and intervals, by simulation; distances against scipy."""

import numpy as np
import pytest
from scipy.stats import beta, hypergeom, ks_2samp

from calibrant.decide.drift import (
    abstention_shift,
    calibration_error,
    confidence_shift,
    expected_accuracy,
    gap_shift,
    look,
    share,
)
from calibrant.metrics import expected_calibration_error


def answers(rng, n, gap=0.0, sharpness=4.0):
    """Confidences, and whether each answer was right: with that probability, less a gap."""
    c = np.clip(rng.beta(sharpness, 1, size=n), 0.1, 1)
    return c, rng.random(n) < c - gap


def allowed(rate, draws):
    """With room for chance: three standard errors."""
    return rate + 3 * (rate * (1 - rate) / draws) ** 0.5


@pytest.mark.parametrize(("n", "m"), [(3, 5), (7, 200), (300, 150)])
def test_the_distance_is_that_of_kolmogorov_and_smirnov(n, m):
    rng = np.random.default_rng(n)
    then, now = rng.random(n).round(2), rng.random(m).round(2) ** 1.2  # with ties
    shift = confidence_shift(then, look(then, now))
    oracle = ks_2samp(then, now, method="asymp")
    assert shift.distance == pytest.approx(oracle.statistic, abs=1e-12)
    assert shift.p == pytest.approx(oracle.pvalue, abs=0.02 if min(n, m) > 100 else 0.2)
    assert confidence_shift(now, look(now, then)).distance == pytest.approx(shift.distance)


def test_nothing_moved():
    c = np.random.default_rng(0).random(50)
    assert confidence_shift(c, look(c, c)) == confidence_shift(c, look(c, np.repeat(c, 3)))
    assert (confidence_shift(c, look(c, c)).distance, confidence_shift(c, look(c, c)).p) == (0, 1)
    assert not confidence_shift(c, look(c, c)).beyond(tolerance=0, level=0.999)


@pytest.mark.parametrize(("n", "m"), [(60, 400), (500, 500)])
def test_false_alarms_of_text_like_devs(n, m):
    """At most the level, even with no tolerance."""
    draws, level = 1000, 0.05
    moved, gap_moved, worth_it = 0, 0, 0
    for seed in range(draws):
        rng = np.random.default_rng(seed)
        (then, then_right), (now, now_right) = answers(rng, n), answers(rng, m)
        shift, gap = confidence_shift(then, look(then, now)), gap_shift(then, then_right, now, now_right)
        moved += shift.beyond(0, level)
        gap_moved += gap.beyond(0, level)
        worth_it += shift.beyond(0.1, level)
    assert moved / draws <= allowed(level, draws)
    assert gap_moved / draws <= allowed(level, draws)
    assert min(moved, gap_moved) / draws > level / 4  # and not because it never speaks
    assert worth_it <= moved


def test_a_trifle_in_a_large_file_is_no_alarm():
    rng = np.random.default_rng(0)
    (then, then_right), (now, now_right) = answers(rng, 50000), answers(rng, 50000, gap=0.03, sharpness=4.5)
    for shift in (confidence_shift(then, look(then, now)), gap_shift(then, then_right, now, now_right)):
        assert shift.p < 1e-6
        assert 0.01 < abs(shift.distance) < 0.06
        assert not shift.beyond(0.1, 0.01)
        assert shift.beyond(0.01, 0.01)


def test_power():
    """Moved by a third of the texts, or wrong a fifth more often: found in 200 of 200 files of 200 texts."""
    for seed in range(200):
        rng = np.random.default_rng(seed)
        then, then_right = answers(rng, 300)
        now, now_right = answers(rng, 200, gap=0.25)
        lower, _ = answers(rng, 200, sharpness=1.5)
        assert confidence_shift(then, look(then, lower)).beyond(0.1, 0.01)
        gap = gap_shift(then, then_right, now, now_right)
        assert gap.distance < -0.1
        assert gap.beyond(0.1, 0.005)


@pytest.mark.parametrize("gap", [0.0, 0.08])
@pytest.mark.parametrize("sharpness", [4.0, 60.0])
@pytest.mark.parametrize(("n", "m"), [(40, 30), (500, 200)])
def test_the_accuracy_is_where_it_was_expected(n, m, sharpness, gap):
    """Within the interval as often as it says, for a confidence that is off by as much as on dev too."""
    draws, inside, middle = 400, 0, []
    for seed in range(draws):
        rng = np.random.default_rng(seed)
        then, right = answers(rng, n, gap, sharpness)
        now, now_right = answers(rng, m, gap, sharpness)
        expected = expected_accuracy(then, right, look(then, now), level=0.05)
        assert 0 <= expected.low <= expected.value <= expected.high <= 1
        inside += expected.low <= now_right.mean() <= expected.high
        middle.append(expected.value - now_right.mean())
    assert 1 - inside / draws <= allowed(0.05, draws)
    assert np.mean(middle) == pytest.approx(0, abs=0.015)


def test_the_gap_is_significant_where_the_accuracy_is_outside():
    seen = set()
    for seed in range(200):
        rng = np.random.default_rng(seed)
        (then, right), (now, now_right) = answers(rng, 300), answers(rng, 200, gap=0.07)
        expected = expected_accuracy(then, right, look(then, now), level=0.05)
        outside = not expected.low <= now_right.mean() <= expected.high
        assert (gap_shift(then, right, now, now_right).p < 0.05) == outside
        seen.add(outside)
    assert seen == {True, False}


def test_dev_without_an_error_does_not_promise_that_there_is_none():
    then, right, now = np.full(20, 1.0), np.full(20, True), np.full(5, 1.0)
    expected = expected_accuracy(then, right, look(then, now), level=0.05)
    assert (expected.value, expected.high) == (1, 1)
    assert 0.5 < expected.low < 0.7
    assert gap_shift(then, right, now, np.array([True] * 4 + [False])).p > 0.05


@pytest.mark.parametrize(("then", "n", "now", "m"), [(0, 5, 0, 9), (3, 40, 12, 30), (9, 10, 2, 25)])
def test_the_shares_turned_away_by_hand(then, n, now, m):
    """p: of all ways to draw ``then + now`` of n + m texts, those no likelier than what was seen."""
    likely = hypergeom(n + m, then + now, n).pmf(np.arange(then + now + 1))
    found = abstention_shift(then, n, now, m)
    assert found.distance == pytest.approx(now / m - then / n)
    assert found.p == pytest.approx(likely[likely <= likely[then] * (1 + 1e-7)].sum())


def test_the_shares_turned_away_by_chance_and_by_drift():
    rng, draws = np.random.default_rng(0), 300
    then, same, more = (rng.binomial(n, rate, draws) for n, rate in ((160, 0.2), (500, 0.2), (500, 0.5)))
    false = [abstention_shift(k, 160, j, 500).p < 0.01 for k, j in zip(then, same, strict=True)]
    found = [abstention_shift(k, 160, j, 500).beyond(0.1, 0.01) for k, j in zip(then, more, strict=True)]
    assert np.mean(false) <= allowed(0.01, draws)
    assert np.mean(found) > 0.99


@pytest.mark.parametrize(("k", "n"), [(0, 10), (3, 10), (10, 10), (500, 1000)])
def test_shares_have_exact_bounds(k, n):
    got = share(k, n, level=0.05)
    assert got.value == k / n
    assert got.low == pytest.approx(beta.ppf(0.025, k, n - k + 1) if k else 0)
    assert got.high == pytest.approx(beta.ppf(0.975, k + 1, n - k) if k < n else 1)


@pytest.mark.parametrize("gap", [0.0, 0.1])
def test_bounds_of_the_calibration_error(gap):
    big, _ = answers(np.random.default_rng(1), 10**6)
    truth = np.minimum(big, gap).mean() if gap else 0.0  # below 0 no accuracy falls
    inside, draws = 0, 40
    for seed in range(draws):
        c, right = answers(np.random.default_rng(seed), 400, gap)
        found = calibration_error(c, right, level=0.05)
        inside += found.low <= truth <= found.high
        assert found.low <= found.value <= found.high
    assert 1 - inside / draws <= allowed(0.05, draws)


def test_the_calibration_error_is_the_metrics_and_the_same_each_time():
    c, right = answers(np.random.default_rng(0), 300)
    c = 0.5 + c / 2
    p = np.stack([c, 1 - c], axis=1)
    found = calibration_error(c, right, level=0.05)
    assert found.value == pytest.approx(expected_calibration_error(p, np.where(right, 0, 1)), abs=1e-12)
    assert found == calibration_error(c, right, level=0.05)
    wider = calibration_error(c, right, level=0.01)
    assert wider.low <= found.low
    assert wider.high > found.high
