import numpy as np
import pytest

from calibrant.errors import UserError
from calibrant.metrics import expected_calibration_error
from calibrant.metrics.miscalibration import Miscalibration, miscalibration
from calibrant.types import Prediction


def answers(n, shift=0.0, seed=0):
    """Two classes; confidence is the probability of being right, plus a shift."""
    rng = np.random.default_rng(seed)
    truth = rng.uniform(0.6, 0.9, n)
    c = truth + shift
    return Prediction(np.stack([c, 1 - c], axis=1), (rng.random(n) >= truth).astype(int))


def test_a_calibrated_model_is_called_so_in_95_of_100_samples():
    called = [miscalibration(answers(100, seed=seed)).direction for seed in range(40)]
    assert called.count("calibrated") >= 40 * 0.95 - 3 * (40 * 0.05 * 0.95) ** 0.5


@pytest.mark.parametrize(("shift", "direction"), [(0.09, "over-confident"), (-0.09, "under-confident")])
def test_a_shift_is_found(shift, direction):
    prediction = answers(2000, shift)
    found = miscalibration(prediction)
    assert found.direction == direction
    assert found.gap == pytest.approx(shift, abs=0.03)
    assert found.interval[0] < found.gap < found.interval[1]
    assert found.ece == expected_calibration_error(prediction.probabilities, prediction.labels)
    assert found.ece > found.chance


def test_the_interval_is_that_of_a_mean():
    prediction = answers(400)
    low, high = miscalibration(prediction).interval
    gaps = prediction.confidence - (prediction.predicted == prediction.labels)
    half = 1.96 * gaps.std() / len(gaps) ** 0.5
    assert (low, high) == pytest.approx((gaps.mean() - half, gaps.mean() + half), abs=0.1 * half)


def test_chance_shrinks_with_the_number_of_texts():
    few, many = (miscalibration(answers(n)).chance for n in (50, 5000))
    assert 0.1 < few < 0.25
    assert 0.01 < many < 0.025


def test_errors_in_both_directions_are_uneven():
    c = np.repeat([0.95, 0.55], 500)
    right = np.concatenate([np.arange(500) < 375, np.arange(500) < 375])  # 75 % of both
    assert (
        miscalibration(Prediction(np.stack([c, 1 - c], axis=1), (~right).astype(int))).direction == "uneven"
    )


def test_the_same_seed_gives_the_same_answer():
    assert miscalibration(answers(50), seed=3) == miscalibration(answers(50), seed=3)


def test_labels_are_needed():
    with pytest.raises(UserError, match=r"^Miscalibration needs the true labels of the texts, got none"):
        miscalibration(Prediction(np.array([[0.5, 0.5]])))


def test_direction_by_chance():
    assert Miscalibration(0.1, (0.05, 0.15), ece=0.1, chance=0.1).direction == "calibrated"
