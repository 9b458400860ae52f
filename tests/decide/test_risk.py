"""A promised risk: exact tests, what is tested, and promises kept where the truth is known."""

import math

import numpy as np
import pytest
from scipy.special import betaln, expit
from scipy.stats import binom, binomtest

from calibrant.decide.risk import (
    FIRST,
    Plan,
    Sample,
    Selection,
    chance_to_pass,
    make_plan,
    naive_selection,
    select,
    smallest_risk,
)

DRAWS = 250
LARGEST = 0.05 + 3 * math.sqrt(0.05 * 0.95 / DRAWS)  # of 5 %, with three standard errors
TWO = Plan(np.array([0.8, 0.0]), np.array([0.5, 0.5]))


def sample(*parts):
    """(confidence, texts, wrong ones among them), …"""
    confidence = np.concatenate([np.full(n, c) for c, n, _ in parts])
    return Sample(confidence, np.concatenate([np.arange(n) < wrong for _, n, wrong in parts]))


@pytest.mark.parametrize(("wrong", "answered"), [(0, 59), (3, 200), (17, 40)])
@pytest.mark.parametrize("level", [0.9, 0.95, 0.996])
def test_the_smallest_risk_is_clopper_and_pearsons_bound(wrong, answered, level):
    """Of one threshold, which has all of the error to itself."""
    exact = binomtest(wrong, answered, alternative="less").proportion_ci(level, method="exact").high
    drawn, alone = sample((0.9, answered, wrong)), Plan(np.array([0.8]), np.ones(1))
    assert select(drawn, alone, exact - 1e-6, level) is None
    assert select(drawn, alone, exact + 1e-6, level) == Selection(0.8, answered, wrong)


def test_nothing_answered_promises_nothing():
    assert select(sample((0.1, 50, 0)), Plan(np.array([0.8]), np.ones(1)), 0.05, 0.95) is None


def test_what_is_selected():
    """200 sure texts that are right, 100 unsure ones of which half are wrong."""
    drawn = sample((0.99, 200, 0), (0.6, 100, 50))
    assert select(drawn, TWO, risk=0.05, level=0.95) == Selection(0.8, 200, 0)
    assert naive_selection(drawn, TWO, 0.2) == Selection(0.0, 300, 50)
    assert select(drawn, TWO, risk=0.2, level=0.95) == Selection(0.8, 200, 0)  # 50 of 300: no proof
    assert select(drawn, TWO, risk=0.25, level=0.95) == Selection(0.0, 300, 50)
    assert naive_selection(sample((0.9, 10, 10)), TWO, 0.2) is None


@pytest.mark.parametrize("n", [71, 72])
def test_the_level_is_exact(n):
    """Without a mistake 0.95^n must be at most half of 0.05: 72 texts, and not 71."""
    assert 0.95**71 > 0.025 >= 0.95**72
    assert (select(sample((0.9, n, 0)), TWO, 0.05, 0.95) is not None) == (n == 72)


def test_a_threshold_is_met_by_a_confidence_that_equals_it():
    barely = Sample(np.repeat([0.8, np.nextafter(0.8, 0)], 250), np.repeat([False, True], 250))
    assert naive_selection(barely, TWO, 0.01) == Selection(0.8, 250, 0)


def test_a_level_passes_on_to_the_next():
    """13 wrong of 400 are no proof of a risk below 5 % at half of δ, but at all of it."""
    p = binom.cdf(13, 400, 0.05)
    level = 1 - 1.01 * p
    drawn = sample((0.9, 300, 3), (0.4, 100, 10))
    assert select(drawn, TWO, 0.05, level) == Selection(0.0, 400, 13)
    unsure = sample((0.4, 400, 13))
    assert select(unsure, TWO, 0.05, level) is None  # nothing was passed on
    assert select(unsure, Plan(TWO.thresholds, np.array([0.0, 1.0])), 0.05, level) == Selection(0.0, 400, 13)


def test_the_plan_tests_where_the_pilot_says_that_it_can_pass():
    """Of the sure half none are wrong, of the others 40 %."""
    pilot = sample((0.95, 100, 0), (0.5, 100, 40))
    plan = make_plan(pilot, 1000, 0.05, 0.95)
    assert plan.thresholds.tolist() == [0.95, 0.5, 0.0]
    assert plan.shares.sum() == pytest.approx(1)
    assert plan.shares[0] >= FIRST
    assert plan.shares[2] < 0.001
    lax = make_plan(pilot, 1000, 0.4, 0.95)
    assert lax.shares[2] > 0.05


