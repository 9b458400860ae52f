import math

import pytest
import torch

from calibrant.errors import UserError
from calibrant.objectives import MMCE
from calibrant.objectives.mmce import kernel_calibration_error
from support.training_steps import (
    assert_is_cross_entropy,
    assert_same,
    gradients,
    make_batch,
    step,
    tiny_model,
)


def test_it_adds_the_kernel_calibration_error_of_the_batch():
    model, batch = tiny_model(), make_batch()
    p = model(input_ids=batch.input_ids, attention_mask=batch.attention_mask).logits.softmax(-1)
    r = [p[i].max() for i in range(5)]
    c = [float(p[i].argmax() == batch.labels[i]) for i in range(5)]
    assert 0 < sum(c) < 5
    ce = sum(-p[i, label].log() for i, label in enumerate(batch.labels)) / 5
    squared = 0
    for i in range(5):
        for j in range(5):
            squared = squared + (c[i] - r[i]) * (c[j] - r[j]) * torch.exp(-(r[i] - r[j]).abs() / 0.4) / 25
    total = ce + 3 * squared**0.5
    loss, found = step(MMCE(3))
    assert_same((loss.total, found), (total, gradients(total, model)))
    torch.testing.assert_close(loss.terms["mmce"], squared.detach() ** 0.5)


def test_by_hand():
    """One right at 0.9, one wrong at 0.5."""
    k = math.exp(-0.4 / 0.4)
    expected = math.sqrt(0.1 * 0.1 + 0.5 * 0.5 - 2 * 0.1 * 0.5 * k) / 2
    value = kernel_calibration_error(torch.tensor([0.9, 0.5]), torch.tensor([1.0, 0.0]))
    assert value.item() == pytest.approx(expected, rel=1e-6)


def test_it_vanishes_where_confidence_is_accuracy():
    right = torch.tensor([1.0, 1.0, 1.0, 0.0])
    assert kernel_calibration_error(torch.full((4,), 0.75), right).item() == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize(
    ("confidence", "correct"),
    [
        ([0.7], [1.0]),  # a batch of one
        ([0.7], [0.0]),
        ([1.0], [1.0]),  # nothing left to gain
        ([1.0, 1.0, 1.0], [1.0, 1.0, 1.0]),
        ([0.5, 0.5], [1.0, 0.0]),  # calibrated together
        ([1 / 3] * 3, [1.0, 0.0, 0.0]),  # calibrated up to rounding
        ([0.9, 0.8, 0.7], [1.0, 1.0, 1.0]),  # all right
        ([0.9, 0.8, 0.7], [0.0, 0.0, 0.0]),  # all wrong
        ([1.0, 1.0 - 1e-7], [1.0, 1.0]),
    ],
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_gradients_are_finite_and_bounded_at_the_edges(confidence, correct, dtype):
    r = torch.tensor(confidence, dtype=dtype, requires_grad=True)
    kernel_calibration_error(r, torch.tensor(correct, dtype=dtype)).backward()
    assert (r.grad.abs() <= 2).all()


def test_all_right_pulls_up_and_all_wrong_pulls_down():
    for correct, sign in ((1.0, -1), (0.0, 1)):
        r = torch.tensor([0.6, 0.7], requires_grad=True)
        kernel_calibration_error(r, torch.full((2,), correct)).backward()
        assert (r.grad * sign > 0).all()


def test_without_weight_it_is_cross_entropy():
    assert_is_cross_entropy(MMCE(0))


@pytest.mark.parametrize("weight", [-1, float("inf"), float("nan")])
def test_a_bad_weight_is_refused(weight):
    with pytest.raises(UserError) as error:
        MMCE(weight)
    assert str(error.value) == f"`weight` must lie in [0, ∞), got {weight}."
