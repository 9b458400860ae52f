import pytest
import torch

from calibrant.errors import UserError
from calibrant.models.split import SplitModel
from calibrant.objectives import VAT
from support.training_steps import (
    assert_is_cross_entropy,
    assert_same,
    count_passes,
    gradients,
    logits_of,
    make_batch,
    own_tokens,
    step,
    tiny_model,
)


def kl(p, q):
    return (p * (p / q).log()).sum()


def test_it_adds_the_divergence_to_the_virtual_adversary():
    """Text by text, without padding, from the formula."""
    model, batch = tiny_model(), make_batch()
    x = model.get_input_embeddings()(batch.input_ids)
    torch.manual_seed(3)
    d = torch.randn_like(x)
    total = 0
    for i, label in enumerate(batch.labels):
        own = own_tokens(x, i)
        clean = logits_of(model, own).softmax(-1)
        r = (1e-3 * own_tokens(d, i)).requires_grad_()
        kl(clean.detach(), logits_of(model, own.detach() + r).softmax(-1)).backward()
        perturbed = logits_of(model, own + 0.05 * r.grad.sign()).softmax(-1)
        total = total + (-clean[label].log() + 2 * kl(clean.detach(), perturbed)) / len(batch)
    loss, found = step(VAT(epsilon=0.05, lambda_vat=2, xi=1e-3))
    assert_same((loss.total, found), (total, gradients(total, model)))
    assert loss.terms["kl"] > 1e-3


def test_the_adversary_does_more_than_noise_of_the_same_size():
    loss, _ = step(VAT(epsilon=0.05))
    model, batch = tiny_model(), make_batch()
    x = model.get_input_embeddings()(batch.input_ids)
    for seed in range(5):
        torch.manual_seed(seed)
        noise = 0.05 * torch.randn_like(x).sign()
        p, q = (
            model(inputs_embeds=z, attention_mask=batch.attention_mask).logits.softmax(-1)
            for z in (x, x + noise)
        )
        assert loss.terms["kl"] > 2 * kl(p, q) / len(batch)


def test_padding_is_never_perturbed(monkeypatch):
    seen = []
    encode = SplitModel.encode
    monkeypatch.setattr(SplitModel, "encode", lambda self, x, mask: seen.append(x) or encode(self, x, mask))
    step(VAT(epsilon=0.05))
    clean, target, probe, adversary = seen
    padding = make_batch().attention_mask == 0
    for x in (probe, adversary):
        assert torch.equal(x[padding], clean[padding])
    assert torch.equal(target, clean)
    assert (probe != clean)[~padding].all()
    torch.testing.assert_close((adversary - clean).abs().amax(dim=(1, 2)), torch.full((5,), 0.05).double())


def test_dropout_acts_in_the_clean_pass_only(monkeypatch):
    modes = []
    encode = SplitModel.encode
    monkeypatch.setattr(
        SplitModel, "encode", lambda self, *args: modes.append(self.model.training) or encode(self, *args)
    )
    loss, _ = step(VAT(epsilon=1e-9), dropout=0.5)
    assert modes == [True, False, False, False]
    assert 0 <= loss.terms["kl"] < 1e-12


@pytest.mark.parametrize("settings", [{"epsilon": 0}, {"lambda_vat": 0}])
def test_without_epsilon_or_weight_it_is_cross_entropy_and_costs_no_more(settings, monkeypatch):
    assert_is_cross_entropy(VAT(**settings))
    assert count_passes(monkeypatch, VAT(**settings)) == 1
    assert count_passes(monkeypatch, VAT()) == 4


def test_nothing_is_left_behind():
    model = tiny_model()
    VAT().loss(SplitModel(model), make_batch())
    assert all(weight.grad is None for weight in model.parameters())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"epsilon": -1}, "`epsilon` must lie in [0, ∞), got -1."),
        ({"lambda_vat": float("nan")}, "`lambda_vat` must lie in [0, ∞), got nan."),
        ({"xi": 0}, "`xi` must lie in (0, ∞), got 0."),
        ({"xi": float("inf")}, "`xi` must lie in (0, ∞), got inf."),
    ],
)
def test_bad_settings_are_refused_in_one_sentence(settings, message):
    with pytest.raises(UserError) as error:
        VAT(**settings)
    assert str(error.value) == message


def test_bf16_does_not_round_the_neighbour_away():
    kls = []
    for bf16 in (False, True):
        torch.manual_seed(3)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=bf16):
            kls.append(VAT(epsilon=1e-4).loss(SplitModel(tiny_model().float()), make_batch()).terms["kl"])
    assert kls[0] == kls[1] > 0
