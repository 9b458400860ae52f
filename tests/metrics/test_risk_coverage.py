from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrant.metrics import aurc, risk_coverage
from calibrant.metrics.risk_coverage import coverage_at


def two_classes(confidence, correct):
    c = np.asarray(confidence)
    return np.stack([c, 1 - c], axis=1), np.where(correct, 0, 1)


def by_loop(correct_by_confidence):
    risks, wrong = [], 0
    for k, correct in enumerate(correct_by_confidence, start=1):
        wrong += not correct
        risks.append(wrong / k)
    return sum(risks) / len(risks)


def test_hand_computed():
    p, y = two_classes([0.6, 0.9, 0.8], [False, True, False])
    coverage, risk = risk_coverage(p, y)
    assert coverage.tolist() == pytest.approx([1 / 3, 2 / 3, 1])
    assert risk.tolist() == pytest.approx([0, 1 / 2, 2 / 3])
    assert aurc(p, y) == pytest.approx((0 + 1 / 2 + 2 / 3) / 3)


@pytest.mark.parametrize(("correct", "expected"), [(True, 0.0), (False, 1.0)])
@pytest.mark.parametrize("n", [1, 5])
def test_all_right_or_all_wrong(n, correct, expected):
    assert aurc(*two_classes([0.9] * n, [correct] * n)) == expected


def test_ties_are_the_mean_over_their_orders():
    top, tied = [True], [True, False, False]
    expected = np.mean([by_loop(top + list(order)) for order in permutations(tied)])
    assert aurc(*two_classes([0.9, 0.7, 0.7, 0.7], top + tied)) == pytest.approx(expected)


def test_all_tied_gives_the_error_rate():
    assert aurc(*two_classes([0.8] * 4, [True, True, True, False])) == pytest.approx(0.25)


def test_agrees_with_a_loop():
    rng = np.random.default_rng(0)
    c, correct = rng.uniform(0.51, 1, 100), rng.random(100) < 0.7
    assert aurc(*two_classes(c, correct)) == pytest.approx(by_loop(correct[np.argsort(-c)]))


texts = st.lists(
    st.tuples(st.integers(1, 10).map(lambda i: 0.5 + i / 20), st.booleans()), min_size=1, max_size=30
)


@given(texts, st.randoms(use_true_random=False))
def test_order_does_not_matter_and_the_range_is_0_to_1(texts, random):
    value = aurc(*two_classes(*zip(*texts, strict=True)))
    assert 0 <= value <= 1
    random.shuffle(texts)
    assert aurc(*two_classes(*zip(*texts, strict=True))) == value


def test_coverage_at_a_risk():
    p, y = two_classes([0.9, 0.8, 0.7, 0.6], [True, False, True, True])
    assert coverage_at(0.0, p, y) == 0.25
    assert coverage_at(0.25, p, y) == 1.0  # 1/2, 1/3 and then 1/4: the risk need not grow
    assert coverage_at(0.4, p, y) == 1.0
    assert coverage_at(0.0, *two_classes([0.9], [False])) == 0.0


def test_texts_of_equal_confidence_are_answered_together():
    p, y = two_classes([0.9, 0.8, 0.8], [True, True, False])
    assert coverage_at(0.1, p, y) == pytest.approx(1 / 3)
