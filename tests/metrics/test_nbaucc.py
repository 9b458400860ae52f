from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import f1_score

from calibrant.metrics import f1_curve, nbaucc

# The paper's worked example: in-distribution 0.9 and 0.95, out-of-distribution below.
H1 = [0.9, 0.95, 0.8, 0.85]  # separates, but only at an absurd threshold
H2 = [0.9, 0.95, 0.1, 0.15]
OUT = [False, False, True, True]


def f1(confidence, positive, threshold):
    """One threshold, plainly."""
    detected = [c < threshold for c in confidence]
    true_positives = sum(d and p for d, p in zip(detected, positive, strict=True))
    return 2 * true_positives / (sum(detected) + sum(positive)) if true_positives else 0.0


def by_scikit_learn(confidence, positive, tau, steps):
    scores = [
        f1_score(positive, confidence < tau * i / steps, zero_division=0.0) for i in range(1, steps + 1)
    ]
    return np.mean(scores)


@pytest.mark.parametrize("tau", [0.5, 0.7, 1.0])
@pytest.mark.parametrize("steps", [1, 7, 50])
@pytest.mark.parametrize("seed", range(3))
def test_agrees_with_scikit_learn_threshold_by_threshold(seed, steps, tau):
    rng = np.random.default_rng(seed)
    confidence, positive = rng.random(80).round(2), rng.random(80) < 0.3  # rounded: ties, and on thresholds
    expected = by_scikit_learn(confidence, positive, tau, steps)
    assert nbaucc(confidence, positive, tau, steps) == pytest.approx(expected, abs=1e-12)


def test_hand_computed_curve():
    # At 0.5: nothing is below. At 0.6: one right of one. At 0.8: 1 of 2 detected. Above: all three.
    curve = f1_curve([0.5, 0.7, 0.9], [True, False, True], [0.5, 0.6, 0.8, 1.0])
    assert curve.tolist() == pytest.approx([0, 2 / 3, 1 / 2, 4 / 5])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_confidence_on_the_threshold_is_not_detected(dtype):
    for hundredths in range(1, 101):
        confidence = np.array([hundredths / 100], dtype=dtype)
        thresholds = np.arange(1, 101) / 100
        assert np.flatnonzero(f1_curve(confidence, [True], thresholds)).tolist() == list(
            range(hundredths, 100)
        )


@pytest.mark.parametrize("tau", [0.5, 0.7, 1.0])
@pytest.mark.parametrize(
    ("confidence", "positive", "expected"),
    [
        ([0.0], [True], 1.0),  # below every threshold
        ([1.0], [True], 0.0),  # below none, not even 1
        ([0.0], [False], 0.0),  # nothing to find
        ([0.2, 0.9], [False, False], 0.0),
        ([1.0, 1.0], [True, False], 0.0),  # nothing is ever detected
        ([0.0, 0.0], [True, False], 2 / 3),
        ([0.0, 0.0], [1, 0], 2 / 3),  # 0 and 1 will do for booleans
    ],
)
def test_extremes(confidence, positive, expected, tau):
    assert nbaucc(confidence, positive, tau=tau) == pytest.approx(expected)


texts = st.lists(st.tuples(st.integers(0, 50).map(lambda i: i / 50), st.booleans()), min_size=1, max_size=30)


@given(texts, st.sampled_from([0.5, 0.7, 1.0]), st.randoms(use_true_random=False))
def test_order_does_not_matter_and_the_range_is_0_to_1(texts, tau, random):
    value = nbaucc(*zip(*texts, strict=True), tau=tau)
    assert 0 <= value <= 1
    random.shuffle(texts)
    assert nbaucc(*zip(*texts, strict=True), tau=tau) == value


@given(texts, st.sampled_from([0.5, 1.0]))
def test_agrees_with_exact_arithmetic(texts, tau):
    """On confidences that lie on the thresholds, where a float grid would go wrong."""
    confidence, positive = zip(*texts, strict=True)
    exact = [Fraction(round(c * 50), 50) for c in confidence]
    values = [f1(exact, positive, Fraction(tau) * i / 50) for i in range(1, 51)]
    assert nbaucc(confidence, positive, tau=tau) == pytest.approx(sum(values) / 50, abs=1e-12)


