import json

import pytest
import torch
from torch.nn.functional import cross_entropy

from calibrant.models.split import SplitModel
from calibrant.objectives import ManifoldSmoothing
from calibrant.objectives.functional import cosine_distance
from calibrant.objectives.solvers import learned
from calibrant.objectives.solvers.learned import Learned, Proposal
from calibrant.objectives.solvers.shared import Shared
from support.training_steps import make_batch, tiny_model

DELTA_ON, DELTA_OFF = 1e-2, 5e-2


@pytest.fixture
def setting():
    return SplitModel(tiny_model()), make_batch(), torch.tensor([1, 2, 3, 4, 0])


def reached(model, batch, partners, solution):
    """The two inner objectives, D_x at x′ and ℓ at x″: the first is to be low, the second high."""
    mask = batch.attention_mask
    with torch.no_grad(), model.dropout_off():

        def features(x):
            return model.features(model.encode(x, mask), mask)

        distance = cosine_distance(features(solution.on), features(model.embed(batch.input_ids))[partners])
        return float(distance.mean()), float(cross_entropy(model(solution.off, mask), batch.labels))


def test_the_proposal_by_hand():
    proposal = Proposal()
    with torch.no_grad():
        proposal.outer[0], proposal.shift[0] = 0.5, 0.1
    g, x, mask = (
        torch.tensor([[[3.0], [4.0], [9.0]]]),
        torch.tensor([[[1.0], [-1.0], [7.0]]]),
        torch.tensor([[1, 1, 0]]),
    )
    scaled = torch.tensor([3.0, 4.0]) / (12.5**0.5)
    inner = proposal.inner[0]
    hidden = torch.tanh(inner[0] * scaled + inner[1] * torch.tensor([1.0, -1.0]) + 0.1)
    expected = 0.2 * torch.tanh(2 + 0.5 * hidden)
    got = proposal(g, x, mask, 0.2)[0, :, 0]
    torch.testing.assert_close(got, torch.cat([expected, torch.zeros(1)]))


def test_it_begins_near_the_signed_step(setting):
    """The same sign everywhere, and nearly the same length."""
    model, batch, partners = setting
    x = model.embed(batch.input_ids).detach()
    ours = Learned(DELTA_ON, DELTA_OFF).solve(model, batch, partners)
    theirs = Shared(DELTA_ON, DELTA_OFF).solve(model, batch, partners)
    torch.testing.assert_close(ours.ce, theirs.ce)
    for mine, other, delta in ((ours.on, theirs.on, DELTA_ON), (ours.off, theirs.off, DELTA_OFF)):
        agreement = ((mine - x) * (other - x)).sum() / (other - x).square().sum()
        assert 0.95 < agreement <= 1
        assert ((mine - x).abs() <= delta * (1 + 1e-6)).all()


def test_the_samples_are_in_the_ball_and_on_the_sphere(setting):
    model, batch, partners = setting
    x = model.embed(batch.input_ids).detach()
    solver = Learned(DELTA_ON, DELTA_OFF)
    for _ in range(9):
        found = solver.solve(model, batch, partners)
    assert ((found.on - x).abs().amax(dim=(1, 2)) <= DELTA_ON + 1e-12).all()
    torch.testing.assert_close((found.off - x).abs().amax(dim=(1, 2)), torch.full((5,), DELTA_OFF).double())
    assert not (found.on - x)[batch.attention_mask == 0].any()
    assert not (found.off - x)[batch.attention_mask == 0].any()
    assert not found.on.requires_grad
    assert not found.off.requires_grad


def test_it_learns_to_reach_more(setting):
    """Where the model stands still, the network gets better than it was."""
    model, batch, partners = setting
    solver = Learned(DELTA_ON, DELTA_OFF)
    first = reached(model, batch, partners, solver.solve(model, batch, partners))
    for _ in range(60 * learned.EVERY):
        solver.solve(model, batch, partners)
    last = reached(model, batch, partners, solver.solve(model, batch, partners))
    assert last[0] < first[0]
    assert last[1] > first[1]


def test_every_fourth_batch_costs_two_passes_more(setting, monkeypatch):
    model, batch, partners = setting
    passes = []
    encode = SplitModel.encode
    monkeypatch.setattr(SplitModel, "encode", lambda *a: passes.append(1) or encode(*a))
    solver = Learned(DELTA_ON, DELTA_OFF)
    counts = []
    for _ in range(8):
        passes.clear()
        solver.solve(model, batch, partners)
        counts.append(len(passes))
    assert counts == [1, 1, 1, 3] * 2


def test_a_sample_that_is_not_asked_for(setting):
    model, batch, partners = setting
    assert Learned(DELTA_ON, None).solve(model, batch, partners).off is None
    assert Learned(None, DELTA_OFF).solve(model, batch, partners).on is None


def test_what_it_has_learnt_goes_through_json(setting):
    model, batch, partners = setting
    objective = ManifoldSmoothing(solver="learned")
    for _ in range(5):
        objective.loss(model, batch)
    stored = json.loads(json.dumps(objective.state()))
    assert stored["on"]["seen"] == 5
    again = ManifoldSmoothing(solver="learned")
    again.resume(stored)
    one, other = (o._solver.solve(model, batch, partners) for o in (objective, again))
    torch.testing.assert_close(one.off, other.off, rtol=0, atol=1e-9)
    objective.resume({})
    assert objective.state() == ManifoldSmoothing(solver="learned").state()