def test_the_chance_to_pass_by_hand():
    """60 texts must all be right at a risk of 5 %; the pilot has 2 wrong of 40, and 0.2 of 4 before it."""
    assert binom.cdf(0, 60, 0.05) <= 0.05 < binom.cdf(1, 60, 0.05)
    # E (1 − r)^60 with r ~ Beta(2.2, 41.8): B(2.2, 101.8) / B(2.2, 41.8)
    by_hand = math.exp(betaln(2.2, 101.8) - betaln(2.2, 41.8))
    found = chance_to_pass(np.array([2, 2]), np.array([40, 40]), np.array([60, 58]), 0.05, 0.95)
    assert found == pytest.approx([by_hand, 0])


def test_a_plan_of_texts_that_can_prove_nothing():
    plan = make_plan(sample((0.9, 30, 30)), 10, 0.01, 0.95)
    assert plan.shares == pytest.approx(1 / len(plan.shares))


def test_the_smallest_risk_is_one_that_can_be_promised():
    rng = np.random.default_rng(0)
    for n in (60, 500):
        drawn = Sample(rng.uniform(0.3, 1, n), rng.random(n) < 0.1)
        pilot = Sample(rng.uniform(0.3, 1, 100), rng.random(100) < 0.1)
        risk, proof = smallest_risk(pilot, drawn, 0.01, 0.95)
        assert 0.01 < risk < 1
        assert risk == round(risk, 3)
        assert select(drawn, make_plan(pilot, n, risk, 0.95), risk, 0.95) == proof
    all_wrong = sample((0.9, 9, 9))
    assert smallest_risk(all_wrong, all_wrong, 0.01, 0.95) is None


def truth(sharpness, top):
    """Confidences, P(wrong) at each and how likely it is; the surest 3 % have at least the risk ``top``."""
    right = np.linspace(0.35, 0.999, 2000)
    confidence = expit(sharpness * np.log(right / (1 - right)))
    risk = np.where(confidence > np.quantile(confidence, 0.97), np.maximum(1 - right, top), 1 - right)
    return confidence, risk, right**6 / (right**6).sum()


@pytest.mark.parametrize("top", [0.0, 0.13], ids=["risk falls with confidence", "the surest are risky"])
@pytest.mark.parametrize("sharpness", [0.6, 1.0, 2.5], ids=["timid", "calibrated", "boastful"])
def test_the_promise_holds_where_the_truth_is_known(sharpness, top):
    """With a pilot of 100, and with one that is all wrong about the model."""
    confidence, risk, weight = truth(sharpness, top)
    allowed, n = 0.11, 1000
    rng = np.random.default_rng(1)

    def true_risk(selection):
        kept = confidence >= selection.threshold
        return (weight * risk)[kept].sum() / weight[kept].sum()

    broken, misled, naive_broken, answered = 0, 0, 0, []
    for _ in range(DRAWS):
        i = rng.choice(len(weight), size=n + 100, p=weight)
        drawn = Sample(confidence[i], rng.random(n + 100) < risk[i])
        pilot, drawn = drawn[:100], drawn[100:]
        plan = make_plan(pilot, n, allowed, 0.95)
        found, naive = select(drawn, plan, allowed, 0.95), naive_selection(drawn, plan, allowed)
        flattered = Sample(pilot.confidence, np.zeros(100, dtype=bool))
        other = select(drawn, make_plan(flattered, n, allowed, 0.95), allowed, 0.95)
        broken += found is not None and true_risk(found) > allowed
        misled += other is not None and true_risk(other) > allowed
        naive_broken += naive is not None and true_risk(naive) > allowed
        answered.append(0 if found is None else found.answered / n)
    assert broken / DRAWS <= LARGEST
    assert misled / DRAWS <= LARGEST
    assert naive_broken / DRAWS > LARGEST
    assert np.mean(answered) > 0.35  # to answer nothing would keep any promise


def test_it_answers_more_than_61_thresholds_with_an_equal_share_do():
    confidence, risk, weight = truth(1.0, 0.0)
    thresholds = expit(np.linspace(12, -math.log(9), 61))
    thresholds[-1] = 0
    equal, rng, gained = Plan(thresholds, np.full(61, 1 / 61)), np.random.default_rng(2), []
    for _ in range(60):
        i = rng.choice(len(weight), size=500, p=weight)
        drawn = Sample(confidence[i], rng.random(500) < risk[i])
        pilot, drawn = drawn[:200], drawn[200:]
        found = (select(drawn, plan, 0.1, 0.95) for plan in (make_plan(pilot, 300, 0.1, 0.95), equal))
        now, before = (0 if one is None else one.answered for one in found)
        gained.append(now - before)
    assert np.mean(gained) / 300 > 0.15
