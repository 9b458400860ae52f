"""The rule, and the cut that keeps its promise."""

import math

import numpy as np
import pytest

from calibrant.decide.rule import Rule, cut
from calibrant.scores import LayerMahalanobis, Mahalanobis, MaxProbability
from calibrant.types import Outputs

DRAWS = 250
LARGEST = 0.05 + 3 * math.sqrt(0.05 * 0.95 / DRAWS)  # of 5 %, with three standard errors


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


def test_a_threshold_for_each_class():
    """Three texts of the first class and two of the second, which needs more; a third is never answered."""
    p = np.array([[0.7, 0.2, 0.1], [0.5, 0.4, 0.1], [0.2, 0.7, 0.1], [0.05, 0.9, 0.05], [0.0, 0.0, 1.0]])
    made = Outputs(p, calibrated=p)
    rule = Rule(np.array([0.6, 0.8, math.inf]))
    assert rule.answers(made).tolist() == [True, False, False, True, False]
