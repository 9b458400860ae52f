"""Every objective and solver sees which text of a pair a token belongs to."""

from dataclasses import replace

import pytest
import torch

from calibrant.models.split import SplitModel
from calibrant.objectives import ManifoldSmoothing, objectives
from calibrant.objectives.solvers import solvers
from support.tiny import tiny_bert
from support.training_steps import make_batch

EVERY = [kind() for kind in objectives().values()] + [ManifoldSmoothing(solver=name) for name in solvers()]


@pytest.mark.parametrize("objective", EVERY, ids=lambda o: f"{o.name} {getattr(o, 'solver', '')}".strip())
def test_the_types_of_tokens_are_learnt_too(objective):
    model, batch = tiny_bert().train(), make_batch()
    table = model.bert.embeddings.token_type_embeddings
    types = torch.zeros_like(batch.input_ids)
    types[:, 2:] = 1
    torch.manual_seed(0)
    loss = objective.loss(SplitModel(model), replace(batch, token_type_ids=types * batch.attention_mask))
    loss.total.backward()
    assert torch.isfinite(table.weight.grad).all()
    assert table.weight.grad[1].any()
