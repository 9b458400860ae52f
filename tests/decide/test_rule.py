"""The maths of abstaining: exact bounds, and promises kept where the truth is known."""

import math

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import binomtest

from calibrant.decide.rule import (
    Rule,
    Selection,
    cut,
    grid,
    naive_selection,
    risk_bound,
    select,
    smallest_risk,
)
from calibrant.scores import LayerMahalanobis, Mahalanobis, MaxProbability
from calibrant.types import Outputs

DRAWS = 250
LARGEST = 0.05 + 3 * math.sqrt(0.05 * 0.95 / DRAWS)  # of 5 %, with three standard errors


@pytest.mark.parametrize(("wrong", "answered"), [(0, 59), (3, 200), (17, 40), (40, 40)])
@pytest.mark.parametrize("level", [0.9, 0.95, 0.996])
def test_bound_is_clopper_and_pearsons(wrong, answered, level):
    exact = binomtest(wrong, answered, alternative="less").proportion_ci(level, method="exact").high
    assert risk_bound(wrong, answered, level) == pytest.approx(exact, abs=1e-9)


def test_nothing_answered_promises_nothing():
    assert risk_bound(0, 0, 0.95) == 1


@pytest.mark.parametrize("classes", [2, 15, 150])
def test_the_grid(classes):
    thresholds = grid(classes)
    assert (len(thresholds), thresholds[-1]) == (61, 0)
    assert (np.diff(thresholds) < 0).all()
    assert thresholds[0] == pytest.approx(expit(12))
    assert 1 / classes < thresholds[-2] < 1 / classes + 0.15


def test_what_is_selected():
    """200 sure texts that are right, 100 unsure ones of which half are wrong."""
    confidence = np.repeat([0.99, 0.6], [200, 100])
    wrong = np.arange(300) >= 250
    found = select(confidence, wrong, risk=0.05, level=0.95, classes=3)
    assert (found.answered, found.wrong) == (200, 0)
    assert 0.6 < found.threshold < 0.65  # the laxest of the grid that leaves the unsure ones out
    assert naive_selection(confidence, wrong, 0.2, 3) == Selection(0.0, 300, 50)
    assert select(confidence, wrong, risk=0.2, level=0.95, classes=3).answered == 200  # 50 of 300: no proof
    assert select(confidence, wrong, risk=0.25, level=0.95, classes=3) == Selection(0.0, 300, 50)


def test_a_threshold_is_met_by_a_confidence_that_equals_it():
    threshold = grid(3)[20]
    confidence = np.full(500, threshold)
    assert naive_selection(confidence, np.zeros(500, dtype=bool), 0.01, 3).answered == 500
    barely = np.where(np.arange(500) < 250, threshold, np.nextafter(threshold, 0))
    wrong = barely < threshold
    assert naive_selection(barely, wrong, 0.01, 3) == Selection(threshold, 250, 0)


def test_a_level_passes_on_to_the_next():
    """Ten wrong of 400 are no proof of a risk below 5 % at one share of δ, but at a dozen."""
    assert 0.05 / 61 < binomtest(10, 400, 0.05, alternative="less").pvalue < 12 * 0.05 / 61
    sure, unsure = expit(11.0), 0.4
    wrong = np.arange(400) >= 390
    confidence = np.repeat([sure, unsure], [300, 100])
    assert select(confidence, wrong, 0.05, 0.95, 3) == Selection(0.0, 400, 10)
    assert select(np.full(400, unsure), wrong, 0.05, 0.95, 3) is None  # nothing was passed on


def test_the_smallest_risk_is_one_that_can_be_promised():
    rng = np.random.default_rng(0)
    for n in (5, 60, 500):
        confidence, wrong = rng.uniform(0.3, 1, n), rng.random(n) < 0.1
        risk, proof = smallest_risk(confidence, wrong, 0.95, 3)
        assert 0 < risk < 1
        assert select(confidence, wrong, risk + 1e-9, 0.95, 3).answered >= proof.answered
        assert select(confidence, wrong, risk - 1e-9, 0.95, 3) is None
    assert smallest_risk(np.full(9, 0.9), np.ones(9, dtype=bool), 0.95, 3)[0] == 1


