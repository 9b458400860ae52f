import dataclasses

import pytest
import torch
from torch.nn.functional import cross_entropy

from calibrant.errors import UserError
from calibrant.models import fast
from calibrant.models.fast import first_token, linear
from calibrant.models.split import SplitModel
from calibrant.objectives import CrossEntropy, ManifoldSmoothing
from calibrant.objectives.functional import kl_divergence, negative_entropy
from calibrant.objectives.manifold import interpolate_labels
from calibrant.types import Batch
from support.tiny import tiny_bert


def make_batch(padding: int = 0) -> Batch:
    torch.manual_seed(2)
    ids = torch.randint(5, 64, (5, 8))
    mask = torch.ones_like(ids)
    for row, length in enumerate((8, 6, 3, 7, 5)):
        mask[row, length:] = 0
        ids[row, length:] = 0
    widened = torch.nn.functional.pad(ids, (0, padding)), torch.nn.functional.pad(mask, (0, padding))
    return Batch(*widened, torch.tensor([0, 1, 2, 1, 0]))


def loss_and_gradients(objective, batch, dropout=0.0, seed=3, prepare=first_token.apply):
    model = tiny_bert(dropout=dropout).train()
    prepare(model)
    torch.manual_seed(seed)
    loss = objective.loss(SplitModel(model), batch)
    loss.total.backward()
    return loss, {name: weight.grad for name, weight in model.named_parameters()}, model


def published(objective, batch, seed=3):
    """Algorithm 1 written plainly: separate passes, a full backward for each sample set."""
    model = tiny_bert(dropout=0.0).train()
    split, mask, labels = SplitModel(model), batch.attention_mask, batch.labels
    torch.manual_seed(seed)
    partners = torch.randperm(len(batch))
    x = split.embed(batch.input_ids).detach()

    z = x.clone().requires_grad_()
    f = split.features(split.encode(z, mask), mask)
    f_partner = split.features(split.encode(x[partners], mask[partners]), mask[partners]).detach()
    (1 - torch.cosine_similarity(f, f_partner)).sum().backward()
    on = torch.clamp(x - objective.delta_on * z.grad.sign(), x - objective.delta_on, x + objective.delta_on)

    z = x.clone().requires_grad_()
    cross_entropy(split(z, mask), labels).backward()
    off = x + objective.delta_off * z.grad.sign()
    model.zero_grad()

    ce = cross_entropy(model(input_ids=batch.input_ids, attention_mask=mask).logits, labels)
    y = interpolate_labels(labels, labels[partners], 3, objective.delta_y)
    r_on = kl_divergence(y, split(on, mask)).mean()
    r_off = negative_entropy(split(off, mask)).mean()
    total = ce + objective.lambda_on * r_on + objective.lambda_off * r_off
    total.backward()
    return total.detach(), {name: weight.grad for name, weight in model.named_parameters()}


@pytest.mark.parametrize("solver", ["pgd", "shared"])
@pytest.mark.parametrize(
    "prepare",
    [lambda model: None, first_token.apply, linear.apply, fast.apply],
    ids=["as it came", "first token", "linear", "quick"],
)
def test_solvers_equal_the_published_pass_structure(solver, prepare, monkeypatch):
    monkeypatch.setattr(linear, "TOKENS", 1)  # few are enough here
    monkeypatch.setattr(linear, "TOKENS_OF_A_TEXT", 1)
    objective = ManifoldSmoothing(solver=solver, lambda_on=0.7, lambda_off=0.3, delta_off=1e-2)
    batch = make_batch()
    expected, expected_gradients = published(objective, batch)
    loss, gradients, _ = loss_and_gradients(objective, batch, prepare=prepare)
    torch.testing.assert_close(loss.total.detach(), expected, rtol=1e-5, atol=1e-6)
    for name, gradient in expected_gradients.items():
        torch.testing.assert_close(gradients[name], gradient, rtol=1e-4, atol=1e-5, msg=name)


