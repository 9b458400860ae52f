import pytest

from calibrant.errors import UserError
from calibrant.objectives import EntropyRegularized
from support.training_steps import (
    assert_is_cross_entropy,
    assert_same,
    gradients,
    make_batch,
    step,
    tiny_model,
)


def test_it_is_cross_entropy_minus_beta_times_the_entropy():
    model, batch = tiny_model(), make_batch()
    p = model(input_ids=batch.input_ids, attention_mask=batch.attention_mask).logits.softmax(-1)
    total = 0
    for i, label in enumerate(batch.labels):
        entropy = -sum(p[i, k] * p[i, k].log() for k in range(3))
        total = total + (-p[i, label].log() - 0.7 * entropy) / len(batch)
    loss, found = step(EntropyRegularized(0.7))
    assert_same((loss.total, found), (total, gradients(total, model)))
    assert loss.terms["entropy"] > 0


def test_without_beta_it_is_cross_entropy():
    assert_is_cross_entropy(EntropyRegularized(0))


@pytest.mark.parametrize("beta", [-1, float("inf"), float("nan")])
def test_a_bad_beta_is_refused(beta):
    with pytest.raises(UserError) as error:
        EntropyRegularized(beta)
    assert str(error.value) == f"`beta` must lie in [0, ∞), got {beta}."
