import math

import pytest
import torch
from torch.nn.functional import cross_entropy

from calibrant.objectives.functional import cosine_distance, kl_divergence, negative_entropy


def test_cosine_distance_by_hand():
    a = torch.tensor([[1.0, 0.0], [1.0, 0.0], [2.0, 0.0], [3.0, 4.0]])
    b = torch.tensor([[5.0, 0.0], [0.0, 2.0], [-1.0, 0.0], [4.0, 3.0]])
    torch.testing.assert_close(cosine_distance(a, b), torch.tensor([0.0, 1.0, 2.0, 0.04]))


def test_kl_by_hand():
    target = torch.tensor([[0.9, 0.1, 0.0]])
    logits = torch.tensor([[0.5, 0.25, 0.25]]).log()
    expected = 0.9 * math.log(0.9 / 0.5) + 0.1 * math.log(0.1 / 0.25)
    assert kl_divergence(target, logits).item() == pytest.approx(expected, rel=1e-6)
    labels = torch.tensor([1])
    one_hot = torch.tensor([[0.0, 1.0, 0.0]])
    torch.testing.assert_close(kl_divergence(one_hot, logits)[0], cross_entropy(logits, labels))


def test_entropy_is_finite_where_a_probability_underflows():
    logits = torch.tensor([[0.0, 0.0, 0.0, 0.0], [1e4, 0.0, -1e4, 0.0]], requires_grad=True)
    value = negative_entropy(logits)
    torch.testing.assert_close(value, torch.tensor([-math.log(4), 0.0]))
    value.sum().backward()
    assert torch.isfinite(logits.grad).all()
