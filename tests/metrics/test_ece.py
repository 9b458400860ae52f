import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torchmetrics.classification import MulticlassCalibrationError

from calibrant.metrics import expected_calibration_error, reliability
from calibrant.metrics.ece import assign_bins


def two_classes(confidence, correct):
    """Probabilities (n, 2) and labels (n,) with this confidence ≥ 0.5 and correctness."""
    c = np.asarray(confidence)
    return np.stack([c, 1 - c], axis=1), np.where(correct, 0, 1)


def ece_by_loops(confidence, correct, bins):
    """The definition, one text at a time, in exact integer arithmetic for the bins' ends."""
    total = 0.0
    for b in range(bins):
        inside = [
            (c, ok)
            for c, ok in zip(confidence, correct, strict=True)
            if b / bins < c <= (b + 1) / bins or (b == 0 and c == 0)
        ]
        if inside:
            mean_confidence = sum(c for c, _ in inside) / len(inside)
            share_correct = sum(ok for _, ok in inside) / len(inside)
            total += len(inside) / len(confidence) * abs(share_correct - mean_confidence)
    return total


def random_probabilities(seed, n=500, classes=5, sharpness=2.0):
    rng = np.random.default_rng(seed)
    p = np.exp(sharpness * rng.normal(size=(n, classes)))
    return p / p.sum(axis=1, keepdims=True), rng.integers(classes, size=n)


def test_hand_computed():
    # (0.6, 0.8]: 0.7 right, 0.8 wrong -> |0.5 - 0.75|; (0.8, 1]: 0.9, 1.0 right -> |1 - 0.95|.
    p, y = two_classes([0.7, 0.8, 0.9, 1.0], [True, False, True, True])
    assert expected_calibration_error(p, y, bins=5) == pytest.approx(0.5 * 0.25 + 0.5 * 0.05)


@pytest.mark.parametrize("bins", [1, 10, 15, 20])
@pytest.mark.parametrize("seed", range(3))
def test_agrees_with_loops_and_with_torchmetrics(seed, bins):
    p, y = random_probabilities(seed)
    ours = expected_calibration_error(p, y, bins=bins)
    assert ours == pytest.approx(ece_by_loops(p.max(axis=1), p.argmax(axis=1) == y, bins))
    theirs = MulticlassCalibrationError(num_classes=p.shape[1], n_bins=bins, norm="l1")
    assert ours == pytest.approx(float(theirs(torch.from_numpy(p), torch.from_numpy(y))), abs=1e-6)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
@pytest.mark.parametrize("bins", [10, 15, 50, 100])
def test_a_confidence_on_an_edge_belongs_to_the_bin_that_ends_there(bins, dtype):
    i = np.arange(1, bins + 1)
    on_edge = (i.astype(dtype) / dtype(bins)).astype(dtype)
    assert assign_bins(on_edge, bins)[1].tolist() == (i - 1).tolist()
    above = np.nextafter(on_edge[:-1], dtype(1))
    assert assign_bins(above, bins)[1].tolist() == i[:-1].tolist()


def test_edges_that_are_multiplied_or_added_up_would_miss():
    """Why the edges come from integers, in the confidence's own precision."""
    assert np.linspace(0, 1, 11)[3] > 0.3
    assert assign_bins([0.3, np.nextafter(0.3, 1)], bins=10)[1].tolist() == [2, 3]
    assert np.cumsum([1 / 15] * 15)[-1] < 1  # `sum` is compensated since Python 3.12
    assert assign_bins([1.0])[1].tolist() == [14]
    fifteenth = np.float32(1) / np.float32(15)
    assert float(fifteenth) > 1 / 15
    assert assign_bins([fifteenth])[1].tolist() == [0]


def test_zero_and_one_are_counted():
    r = reliability([0.0, 0.0, 1.0], [False, True, True])
    assert r.count.tolist() == [2] + [0] * 13 + [1]
    assert r.accuracy[[0, -1]].tolist() == [0.5, 1.0]
    assert np.isnan(r.accuracy[1:-1]).all()
    assert np.isnan(r.confidence[1:-1]).all()


@pytest.mark.parametrize(("correct", "expected"), [(True, 0.25), (False, 0.75)])
@pytest.mark.parametrize("strategy", ["width", "mass"])
def test_one_text(correct, expected, strategy):
    assert expected_calibration_error(*two_classes([0.75], [correct]), strategy=strategy) == expected


@pytest.mark.parametrize("correct", [True, False])
def test_certain_and_always_right_or_always_wrong(correct):
    p, y = two_classes(np.ones(20), np.full(20, correct))
    assert expected_calibration_error(p, y) == float(not correct)


def test_mass_bins_hold_equally_many():
    p, y = random_probabilities(0, n=150)
    confidence, correct = p.max(axis=1), p.argmax(axis=1) == y
    assert reliability(confidence, correct, 15, "mass").count.tolist() == [10] * 15
    order = np.argsort(confidence)
    by_hand = sum(abs(correct[part].mean() - confidence[part].mean()) / 15 for part in np.split(order, 15))
    assert expected_calibration_error(p, y, 15, "mass") == pytest.approx(by_hand)


@pytest.mark.parametrize("n", [1, 2, 14, 16, 157])
def test_mass_bins_lose_no_text_when_the_count_does_not_divide(n):
    p, y = random_probabilities(1, n=n)
    count = reliability(p.max(axis=1), p.argmax(axis=1) == y, 15, "mass").count
    assert count.sum() == n
    assert count.max() == -(-n // 15)


def test_ties_share_a_mass_bin():
    assert assign_bins([0.5, 0.5, 0.5, 0.9], bins=2, strategy="mass")[1].tolist() == [0, 0, 0, 1]
    assert assign_bins([0.7] * 9, bins=3, strategy="mass")[1].tolist() == [0] * 9


texts = st.lists(
    st.tuples(st.integers(0, 30).map(lambda i: 0.5 + i / 60), st.booleans()), min_size=1, max_size=40
)


@given(texts, st.sampled_from(["width", "mass"]), st.randoms(use_true_random=False))
def test_order_does_not_matter_and_the_range_is_0_to_1(texts, strategy, random):
    value = expected_calibration_error(*two_classes(*zip(*texts, strict=True)), strategy=strategy)
    assert 0 <= value <= 1
    random.shuffle(texts)
    shuffled = expected_calibration_error(*two_classes(*zip(*texts, strict=True)), strategy=strategy)
    assert shuffled == pytest.approx(value, abs=1e-12)