# --- the paper's worked example ---


def test_worked_example_by_the_definition():
    # τ = 1, steps of 0.02. h1: 2/3 at 0.82, 0.84; 1 at 0.86 … 0.90; 4/5 at 0.92, 0.94; 2/3 at 0.96 … 1.
    assert nbaucc(H1, OUT, tau=1.0) == pytest.approx((2 * 2 / 3 + 3 + 2 * 0.8 + 3 * 2 / 3) / 50)  # 0.1587
    # h2: 2/3 at 0.12, 0.14; 1 at 0.16 … 0.90; then as h1.
    assert nbaucc(H2, OUT, tau=1.0) == pytest.approx((2 * 2 / 3 + 38 + 2 * 0.8 + 3 * 2 / 3) / 50)  # 0.8587
    # τ = 0.5, steps of 0.01. h2: 2/3 at 0.11 … 0.15; 1 at 0.16 … 0.50.
    assert nbaucc(H1, OUT, tau=0.5) == 0
    assert nbaucc(H2, OUT, tau=0.5) == pytest.approx((5 * 2 / 3 + 35) / 50)  # 0.7667


PRINTED = [(H1, 1.0, 0.145), (H2, 1.0, 0.845), (H1, 0.5, 0.0), (H2, 0.5, 0.773)]


@pytest.mark.parametrize(("confidence", "tau", "printed"), PRINTED)
@pytest.mark.parametrize("number", [float, lambda x: Fraction(str(x))], ids=["floats", "exact"])
def test_worked_example_as_printed_is_a_grid_of_two_hundredths_that_stops_short_of_1(
    confidence, tau, printed, number
):
    """All four printed values are 0.02/τ · Σ F1(t) over t = 0, 0.02, …, 0.98 with t ≤ τ.

    Rounding plays no part: exact fractions give the same. The grid does: at τ = 1 it lacks t = 1, at
    τ = 0.5 it has 25 steps where the definition says 50.
    """
    if number is float:
        grid = [float(t) for t in np.arange(0, 1, 0.02)]
    else:
        grid = [Fraction(i, 50) for i in range(50)]
    c = [number(x) for x in confidence]
    total = sum(f1(c, OUT, t) for t in grid if t <= tau)
    assert round(0.02 * total / tau, 3) == printed


def test_other_grids_do_not_print_the_papers_values():
    """Accumulating t += 0.02 drifts: 0.155 and 0.841 at τ = 1. Including t = 1, as the authors' script does,
    gives the definition's 0.159 and 0.859 there, and the printed 0.773 at τ = 0.5."""
    drifting = np.add.accumulate([0.0] + [0.02] * 49)
    assert [round(sum(f1(h, OUT, t) for t in drifting) / 50, 3) for h in (H1, H2)] == [0.155, 0.841]

    script = np.arange(0.0, 1.01, 0.02)
    assert [round(0.02 * sum(f1(h, OUT, t) for t in script), 3) for h in (H1, H2)] == [0.159, 0.859]
    assert 0.7 not in script  # 0.7000000000000001: its test `threshold in stop_points` could not stop there
    half = 0.02 / 0.5 * sum(f1(H2, OUT, t) for t in script if t <= 0.5)
    assert half == pytest.approx(nbaucc(H2, OUT, tau=0.5, steps=25))
    assert round(half, 3) == 0.773


def test_a_float_grid_can_also_print_0773_at_50_steps():
    """np.linspace misses 0.15 by a rounding error: the second way to the printed value, and why ours is
    made from integers."""
    grid = np.linspace(0.01, 0.5, 50)
    assert grid[14] > 0.15 == 0.5 * 15 / 50
    assert round(float(f1_curve(H2, OUT, grid).mean()), 3) == 0.773
