"""What every discovered entry must keep to."""

import contextlib
import dataclasses
import itertools
import json
import re

import numpy as np
import pytest
import torch

from calibrant.calibrators import calibrators, from_state
from calibrant.data import datasets
from calibrant.errors import UserError
from calibrant.inference import inferences
from calibrant.methods import METHODS
from calibrant.metrics import metrics
from calibrant.models import fast
from calibrant.models.split import SplitModel
from calibrant.objectives import ManifoldSmoothing, objectives
from calibrant.objectives.solvers import solvers
from calibrant.scores import FittedScore, scores
from calibrant.types import Batch, Outputs
from support.encoders import FAMILIES, tiny

# The same number on every key of a query leaves its softmax as it is: the gradient is rounding noise.
KEY_BIAS = re.compile(r"\b(key|k|k_lin)\.bias$")


def make_batch(model, texts: int) -> Batch:
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(5, 64, (texts, 8), generator=generator)
    mask = torch.ones_like(ids)
    mask[-1, 5:] = 0
    ids[mask == 0] = model.config.pad_token_id or 0
    return Batch(ids, mask, torch.arange(texts) % 3)


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
    """As it is while training."""
    model = tiny(pair[1]).train()
    fast.apply(model)
    return model


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
    assert set(loss.terms) <= set(objective.terms)  # each is explained where it is printed
    assert not any(term.requires_grad for term in loss.terms.values())


def test_the_pair_that_is_refused():
    with pytest.raises(UserError, match="'yopo' cannot tell which layer of TextCNN"):
        loss_of(OBJECTIVES[REFUSED[0]], tiny(REFUSED[1]))


def test_the_same_seed_gives_the_same_loss(objective, model):
    assert loss_of(objective, model).total == loss_of(objective, model).total


@pytest.mark.slow
def test_all_happens_on_the_models_device(objective, model, monkeypatch):
    """There is no GPU here, but tensors of ``meta`` do not go together with those of the CPU either."""
    looks_at_values = "transformers.masking_utils._ignore_bidirectional_mask_sdpa"
    monkeypatch.setattr(looks_at_values, lambda *_, **__: False)
    monkeypatch.setattr(torch, "autocast", lambda *_, **__: contextlib.nullcontext())  # unknown to meta
    batch = make_batch(model, 4)
    there = Batch(*(part.to("meta") for part in (batch.input_ids, batch.attention_mask, batch.labels)))
    loss = objective.loss(SplitModel(model.to("meta")), there).total
    loss.backward()
    assert loss.device.type == "meta"
    # T5 unties some weights on the way, which are then of no use.
    gradients = [weight.grad for weight in model.parameters() if weight.grad is not None]
    assert {gradient.device.type for gradient in gradients} == {"meta"}


def test_a_batch_of_one_works(objective, model):
    loss = loss_of(objective, model, texts=1).total
    loss.backward()
    assert torch.isfinite(loss)
    assert all(torch.isfinite(weight.grad).all() for weight in model.parameters())


def test_evaluation_mode_is_kept(objective, model):
    model.eval()
    loss_of(objective, model)
    assert not any(module.training for module in model.modules())


@pytest.mark.parametrize("objective", OBJECTIVES.values(), ids=OBJECTIVES)
def test_hyper_parameters_round_trip_through_json(objective):
    settings = json.loads(json.dumps(dataclasses.asdict(objective)))
    assert type(objective)(**settings) == objective


def solution_of(name, model, **settings):
    solver = solvers()[name](**{"delta_on": 1e-2, "delta_off": 5e-2} | settings)
    torch.manual_seed(1)
    return solver.solve(SplitModel(model), make_batch(model, 4), torch.tensor([1, 2, 3, 0]))


@pytest.mark.parametrize("steps", [1, 3])
@pytest.mark.parametrize("name", solvers())
def test_a_solver_gives_both_samples_and_the_cross_entropy(name, steps):
    model = tiny("bert").train()
    batch = make_batch(model, 4)
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


NEEDS = {"features", "middle", "layers"}


@pytest.mark.parametrize("entries", [calibrators(), scores()], ids=["calibrator", "score"])
def test_what_an_entry_needs_is_what_a_model_can_be_asked_for(entries):
    for name, entry in entries.items():
        assert isinstance(entry.needs, frozenset), name
        assert entry.needs <= NEEDS, name


