"""What every discovered entry must keep to."""

import contextlib
import itertools
import json

import pytest
import torch

from calibrant.calibrators import Temperature, calibrators, from_state
from calibrant.data import datasets
from calibrant.errors import UserError
from calibrant.inference import inferences
from calibrant.methods import METHODS
from calibrant.metrics import metrics
from calibrant.models import fast
from calibrant.models.split import SplitModel
from calibrant.objectives import ManifoldSmoothing, objectives
from calibrant.objectives.solvers import solvers
from calibrant.scores import scores
from calibrant.testing import check_calibrator, check_metric, check_objective, check_score
from calibrant.testing.objectives import loss_of, make_batch
from calibrant.types import Batch
from support.encoders import FAMILIES, tiny

OBJECTIVES = {name: objective() for name, objective in objectives().items()} | {
    f"manifold-smoothing by {solver}": ManifoldSmoothing(solver=solver, steps=2) for solver in solvers()
}


REFUSED = ("manifold-smoothing by yopo", "textcnn")  # it has no second layer
UNLIKE = ("bert", "deberta-v2", "textcnn")  # a first token, relative positions, convolutions: the others vary
PAIRS = [
    pytest.param(pair, marks=() if pair[1] in UNLIKE else pytest.mark.slow, id="-".join(pair))
    for pair in itertools.product(OBJECTIVES, FAMILIES)
    if pair != REFUSED
]


@pytest.fixture(params=PAIRS)
def pair(request):
    return request.param


@pytest.fixture
def objective(pair):
    return OBJECTIVES[pair[0]]


@pytest.fixture
def model(pair):
    return tiny(pair[1])


def test_an_objective(objective, model):
    check_objective(objective, model)


def test_the_pair_that_is_refused():
    with pytest.raises(UserError, match="'yopo' cannot tell which layer of TextCNN"):
        loss_of(OBJECTIVES[REFUSED[0]], tiny(REFUSED[1]))


@pytest.mark.slow
def test_all_happens_on_the_models_device(objective, model, monkeypatch):
    """There is no GPU here, but tensors of ``meta`` do not go together with those of the CPU either."""
    looks_at_values = "transformers.masking_utils._ignore_bidirectional_mask_sdpa"
    monkeypatch.setattr(looks_at_values, lambda *_, **__: False)
    monkeypatch.setattr(torch, "autocast", lambda *_, **__: contextlib.nullcontext())  # unknown to meta
    fast.apply(model.train())
    batch = make_batch(model)
    there = Batch(*(part.to("meta") for part in (batch.input_ids, batch.attention_mask, batch.labels)))
    loss = objective.loss(SplitModel(model.to("meta")), there).total
    loss.backward()
    assert loss.device.type == "meta"
    # T5 unties some weights on the way, which are then of no use.
    gradients = [weight.grad for weight in model.parameters() if weight.grad is not None]
    assert {gradient.device.type for gradient in gradients} == {"meta"}


def solution_of(name, model, **settings):
    solver = solvers()[name](**{"delta_on": 1e-2, "delta_off": 5e-2} | settings)
    torch.manual_seed(1)
    return solver.solve(SplitModel(model), make_batch(model), torch.tensor([1, 2, 3, 0]))


@pytest.mark.parametrize("steps", [1, 3])
@pytest.mark.parametrize("name", solvers())
def test_a_solver_gives_both_samples_and_the_cross_entropy(name, steps):
    model = tiny("bert").train()
    batch = make_batch(model)
    x, padding = SplitModel(model).embed(batch.input_ids).detach(), batch.attention_mask == 0
    for random in {False, solvers()[name].random_starts}:
        found = solution_of(name, model, steps=steps, random_start_on=random, random_start_off=random)
        assert all(weight.grad is None for weight in model.parameters()), "a gradient was left behind"
        assert found.ce.shape == ()
        (gradient,) = torch.autograd.grad(found.ce, model.classifier.weight)
        assert gradient.any()
        for sample, delta in ((found.on, 1e-2), (found.off, 5e-2)):
            assert not sample.requires_grad
            assert torch.equal(sample[padding], x[padding])
            moved = (sample - x).abs().flatten(1).amax(dim=1) / delta
            assert (moved > 0.9).all()
            assert (moved < 1 + 1e-4).all()  # x′ lies in a ball
        torch.testing.assert_close(moved, torch.ones(4), rtol=1e-4, atol=0)  # and x″ on a sphere


@pytest.mark.parametrize("name", solvers())
def test_a_sample_without_delta_is_left_out(name):
    model = tiny("bert").train()
    for deltas in itertools.product((None, 1e-2), repeat=2):
        found = solution_of(name, model, delta_on=deltas[0], delta_off=deltas[1])
        assert (found.on is None, found.off is None) == (deltas[0] is None, deltas[1] is None)
        assert torch.isfinite(found.ce)


@pytest.mark.parametrize("name", [name for name, solver in solvers().items() if not solver.random_starts])
@pytest.mark.parametrize("which", ["random_start_on", "random_start_off"])
def test_a_solver_that_cannot_start_elsewhere_refuses_to(name, which):
    with pytest.raises(UserError) as refused:
        solvers()[name](1e-2, 5e-2, **{which: True})
    assert str(refused.value) == f"The solver '{name}' starts at x; take solver='pgd' for random starts."


@pytest.mark.parametrize("name", calibrators())
def test_a_calibrator(name):
    check_calibrator(calibrators()[name])


@pytest.mark.parametrize("name", scores())
def test_a_score(name):
    check_score(scores()[name])


@pytest.mark.parametrize("name", metrics())
def test_a_metric(name):
    check_metric(metrics()[name])


def test_a_calibrator_is_found_by_what_is_stored_of_it():
    fitted = Temperature(temperature=2.0)
    assert from_state(json.loads(json.dumps(fitted.state())), classes=3) == fitted


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ({"name": "temprature", "parameters": {}}, "did you mean 'temperature'"),
        ({"parameters": {}}, "state is damaged"),
        ({"name": "temperature", "parameters": {"t": 1}}, "state is damaged"),
    ],
)
def test_a_damaged_state(state, words):
    with pytest.raises(UserError, match=words):
        from_state(state)


@pytest.mark.parametrize(
    "entries",
    [objectives(), solvers(), inferences(), calibrators(), scores(), datasets()],
    ids=["objective", "solver", "inference", "calibrator", "score", "data"],
)
def test_every_entry_is_named_and_cited(entries):
    assert entries
    for name, entry in entries.items():
        assert entry.name == name
        assert any(char.isdigit() for char in entry.citation), f"{name} has no year in its citation"


def test_methods_name_only_what_exists():
    for name, method in METHODS.items():
        assert method.name == name
        assert method.objective in objectives()
        assert method.inference in inferences()
        assert method.calibrator is None or set(method.calibrator.split("+")) <= set(calibrators())