@pytest.mark.parametrize("solver", ["pgd", "shared"])
def test_without_perturbation_it_is_twice_cross_entropy(solver):
    objective = ManifoldSmoothing(delta_on=0, delta_off=0, lambda_off=0, delta_y=0, solver=solver)
    batch = make_batch()
    loss, gradients, _ = loss_and_gradients(objective, batch)
    plain, plain_gradients, _ = loss_and_gradients(CrossEntropy(), batch)
    assert loss.total.item() == pytest.approx(2 * plain.total.item(), abs=1e-6)
    head = "classifier.weight"
    torch.testing.assert_close(gradients[head], 2 * plain_gradients[head], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("objective", [CrossEntropy(), ManifoldSmoothing(), ManifoldSmoothing(solver="pgd")])
def test_gradients_do_not_depend_on_padding(objective):
    loss, gradients, _ = loss_and_gradients(objective, make_batch())
    padded_loss, padded_gradients, _ = loss_and_gradients(objective, make_batch(padding=40))
    torch.testing.assert_close(loss.total, padded_loss.total, rtol=1e-6, atol=1e-6)
    for name, gradient in gradients.items():
        torch.testing.assert_close(padded_gradients[name], gradient, rtol=1e-4, atol=1e-6, msg=name)


@pytest.mark.parametrize("solver", ["pgd", "shared"])
def test_a_term_of_weight_zero_costs_nothing(solver, monkeypatch):
    texts = []
    encode = SplitModel.encode
    monkeypatch.setattr(
        SplitModel, "encode", lambda self, x, mask: texts.append(len(x)) or encode(self, x, mask)
    )
    counts = {}
    for on, off in ((0, 0), (1, 0), (0, 1), (1, 1)):
        texts.clear()
        loss, _, _ = loss_and_gradients(
            ManifoldSmoothing(lambda_on=on, lambda_off=off, solver=solver), make_batch()
        )
        counts[on, off] = sum(texts) / len(make_batch())
        assert set(loss.terms) == {"ce"} | ({"r_on"} if on else set()) | ({"r_off"} if off else set())
    expected = {
        "pgd": {(0, 0): 1, (1, 0): 3, (0, 1): 3, (1, 1): 4},
        "shared": {(0, 0): 1, (1, 0): 2, (0, 1): 2, (1, 1): 3},
    }
    assert counts == expected[solver]


@pytest.mark.parametrize("solver", ["pgd", "shared"])
def test_dropout_is_off_while_generating_and_back_on_after(solver, monkeypatch):
    modes = []
    encode = SplitModel.encode
    monkeypatch.setattr(
        SplitModel, "encode", lambda self, *args: modes.append(self.model.training) or encode(self, *args)
    )
    _, _, model = loss_and_gradients(ManifoldSmoothing(solver=solver), make_batch(), dropout=0.5)
    # pgd: both directions | clean | x′ and x″. shared: clean for both directions | x′ and x″.
    assert modes == {"pgd": [False, True, True], "shared": [False, True]}[solver]
    assert all(module.training for module in model.modules())


def test_a_module_kept_in_evaluation_mode_stays_there():
    model = tiny_bert(dropout=0.5).train()
    model.bert.embeddings.eval()
    ManifoldSmoothing().loss(SplitModel(model), make_batch())
    assert not model.bert.embeddings.training
    assert not model.bert.embeddings.dropout.training
    assert model.bert.encoder.training


@pytest.mark.parametrize("solver", ["pgd", "shared"])
def test_several_inner_steps_go_further(solver):
    one, _, _ = loss_and_gradients(ManifoldSmoothing(solver=solver, delta_off=0.05), make_batch())
    three, _, _ = loss_and_gradients(ManifoldSmoothing(solver=solver, delta_off=0.05, steps=3), make_batch())
    assert three.terms["ce"] == one.terms["ce"]
    assert three.terms["r_off"] != one.terms["r_off"]
    other = "pgd" if solver == "shared" else "shared"
    same, _, _ = loss_and_gradients(ManifoldSmoothing(solver=other, delta_off=0.05, steps=3), make_batch())
    torch.testing.assert_close(same.total, three.total, rtol=1e-5, atol=1e-5)


def test_random_starts_change_the_samples():
    plain, _, _ = loss_and_gradients(ManifoldSmoothing(solver="pgd", delta_off=0.05), make_batch())
    random, _, _ = loss_and_gradients(
        ManifoldSmoothing(solver="pgd", delta_off=0.05, random_start_off=True, random_start_on=True),
        make_batch(),
    )
    assert plain.terms["ce"] == random.terms["ce"]
    assert plain.terms["r_off"] != random.terms["r_off"]


@pytest.mark.parametrize("solver", ["pgd", "shared"])
def test_a_share_of_the_batch_is_the_whole_in_expectation(solver):
    """Cross-entropy is that of all texts; the regularisers are those of the texts drawn."""
    batch = make_batch()
    whole, _, _ = loss_and_gradients(ManifoldSmoothing(solver=solver, lambda_on=0), batch)
    losses = [
        loss_and_gradients(ManifoldSmoothing(solver=solver, lambda_on=0, share=0.4), batch, seed=seed)[0]
        for seed in range(60)
    ]
    r_off = torch.stack([loss.terms["r_off"] for loss in losses])
    assert {round(value, 6) for value in r_off.tolist()} != {round(whole.terms["r_off"].item(), 6)}
    for loss in losses:
        torch.testing.assert_close(loss.terms["ce"], whole.terms["ce"], rtol=1e-5, atol=1e-6)
        torch.testing.assert_close(loss.total.detach(), loss.terms["ce"] + loss.terms["r_off"])
    assert (r_off.mean() - whole.terms["r_off"]).abs() < 4 * r_off.std() / 60**0.5


def test_only_the_share_is_perturbed(monkeypatch):
    sizes = []
    encode = SplitModel.encode
    monkeypatch.setattr(
        SplitModel, "encode", lambda self, x, mask: sizes.append(len(x)) or encode(self, x, mask)
    )
    loss_and_gradients(ManifoldSmoothing(share=0.4), make_batch())
    assert sizes == [2, 7]  # clean; x′, x″ and the rest together


def test_frozen_embeddings_get_no_gradient():
    for solver in ("pgd", "shared"):
        model = tiny_bert(dropout=0.0).train()
        model.get_input_embeddings().requires_grad_(False)
        ManifoldSmoothing(solver=solver).loss(SplitModel(model), make_batch()).total.backward()
        assert model.get_input_embeddings().weight.grad is None
        assert model.classifier.weight.grad is not None


def test_loss_scaling_reaches_the_shared_pass():
    """Gradient accumulation multiplies the loss; the gradients found early must follow."""
    batch = make_batch()
    _, gradients, _ = loss_and_gradients(ManifoldSmoothing(), batch)
    model = tiny_bert(dropout=0.0).train()
    torch.manual_seed(3)
    (0.25 * ManifoldSmoothing().loss(SplitModel(model), batch).total).backward()
    for name, weight in model.named_parameters():
        torch.testing.assert_close(weight.grad, 0.25 * gradients[name], rtol=1e-5, atol=1e-8, msg=name)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"delta_y": 1.5}, "`delta_y` must lie in [0, 1], got 1.5."),
        ({"lambda_on": -1}, "`lambda_on` must not be negative, got -1."),
        ({"delta_off": float("nan")}, "`delta_off` must not be negative, got nan."),
        ({"share": 0}, "`share` must lie in (0, 1], got 0."),
        ({"steps": 0}, "`steps` must be at least 1, got 0."),
        ({"solver": "pdg"}, "Unknown solver 'pdg'; did you mean 'pgd'? Known: learned, pgd, shared, yopo."),
        ({"random_start_on": True}, "The solver 'shared' starts at x; take solver='pgd' for random starts."),
    ],
)
def test_bad_settings_are_refused_in_one_sentence(settings, message):
    with pytest.raises(UserError) as error:
        ManifoldSmoothing(**settings)
    assert str(error.value) == message


def test_settings_round_trip():
    objective = ManifoldSmoothing(delta_off=2e-3, solver="pgd", random_start_on=True)
    assert ManifoldSmoothing(**dataclasses.asdict(objective)) == objective
