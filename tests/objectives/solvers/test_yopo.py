import copy
from collections import Counter

import pytest
import torch
import transformers as hf
from torch.nn.functional import cross_entropy

from calibrant.errors import UserError
from calibrant.models.fast import first_token
from calibrant.models.split import SplitModel
from calibrant.objectives import ManifoldSmoothing
from calibrant.objectives.functional import kl_divergence, negative_entropy
from calibrant.objectives.manifold import interpolate_labels
from calibrant.types import Batch
from support.encoders import FAMILIES, SMALL, tiny
from support.tiny import tiny_bert
from support.training_steps import assert_same, gradients, logits_of, make_batch, own_tokens, step, tiny_model

DELTA_ON, DELTA_OFF = 1e-2, 5e-2
VARIANTS = {
    "albert of 2 groups": (
        hf.AlbertForSequenceClassification,
        hf.AlbertConfig(**SMALL | {"num_hidden_layers": 4}, embedding_size=16, num_hidden_groups=2),
    ),
    "deberta-v2 with a convolution": (
        hf.DebertaV2ForSequenceClassification,
        hf.DebertaV2Config(**SMALL, pooler_hidden_size=32, conv_kernel_size=3),
    ),
}


def reference(steps):
    """One backward pass through all layers for p; then the first layer alone, text by text, unpadded."""
    model, batch = tiny_model(), make_batch()
    x = model.get_input_embeddings()(batch.input_ids)
    torch.manual_seed(3)
    partners = torch.randperm(5).tolist()

    def first_layer(z):
        return model.bert.encoder.layer[0](model.bert.embeddings(inputs_embeds=z))

    def rest(h):
        return model.bert.encoder.layer[1](h)

    own = [own_tokens(x, i).detach() for i in range(5)]
    features = [rest(first_layer(z)).mean(dim=1)[0].detach() for z in own]
    total = 0
    for i, j in enumerate(partners):
        label = batch.labels[i : i + 1]
        h = first_layer(own[i]).detach().requires_grad_()
        hidden = rest(h)
        distance = 1 - torch.cosine_similarity(hidden.mean(dim=1)[0], features[j], dim=0)
        logits = model.classifier(model.bert.pooler(hidden))
        (p_on,) = torch.autograd.grad(distance, h, retain_graph=True)
        (p_off,) = torch.autograd.grad(cross_entropy(logits, label), h)
        samples = []
        for p, delta, sign in ((p_on, DELTA_ON, -1), (p_off, DELTA_OFF, 1)):
            z = own[i].clone()
            for _ in range(steps):
                z = z.detach().requires_grad_()
                (gradient,) = torch.autograd.grad((p * first_layer(z)).sum(), z)
                move = (z.detach() - own[i] + sign * delta * gradient.sign()).clamp(-delta, delta)
                if sign == 1:
                    move = move * (delta / move.abs().max())
                z = own[i] + move
            samples.append(z)
        on, off = samples
        y = interpolate_labels(label, batch.labels[j : j + 1], 3, 0.1)
        ce = cross_entropy(logits_of(model, own_tokens(x, i)).unsqueeze(0), label)
        r_on = kl_divergence(y, logits_of(model, on).unsqueeze(0))[0]
        total = total + (ce + r_on + negative_entropy(logits_of(model, off))) / 5
    return total, gradients(total, model)


@pytest.mark.parametrize("steps", [1, 4])
def test_it_is_the_published_algorithm(steps):
    objective = ManifoldSmoothing(solver="yopo", steps=steps, delta_on=DELTA_ON, delta_off=DELTA_OFF)
    loss, found = step(objective)
    assert_same((loss.total, found), reference(steps))


def test_more_steps_give_other_samples():
    one, four = (
        step(ManifoldSmoothing(solver="yopo", steps=steps, delta_off=DELTA_OFF))[0].terms for steps in (1, 4)
    )
    assert one["ce"] == four["ce"]
    assert one["r_off"] != four["r_off"]


def build(family):
    if family in FAMILIES:
        return tiny(family)
    torch.manual_seed(0)
    cls, config = VARIANTS[family]
    return cls(copy.deepcopy(config))


