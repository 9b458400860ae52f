"""What every discovered entry must keep to."""

import dataclasses
import re

import pytest
import torch

from calibrant.data import datasets
from calibrant.inference import inferences
from calibrant.methods import METHODS
from calibrant.metrics import metrics
from calibrant.models.split import SplitModel
from calibrant.objectives import ManifoldSmoothing, objectives
from calibrant.objectives.manifold_smoothing import SOLVERS
from calibrant.types import Batch
from families import FAMILIES, tiny

# The same number on every key of a query leaves its softmax as it is: the gradient is rounding noise.
KEY_BIAS = re.compile(r"\b(key|k|k_lin)\.bias$")


def make_batch(model, texts: int) -> Batch:
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(5, 64, (texts, 8), generator=generator)
    mask = torch.ones_like(ids)
    mask[-1, 5:] = 0
    ids[mask == 0] = model.config.pad_token_id or 0
    return Batch(ids, mask, torch.arange(texts) % 3)


@pytest.fixture(params=FAMILIES)
def model(request):
    return tiny(request.param).train()


OBJECTIVES = {name: objective() for name, objective in objectives().items()} | {
    f"manifold-smoothing by {solver}": ManifoldSmoothing(solver=solver, steps=2) for solver in SOLVERS
}


@pytest.fixture(params=OBJECTIVES)
def objective(request):
    return OBJECTIVES[request.param]


def loss_of(objective, model, texts=4, seed=1):
    torch.manual_seed(seed)
    return objective.loss(SplitModel(model), make_batch(model, texts))


@pytest.mark.parametrize("precision", [torch.float32, torch.bfloat16], ids=["fp32", "bf16"])
def test_loss_and_gradients_are_finite_and_reach_every_weight(objective, model, precision):
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=precision is torch.bfloat16):
        loss = loss_of(objective, model)
    assert loss.total.shape == ()
    assert loss.total.dtype == torch.float32
    assert torch.isfinite(loss.total)
    assert all(weight.grad is None for weight in model.parameters()), "a gradient was left behind"
    loss.total.backward()
    for name, weight in model.named_parameters():
        assert weight.grad is not None, name
        assert torch.isfinite(weight.grad).all(), name
        if not KEY_BIAS.search(name):
            assert weight.grad.any(), name
    assert all(module.training for module in model.modules())
    assert "ce" in loss.terms
    assert not any(term.requires_grad for term in loss.terms.values())


def test_the_same_seed_gives_the_same_loss(objective, model):
    assert loss_of(objective, model).total == loss_of(objective, model).total


def test_a_batch_of_one_works(objective, model):
    loss = loss_of(objective, model, texts=1).total
    loss.backward()
    assert torch.isfinite(loss)
    assert all(torch.isfinite(weight.grad).all() for weight in model.parameters())


def test_evaluation_mode_is_kept(objective, model):
    model.eval()
    loss_of(objective, model)
    assert not any(module.training for module in model.modules())


def test_hyper_parameters_round_trip_through_json(objective):
    import json

    settings = json.loads(json.dumps(dataclasses.asdict(objective)))
    assert type(objective)(**settings) == objective


@pytest.mark.parametrize(
    "entries", [objectives(), inferences(), datasets()], ids=["objective", "inference", "data"]
)
def test_every_entry_is_named_and_cited(entries):
    assert entries
    for name, entry in entries.items():
        assert entry.name == name
        assert any(char.isdigit() for char in entry.citation), f"{name} has no year in its citation"
        assert entry.__doc__


def test_methods_name_only_what_exists():
    for name, method in METHODS.items():
        assert method.name == name
        assert method.objective in objectives()
        assert method.inference in inferences()
        assert method.calibrator is None


def test_every_metric_has_a_direction_and_a_title():
    for metric in metrics().values():
        assert isinstance(metric.higher_is_better, bool)
        assert metric.title