def truth(sharpness, top):
    """Confidences, P(wrong) at each and how likely it is; the surest 3 % have at least the risk ``top``."""
    right = np.linspace(0.35, 0.999, 2000)
    confidence = expit(sharpness * np.log(right / (1 - right)))
    risk = np.where(confidence > np.quantile(confidence, 0.97), np.maximum(1 - right, top), 1 - right)
    return confidence, risk, right**6 / (right**6).sum()


@pytest.mark.parametrize("top", [0.0, 0.13], ids=["risk falls with confidence", "the surest are risky"])
@pytest.mark.parametrize("sharpness", [0.6, 1.0, 2.5], ids=["timid", "calibrated", "boastful"])
def test_the_promise_holds_where_the_truth_is_known(sharpness, top):
    confidence, risk, weight = truth(sharpness, top)
    allowed, n = 0.11, 1000
    rng = np.random.default_rng(1)

    def true_risk(selection):
        kept = confidence >= selection.threshold
        return (weight * risk)[kept].sum() / weight[kept].sum()

    broken, naive_broken, answered = 0, 0, []
    for _ in range(DRAWS):
        i = rng.choice(len(weight), size=n, p=weight)
        wrong = rng.random(n) < risk[i]
        found = select(confidence[i], wrong, allowed, 0.95, 10)
        naive = naive_selection(confidence[i], wrong, allowed, 10)
        broken += found is not None and true_risk(found) > allowed
        naive_broken += naive is not None and true_risk(naive) > allowed
        answered.append(0 if found is None else found.answered / n)
    assert broken / DRAWS <= LARGEST
    assert naive_broken / DRAWS > LARGEST
    assert np.mean(answered) > 0.15  # to answer nothing would keep any promise


@pytest.mark.parametrize("decimals", [None, 1], ids=["continuous", "with ties"])
@pytest.mark.parametrize("m", [60, 150, 500])
def test_the_cut_keeps_its_promise(m, decimals):
    """The share below the cut, of text drawn as the unfamiliar one was; the empirical quantile fails."""
    rng = np.random.default_rng(m)
    everything = rng.normal(size=100_000)
    if decimals is not None:
        everything = everything.round(decimals)
    everything.sort()
    allowed = 0.05

    def share_below(u):
        return np.searchsorted(everything, u) / len(everything)

    drawn = [rng.choice(everything, size=m) for _ in range(DRAWS)]
    broken = np.mean([share_below(cut(scores, allowed, 0.95)) > allowed for scores in drawn])
    naive = np.mean([share_below(np.quantile(scores, allowed)) > allowed for scores in drawn])
    assert broken <= LARGEST < naive
    if decimals is None and m == 500:
        assert broken > 0.01  # it gives no more away than it must


def test_the_cut_by_hand():
    assert cut(np.arange(58.0), 0.05, 0.95) is None  # 0.95^58 > 0.05
    assert cut(np.arange(59.0)[::-1], 0.05, 0.95) == 0
    # Of 93 texts one may be below: (0.95^93 + 93·0.05·0.95^92) ≤ 0.05 is the first such.
    assert (cut(np.arange(92.0), 0.05, 0.95), cut(np.arange(93.0), 0.05, 0.95)) == (0, 1)


def outputs(confidence):
    p = np.stack([confidence, 1 - np.asarray(confidence)], axis=1)
    return Outputs(np.log(p), calibrated=p)


def test_a_rule_answers():
    made = outputs([0.5, 0.8, 0.9])
    assert Rule(0.8).answers(made).tolist() == [False, True, True]
    assert Rule(0.0).answers(made).all()
    assert Rule(0.8, MaxProbability(), 0.15).answers(made).tolist() == [False, False, True]
    at_the_cut = MaxProbability()(made)[2]
    assert not Rule(0.0, MaxProbability(), at_the_cut).answers(made).any()


def test_a_rule_needs_what_its_score_reads():
    assert Rule(0.8).needs == Rule(0.8, MaxProbability(), 0.15).needs == frozenset()
    for score in (Mahalanobis(), LayerMahalanobis()):
        assert Rule(0.8, score, 1.0).needs == score.needs != frozenset()
