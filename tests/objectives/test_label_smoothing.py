import pytest
import torch

from calibrant.errors import UserError
from calibrant.objectives import CrossEntropy, LabelSmoothing
from support.training_steps import (
    assert_is_cross_entropy,
    assert_same,
    gradients,
    make_batch,
    step,
    tiny_model,
)


def test_it_is_the_cross_entropy_against_smoothed_labels():
    model, batch = tiny_model(), make_batch()
    p = model(input_ids=batch.input_ids, attention_mask=batch.attention_mask).logits.softmax(-1)
    total = 0
    for i, label in enumerate(batch.labels):
        for k in range(3):
            y = (1 - 0.2 if k == label else 0) + 0.2 / 3
            total = total - y * p[i, k].log() / len(batch)
    loss, found = step(LabelSmoothing(0.2))
    assert_same((loss.total, found), (total, gradients(total, model)))


def test_the_log_shows_the_plain_cross_entropy():
    torch.testing.assert_close(step(LabelSmoothing(0.2))[0].terms["ce"], step(CrossEntropy())[0].terms["ce"])


def test_without_smoothing_it_is_cross_entropy():
    assert_is_cross_entropy(LabelSmoothing(0))


@pytest.mark.parametrize("smoothing", [-0.1, 1.0, float("nan")])
def test_a_share_outside_the_unit_interval_is_refused(smoothing):
    with pytest.raises(UserError) as error:
        LabelSmoothing(smoothing)
    assert str(error.value) == f"`smoothing` must lie in [0, 1), got {smoothing}."