def declared(outputs, entry):
    """The outputs without what the entry does not declare that it reads."""
    return dataclasses.replace(outputs, **dict.fromkeys(NEEDS - entry.needs))


@pytest.fixture(params=calibrators())
def calibrator(request):
    return calibrators()[request.param]()


def dev_outputs(classes=3, n=60, scale=1.0):
    rng = np.random.default_rng(0)
    y = rng.integers(0, classes, n)
    logits = 2 * rng.normal(size=(n, classes)) + 2 * np.eye(classes)[y]
    layers = rng.normal(size=(n, 3, 8)).astype(np.float32)
    return Outputs(scale * logits, layers[:, -1], layers[:, 1], layers), y


def fitted_on(calibrator, outputs, y):
    """Training texts are there for those who read them."""
    return calibrator.fit(declared(outputs, calibrator), y, (outputs, y))


def kept(calibrator):
    """All that is stored of it."""
    return calibrator.state(), {name: array.tolist() for name, array in calibrator.arrays().items()}


@pytest.mark.parametrize("classes", [2, 3, 40])
def test_calibrated_rows_are_probabilities(calibrator, classes):
    outputs, y = dev_outputs(classes)  # of 40 classes, dev lacks some
    with contextlib.nullcontext() if classes < 40 or not calibrator.learns_by_heart else pytest.warns():
        fitted = fitted_on(calibrator, outputs, y)
    for factor in (1, 1e4, 0):
        p = fitted.probabilities(dataclasses.replace(outputs, logits=factor * outputs.logits))
        assert p.shape == outputs.logits.shape
        assert p.dtype == np.float64
        assert ((p >= 0) & (p <= 1)).all()
        np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-12)


@pytest.mark.parametrize(
    "calibrator",
    # That one is not about how sure the model is, but about which texts it knows; see its own tests.
    [kind() for name, kind in calibrators().items() if name != "familiarity"],
    ids=lambda calibrator: calibrator.name,
)
def test_calibration_lowers_the_squared_error_of_over_confident_logits(calibrator):
    outputs, y = dev_outputs(scale=5)
    z = outputs.logits
    before = np.exp(z - np.logaddexp.reduce(z, axis=1, keepdims=True))
    after = fitted_on(calibrator, outputs, y).probabilities(outputs)
    assert ((after - np.eye(3)[y]) ** 2).sum() < 0.95 * ((before - np.eye(3)[y]) ** 2).sum()


def test_a_calibrator_is_the_same_from_what_is_stored_of_it(calibrator):
    outputs, y = dev_outputs()
    fitted = fitted_on(calibrator, outputs, y)
    state = json.loads(json.dumps(fitted.state(), allow_nan=False))
    again = from_state(state, {name: array.copy() for name, array in fitted.arrays().items()})
    assert type(again) is type(fitted)
    assert kept(again) == kept(fitted)
    np.testing.assert_array_equal(again.probabilities(outputs), fitted.probabilities(outputs))
    assert fitted.summary().startswith(fitted.name)


def test_fitting_changes_nothing_and_an_unfitted_calibrator_refuses(calibrator):
    outputs, y = dev_outputs()
    before = kept(calibrator)
    once, twice = (kept(fitted_on(calibrator, outputs, y)) for _ in range(2))
    assert once == twice != before == kept(calibrator)
    with pytest.raises(UserError, match=f"^The calibrator '{calibrator.name}' has not been fitted; call fit"):
        calibrator.probabilities(outputs)


def test_a_calibrator_reads_what_it_declares_and_nothing_else(calibrator):
    outputs, y = dev_outputs()
    fitted = fitted_on(calibrator, outputs, y)
    given = dataclasses.replace(outputs, calibrated=np.full((60, 3), 1 / 3))
    np.testing.assert_array_equal(
        fitted.probabilities(declared(given, calibrator)), fitted.probabilities(outputs)
    )
    for need in calibrator.needs:
        with pytest.raises(UserError, match=f"^The calibrator '{calibrator.name}' needs {need}; ask for"):
            fitted.probabilities(dataclasses.replace(outputs, **{need: None}))


