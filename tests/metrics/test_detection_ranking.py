"""AUROC, AUPR and FPR95: low confidence is the evidence for positive."""

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, roc_curve

from calibrant.metrics import aupr, auroc, fpr95
from calibrant.metrics.auroc import auroc_error

ALL = [auroc, aupr, fpr95]
H1 = [0.9, 0.95, 0.8, 0.85]  # the paper's worked example
H2 = [0.9, 0.95, 0.1, 0.15]
OUT = [False, False, True, True]


def auroc_by_pairs(c, positive):
    pairs = [(a, b) for a in c[positive] for b in c[~positive]]
    return sum((a < b) + 0.5 * (a == b) for a, b in pairs) / len(pairs)


def aupr_by_loop(c, positive):
    area, recall_before = 0.0, 0.0
    for t in np.unique(c):
        found = (c <= t) & positive
        recall, precision = found.sum() / positive.sum(), found.sum() / (c <= t).sum()
        area += (recall - recall_before) * precision
        recall_before = recall
    return area


def fpr95_by_loop(c, positive):
    for t in np.unique(c):
        if 100 * (c[positive] <= t).sum() >= 95 * positive.sum():
            return (c[~positive] <= t).mean()
    raise AssertionError


@pytest.mark.parametrize("metric", ALL)
@pytest.mark.parametrize("positive", [[True, True], [False, False]])
def test_undefined_without_positives_or_without_negatives(metric, positive):
    assert math.isnan(metric([0.2, 0.8], positive))
    assert math.isnan(metric([0.2], positive[:1]))


@pytest.mark.parametrize(("metric", "perfect", "worst"), [(auroc, 1, 0), (aupr, 1, 5 / 12), (fpr95, 0, 1)])
def test_perfect_and_reversed(metric, perfect, worst):
    assert metric([0.1, 0.2, 0.8, 0.9], [True, True, False, False]) == perfect
    assert metric([0.1, 0.2, 0.8, 0.9], [False, False, True, True]) == pytest.approx(worst)


@pytest.mark.parametrize(("metric", "expected"), [(auroc, 0.5), (aupr, 0.25), (fpr95, 1.0)])
def test_all_tied(metric, expected):
    assert metric([0.7] * 4, [True, False, False, False]) == expected


@pytest.mark.parametrize("seed", range(4))
def test_agree_with_plain_loops(seed):
    rng = np.random.default_rng(seed)
    positive = rng.random(120) < 0.3
    c = np.clip(rng.normal(0.7 - 0.2 * positive, 0.2), 0, 1).round(seed % 2 + 1)  # ties, and 0s and 1s
    assert auroc(c, positive) == pytest.approx(auroc_by_pairs(c, positive))
    assert aupr(c, positive) == pytest.approx(aupr_by_loop(c, positive))
    assert fpr95(c, positive) == pytest.approx(fpr95_by_loop(c, positive))
    fpr, tpr, _ = roc_curve(positive, -c, drop_intermediate=False)
    assert fpr95(c, positive) == pytest.approx(fpr[np.argmax(tpr >= 0.95)])


@pytest.mark.parametrize(
    ("positives", "needed"), [(1, 1), (19, 19), (20, 19), (21, 20), (40, 38), (60, 57), (100, 95), (101, 96)]
)
def test_fpr95_counts_in_whole_texts(positives, needed):
    """Positives at 1, 2, …; a negative just above each: those below the needed positive are false alarms."""
    c = np.concatenate([np.arange(positives) + 1.0, np.arange(positives) + 1.5])
    flags = np.arange(2 * positives) < positives
    assert fpr95(c, flags) == pytest.approx((needed - 1) / positives)


def test_fpr95_flags_whatever_ties_with_the_threshold():
    assert fpr95([0.2, 0.5, 0.5, 0.5, 0.9], [True, True, False, False, False]) == pytest.approx(2 / 3)


def test_the_papers_aupr_is_upside_down():
    for h in (H1, H2):
        assert aupr(h, OUT) == 1.0
        assert auroc(h, OUT) == 1.0
        upside_down = average_precision_score(OUT, h)  # HIGH confidence as the evidence for OOD
        assert round(upside_down, 3) == 0.417
        assert upside_down == pytest.approx((1 / 3 + 2 / 4) / 2)


texts = st.lists(st.tuples(st.integers(0, 10).map(lambda i: i / 10), st.booleans()), min_size=2, max_size=30)


@given(texts, st.randoms(use_true_random=False))
def test_order_and_scale_do_not_matter_and_the_range_is_0_to_1(texts, random):
    assume(len({flag for _, flag in texts}) == 2)
    before = [metric(*zip(*texts, strict=True)) for metric in ALL]
    assert all(0 <= value <= 1 + 1e-12 for value in before)
    random.shuffle(texts)
    c, flags = map(np.array, zip(*texts, strict=True))
    assert [metric(3 * c - 7, flags) for metric in ALL] == pytest.approx(before)


def test_the_standard_error_of_auroc_over_many_samples():
    """Of exponential −c, for which the formula is exact: A = λ⁻ / (λ⁺ + λ⁻)."""
    rng = np.random.default_rng(0)
    positive, negative = -rng.exponential(1 / 0.3, (5000, 10, 1)), -rng.exponential(1 / 0.7, (5000, 1, 30))
    areas = (positive < negative).mean(axis=(1, 2))
    assert areas.mean() == pytest.approx(0.7, abs=0.005)
    assert areas.std() == pytest.approx(auroc_error(0.7, 10, 30), rel=0.03)
