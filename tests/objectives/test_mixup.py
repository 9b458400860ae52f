import numpy as np
import pytest
import torch
from scipy.stats import beta, kstest
from torch.nn.functional import pad

from calibrant.errors import UserError
from calibrant.models.split import SplitModel
from calibrant.objectives import CrossEntropy, Mixup
from calibrant.objectives.mixup import mixing_weight
from calibrant.types import Batch
from support.training_steps import (
    LENGTHS,
    assert_is_cross_entropy,
    assert_same,
    gradients,
    logits_of,
    make_batch,
    own_tokens,
    step,
    tiny_model,
)

WEIGHT = 0.7


@pytest.fixture
def fixed_weight(monkeypatch):
    monkeypatch.setattr("calibrant.objectives.mixup.mixing_weight", lambda alpha: WEIGHT)


def test_it_is_the_loss_of_each_mixed_pair(fixed_weight):
    """Each pair by itself, without padding: the shorter text is continued with zeros."""
    model, batch = tiny_model(), make_batch()
    x = model.get_input_embeddings()(batch.input_ids)
    torch.manual_seed(3)
    total = 0
    for i, j in enumerate(torch.randperm(5).tolist()):
        length = max(LENGTHS[i], LENGTHS[j])
        first, second = (pad(own_tokens(x, n), (0, 0, 0, length - LENGTHS[n])) for n in (i, j))
        log_p = logits_of(model, WEIGHT * first + (1 - WEIGHT) * second).log_softmax(-1)
        loss = -WEIGHT * log_p[batch.labels[i]] - (1 - WEIGHT) * log_p[batch.labels[j]]
        total = total + loss / len(batch)
    loss, found = step(Mixup())
    assert_same((loss.total, found), (total, gradients(total, model)))


def test_what_stands_at_padding_makes_no_difference(fixed_weight):
    batch = make_batch()
    other = Batch(
        batch.input_ids.masked_fill(batch.attention_mask == 0, 9), batch.attention_mask, batch.labels
    )
    assert torch.equal(step(Mixup(), batch=batch)[0].total, step(Mixup(), batch=other)[0].total)


def test_the_model_is_asked_once(monkeypatch):
    asked = []
    call = SplitModel.__call__
    monkeypatch.setattr(SplitModel, "__call__", lambda *args: asked.append(1) or call(*args))
    step(Mixup())
    assert len(asked) == 1


def test_without_mixing_it_is_cross_entropy():
    assert_is_cross_entropy(Mixup(0))
    torch.manual_seed(0)
    assert {mixing_weight(1e-9) for _ in range(100)} == {1.0}
    assert torch.equal(step(Mixup(1e-9))[0].total, step(CrossEntropy())[0].total)


@pytest.mark.parametrize("alpha", [0.2, 1.0, 4.0])
def test_the_weight_is_the_larger_part_of_a_beta_draw(alpha):
    """P(max(λ, 1 − λ) ≤ w) = F(w) − F(1 − w); seeded, and far from the critical value."""
    torch.manual_seed(0)
    weights = [mixing_weight(alpha) for _ in range(2000)]
    assert min(weights) >= 0.5
    assert max(weights) <= 1
    folded = kstest(weights, lambda w: beta.cdf(w, alpha, alpha) - beta.cdf(1 - w, alpha, alpha))
    assert folded.statistic < 0.04


@pytest.mark.parametrize("alpha", [0.01, 1e-4])
def test_a_small_alpha_hardly_mixes(alpha):
    """Where torch's own Beta answers ½: P(0.01 < λ < 0.99) ≈ α·log(99)."""
    torch.manual_seed(0)
    share = np.mean([mixing_weight(alpha) < 0.99 for _ in range(2000)])
    assert share == pytest.approx(alpha * np.log(99), abs=0.02)


@pytest.mark.parametrize("alpha", [-1, float("inf"), float("nan")])
def test_a_bad_alpha_is_refused(alpha):
    with pytest.raises(UserError) as error:
        Mixup(alpha)
    assert str(error.value) == f"`alpha` must lie in [0, ∞), got {alpha}."
