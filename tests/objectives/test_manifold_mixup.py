import pytest
import torch

from calibrant.errors import UserError
from calibrant.models.split import SplitModel
from calibrant.objectives import CrossEntropy, ManifoldMixup
from support.encoders import tiny
from support.training_steps import (
    assert_is_cross_entropy,
    assert_same,
    count_passes,
    gradients,
    make_batch,
    own_tokens,
    step,
    tiny_model,
)

WEIGHT = 0.7


@pytest.fixture
def fixed_weight(monkeypatch):
    monkeypatch.setattr("calibrant.objectives.manifold_mixup.mixing_weight", lambda alpha: WEIGHT)


def mixed_loss(batch, pooled, head):
    """From its formula, for each pair of pooled features (1, h)."""
    torch.manual_seed(3)
    total = 0
    for i, j in enumerate(torch.randperm(5).tolist()):
        log_p = head(WEIGHT * pooled[i] + (1 - WEIGHT) * pooled[j])[0].log_softmax(-1)
        loss = -WEIGHT * log_p[batch.labels[i]] - (1 - WEIGHT) * log_p[batch.labels[j]]
        total = total + loss / len(batch)
    return total


def test_the_features_of_each_pair_are_mixed(fixed_weight):
    """BERT: the last hidden state of the first token goes through pooler and classifier."""
    model, batch = tiny_model(), make_batch()
    x = model.get_input_embeddings()(batch.input_ids)
    firsts = [model.bert(inputs_embeds=own_tokens(x, i)).last_hidden_state[:, 0] for i in range(5)]

    def head(first):
        return model.classifier(torch.tanh(model.bert.pooler.dense(first)))

    total = mixed_loss(batch, firsts, head)
    loss, found = step(ManifoldMixup())
    assert_same((loss.total, found), (total, gradients(total, model)))


@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_a_head_that_pools_over_the_tokens_gets_the_mix_of_what_it_would_pool(fixed_weight, pooling):
    """ModernBERT: a short text must not be thinned out by the length of its partner."""
    model, batch = tiny("modernbert").double(), make_batch()
    model.config.classifier_pooling = pooling
    x = model.get_input_embeddings()(batch.input_ids)
    hidden = [model.model(inputs_embeds=own_tokens(x, i)).last_hidden_state for i in range(5)]
    pooled = [states[:, 0] if pooling == "cls" else states.mean(dim=1) for states in hidden]
    total = mixed_loss(batch, pooled, lambda feature: model.classifier(model.head(feature)))
    expected = gradients(total, model)

    torch.manual_seed(3)
    loss = ManifoldMixup().loss(SplitModel(model), batch).total
    assert_same((loss, gradients(loss, model)), (total, expected))


def test_the_encoder_runs_once(monkeypatch):
    assert count_passes(monkeypatch, ManifoldMixup()) == 1


def test_without_mixing_it_is_cross_entropy():
    assert_is_cross_entropy(ManifoldMixup(0))
    assert torch.equal(step(ManifoldMixup(1e-9))[0].total, step(CrossEntropy())[0].total)


@pytest.mark.parametrize("alpha", [-1, float("inf"), float("nan")])
def test_a_bad_alpha_is_refused(alpha):
    with pytest.raises(UserError) as error:
        ManifoldMixup(alpha)
    assert str(error.value) == f"`alpha` must lie in [0, ∞), got {alpha}."