@pytest.mark.parametrize("family", [*sorted(set(FAMILIES) - {"textcnn"}), *VARIANTS])
def test_one_step_is_that_of_shared_in_every_family(family):
    model = build(family).double().eval()
    first_token.apply(model)
    padding = model.config.pad_token_id or 0
    batch = make_batch()
    batch = Batch(
        batch.input_ids.masked_fill(batch.attention_mask == 0, padding), batch.attention_mask, batch.labels
    )
    samples = []
    for solver in ("shared", "yopo"):
        objective = ManifoldSmoothing(solver=solver, delta_on=DELTA_ON, delta_off=DELTA_OFF)
        partners = torch.tensor([1, 0, 3, 4, 2])
        samples.append(objective._solver.solve(SplitModel(model), batch, partners))
    shared, yopo = samples
    for name in ("ce", "on", "off"):
        torch.testing.assert_close(getattr(yopo, name), getattr(shared, name), rtol=1e-12, atol=1e-12)


def test_inner_steps_cost_the_first_layer_only():
    calls = Counter()
    model = tiny_bert(layers=3)
    first_token.apply(model)
    for number, layer in enumerate(model.bert.encoder.layer):
        layer.register_forward_hook(lambda *_, number=number: calls.update([number]))
    for steps in (1, 4):
        calls.clear()
        ManifoldSmoothing(solver="yopo", steps=steps).loss(SplitModel(model), make_batch())
        # the clean pass, x′ and x″ together; and in the first layer, the inner steps of both samples
        assert calls == {0: 2 + 2 * steps, 1: 2, 2: 2}


@pytest.mark.parametrize(("on", "off", "passes"), [(0, 0, 1), (1, 0, 2 + 3), (0, 1, 2 + 3), (1, 1, 2 + 6)])
def test_a_term_of_weight_zero_costs_nothing(on, off, passes, monkeypatch):
    modes = []
    encode = SplitModel.encode
    monkeypatch.setattr(
        SplitModel, "encode", lambda self, *args: modes.append(self.model.training) or encode(self, *args)
    )
    loss, _ = step(ManifoldSmoothing(solver="yopo", steps=3, lambda_on=on, lambda_off=off), dropout=0.5)
    assert set(loss.terms) == {"ce"} | ({"r_on"} if on else set()) | ({"r_off"} if off else set())
    assert len(modes) == passes
    assert sum(modes) == (on or off)  # dropout acts in the pass over x′ and x″ only


def test_no_hook_is_left_behind():
    model = tiny_bert()
    ManifoldSmoothing(solver="yopo").loss(SplitModel(model), make_batch())
    assert not any(module._forward_pre_hooks for module in model.modules())


def test_frozen_layers_get_no_gradient():
    model = tiny_bert().train()
    model.bert.embeddings.requires_grad_(False)
    model.bert.encoder.layer[0].requires_grad_(False)
    ManifoldSmoothing(solver="yopo").loss(SplitModel(model), make_batch()).total.backward()
    assert model.get_input_embeddings().weight.grad is None
    assert model.bert.encoder.layer[1].output.dense.weight.grad is not None


def test_an_encoder_of_one_layer_is_refused():
    with pytest.raises(UserError) as error:
        ManifoldSmoothing(solver="yopo").loss(SplitModel(tiny_bert(layers=1)), make_batch())
    assert str(error.value) == (
        "The solver 'yopo' needs an encoder of at least 2 layers, and this BertForSequenceClassification has "
        "1; take solver='shared'."
    )


def test_an_encoder_of_other_build_is_refused_by_name():
    """Funnel's layers are lists of lists."""
    config = hf.FunnelConfig(
        vocab_size=64, d_model=32, n_head=4, d_head=8, d_inner=64, block_sizes=[1, 1], num_labels=3
    )
    model = hf.FunnelForSequenceClassification(config)
    with pytest.raises(UserError) as error:
        ManifoldSmoothing(solver="yopo").loss(SplitModel(model), make_batch())
    assert str(error.value) == (
        "The solver 'yopo' cannot tell which layer of FunnelForSequenceClassification is the first; take "
        "solver='shared'."
    )


def test_random_starts_are_refused():
    with pytest.raises(UserError, match=r"^The solver 'yopo' starts at x; take solver='pgd' for random st"):
        ManifoldSmoothing(solver="yopo", random_start_off=True)