@pytest.mark.parametrize(
    ("logits", "labels", "words"),
    [
        (np.zeros((2, 1)), [0, 0], r"shape \(n, K\) with K ≥ 2, got \(2, 1\)"),
        (np.zeros(3), [0], r"got \(3,\)"),
        ([[0.0, np.nan]], [0], "logits must be finite"),
        (np.zeros((0, 3)), np.array([], dtype=int), r"at least one row, got int64 labels of shape \(0,\)"),
        (np.zeros((2, 3)), [0], r"labels of shape \(1,\) for logits of shape \(2, 3\)"),
        (np.zeros((2, 3)), [0.0, 1.0], "got float64 labels"),
        (np.zeros((2, 3)), [0, 3], r"labels must lie in 0\.\.2 for 3 columns of logits, got 0\.\.3"),
    ],
)
def test_what_a_calibrator_is_not_fitted_on(calibrator, logits, labels, words):
    with pytest.raises(UserError, match=words):
        calibrator.fit(Outputs(logits), labels)


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


def made_outputs(n, seed=0, far=False):
    """Of texts in three classes, or far from all: equal logits, and features where no class has any."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    logits = 6 * np.eye(3)[y] + rng.normal(size=(n, 3))
    features = 4 * np.eye(8)[y] + rng.normal(size=(n, 8))
    layers = features[:, None] + 0.3 * rng.normal(size=(n, 4, 8))
    if far:
        logits, features, layers = 0.1 * rng.normal(size=(n, 3)), -5 * features, -5 * layers
    layers = layers.astype(np.float32)
    return Outputs(logits, features.astype(np.float32), layers[:, 2], layers), y


@pytest.fixture(params=scores())
def score(request):
    kind = scores()[request.param]()
    return kind.fit(*made_outputs(60)) if kind.learns else kind


def test_a_score_is_larger_where_text_is_less_familiar(score):
    familiar, unfamiliar = score(made_outputs(30, seed=1)[0]), score(made_outputs(20, seed=2, far=True)[0])
    assert (familiar.shape, unfamiliar.shape) == ((30,), (20,))
    assert familiar.dtype == np.float64
    assert np.isfinite(familiar).all()
    assert np.isfinite(unfamiliar).all()
    assert np.median(unfamiliar) > familiar.max()


def test_a_score_of_a_text_does_not_depend_on_its_company(score):
    outputs, _ = made_outputs(30, seed=1)
    alone = [score(outputs[np.array([i])]) for i in range(30)]
    np.testing.assert_allclose(np.concatenate(alone), score(outputs), rtol=1e-9, atol=1e-9)


def test_a_score_reads_what_it_declares_and_nothing_else(score):
    outputs, _ = made_outputs(30, seed=1)
    np.testing.assert_array_equal(score(declared(outputs, score)), score(outputs))


FITTED = [name for name, kind in scores().items() if kind.learns]


def test_scores_that_learn_are_those_that_can_be_fitted():
    assert [name for name, kind in scores().items() if issubclass(kind, FittedScore)] == FITTED


@pytest.mark.parametrize("name", FITTED)
def test_a_fitted_score_is_the_same_from_its_arrays(name):
    kind = scores()[name]
    fitted = kind().fit(*made_outputs(60))
    outputs, _ = made_outputs(30, seed=1)
    again = kind(**{part: array.copy() for part, array in fitted.arrays().items()})
    np.testing.assert_array_equal(again(outputs), fitted(outputs))


@pytest.mark.parametrize("name", FITTED)
def test_what_a_fitted_score_refuses(name):
    kind, (train, y) = scores()[name], made_outputs(60)
    with pytest.raises(
        UserError, match=rf"^The score '{name}' has not been fitted; call fit\(outputs, labels\)"
    ):
        kind()(train)
    fitted = kind().fit(train, y)
    for need in kind.needs:
        without = dataclasses.replace(train, **{need: None})
        for ask in (fitted, lambda outputs: kind().fit(outputs, y)):
            with pytest.raises(UserError) as refused:
                ask(without)
            assert str(refused.value) == (
                f"The score '{name}' needs {need}; ask for classifier.outputs(texts, needs={{'{need}'}})."
            )
    for outputs, labels in ((train, y[:-1]), (train[:0], y[:0])):
        with pytest.raises(UserError, match=f"'{name}' is fitted on one class id for each text and at least"):
            kind().fit(outputs, labels)


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


def test_every_metric_has_a_direction_and_a_title():
    for metric in metrics().values():
        assert isinstance(metric.higher_is_better, bool)
        assert metric.title
