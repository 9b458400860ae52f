"""Algorithm 1 against a loop written from the formulas, on a frozen tiny model without dropout."""

import pytest
import torch
from torch.nn.functional import cross_entropy

from calibrant.models.split import SplitModel
from calibrant.objectives.functional import cosine_distance, kl_divergence, negative_entropy
from calibrant.objectives.manifold import (
    interpolate_labels,
    off_manifold,
    on_manifold,
    project_to_sphere,
)
from support.tiny import tiny_bert

DELTA_ON, DELTA_OFF = 1e-2, 3e-2


@pytest.fixture
def setting():
    """A padded batch through a model without dropout: split, x, mask, labels."""
    torch.manual_seed(1)
    split = SplitModel(tiny_bert(dropout=0.0).double().requires_grad_(False).eval())
    ids = torch.randint(5, 64, (6, 9))
    mask = torch.ones_like(ids)
    for row, length in enumerate((9, 7, 4, 9, 3, 6)):
        mask[row, length:] = 0
        ids[row, length:] = 0
    return split, split.embed(ids), mask, torch.tensor([0, 1, 2, 0, 1, 2])


def functions(split, mask, labels):
    def features(z):
        return split.features(split.encode(z, mask), mask)

    def loss(z):
        return cross_entropy(split(z, mask), labels, reduction="none")

    return features, loss


def clip(value, low, high):
    return torch.minimum(torch.maximum(value, low), high)


@pytest.mark.parametrize("steps", [1, 3])
@pytest.mark.parametrize("random_start", [False, True])
def test_on_manifold_equals_the_formula_text_by_text(setting, steps, random_start):
    split, x, mask, labels = setting
    features, _ = functions(split, mask, labels)
    partners = torch.tensor([3, 0, 4, 1, 5, 2])  # no text its own partner: its gradient is rounding noise
    target = features(x)[partners]
    noise = None
    if random_start:
        noise = (torch.rand_like(x) * 2 - 1) * DELTA_ON * mask.unsqueeze(-1)
    result = on_manifold(features, x, target, DELTA_ON, noise, steps)

    for i in range(len(x)):
        n = int(mask[i].sum())
        original, own_mask = x[i : i + 1, :n], torch.ones(1, n, dtype=torch.long)
        partner = int(partners[i])
        m = int(mask[partner].sum())
        partner_hidden = split.encode(x[partner : partner + 1, :m], torch.ones(1, m, dtype=torch.long))
        f_partner = partner_hidden.mean(dim=1)
        z = original if noise is None else original + noise[i : i + 1, :n]
        for _ in range(steps):
            z = z.clone().requires_grad_()
            f = split.encode(z, own_mask).mean(dim=1)
            distance = 1 - (f * f_partner).sum() / (f.norm() * f_partner.norm())
            distance.backward()
            z = clip(z.detach() - DELTA_ON * z.grad.sign(), original - DELTA_ON, original + DELTA_ON)

        agree = (result[i, :n] - z[0]).abs() < 1e-9
        assert agree.all()
        assert torch.equal(result[i, n:], x[i, n:])
    assert (result - x).abs().amax() <= DELTA_ON * (1 + 1e-5)


@pytest.mark.parametrize("steps", [1, 3])
@pytest.mark.parametrize("random_start", [False, True])
def test_off_manifold_equals_the_formula_text_by_text(setting, steps, random_start):
    split, x, mask, labels = setting
    _, loss = functions(split, mask, labels)
    noise = None
    if random_start:
        noise = (torch.rand_like(x) * 2 - 1) * DELTA_OFF * mask.unsqueeze(-1)
    result = off_manifold(loss, x, DELTA_OFF, noise, steps)

    for i in range(len(x)):
        n = int(mask[i].sum())
        original, own_mask = x[i : i + 1, :n], torch.ones(1, n, dtype=torch.long)
        z = original if noise is None else original + noise[i : i + 1, :n]
        for _ in range(steps):
            z = z.clone().requires_grad_()
            (-split(z, own_mask).log_softmax(-1)[0, labels[i]]).backward()
            bound = torch.full_like(original, DELTA_OFF)
            p = z.detach() - original + DELTA_OFF * z.grad.sign()
            assert p.abs().max() >= DELTA_OFF * (
                1 - 1e-12
            )  # outside or on the sphere: its nearest point is the clip
            z = original + clip(p, -bound, bound)
        agree = (result[i, :n] - z[0]).abs() < 1e-9
        assert agree.all()
        assert torch.equal(result[i, n:], x[i, n:])
    norms = (result - x).abs().flatten(1).amax(dim=1)
    torch.testing.assert_close(norms, torch.full_like(norms, DELTA_OFF), rtol=1e-5, atol=0)


def test_a_small_step_moves_towards_the_partner_and_up_the_loss(setting):
    split, x, mask, labels = setting
    features, loss = functions(split, mask, labels)
    target = features(x).roll(1, dims=0)
    on = on_manifold(features, x, target, 1e-3)
    off = off_manifold(loss, x, 1e-3)
    assert (cosine_distance(features(on), target) < cosine_distance(features(x), target)).all()
    assert (loss(off) > loss(x)).all()


def test_samples_are_constants_and_leave_no_gradient_behind(setting):
    split, x, mask, labels = setting
    split.model.requires_grad_(True)
    x = x.detach().requires_grad_()
    features, loss = functions(split, mask, labels)
    on = on_manifold(features, x, features(x).roll(1, dims=0), DELTA_ON)
    off = off_manifold(loss, x, DELTA_OFF)
    assert not on.requires_grad
    assert not off.requires_grad
    assert x.grad is None
    assert all(weight.grad is None for weight in split.model.parameters())


def test_the_sphere_is_reached_from_inside_and_outside():
    p = torch.tensor([[[0.2, -0.05]], [[3.0, 0.5]], [[0.0, 0.0]]])
    expected = torch.tensor([[[1.0, -0.25]], [[1.0, 0.5]], [[0.0, 0.0]]])
    torch.testing.assert_close(project_to_sphere(p, 1.0), expected)


def test_zero_delta_changes_nothing():
    x = torch.randn(2, 3)
    assert torch.equal(on_manifold(lambda z: z**2, x, torch.randn(2, 3), 0.0), x)
    assert torch.equal(off_manifold(lambda z: (z**2).sum(1), x, 0.0), x)


def test_images_and_tables_work_too():
    """Nothing in the functions knows of text: any shape behind the batch will do."""
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Conv2d(1, 4, 3), torch.nn.Flatten(), torch.nn.Linear(144, 5))
    x = torch.rand(3, 1, 8, 8)
    off = off_manifold(lambda z: cross_entropy(net(z), torch.tensor([0, 1, 2]), reduction="none"), x, 0.1)
    torch.testing.assert_close((off - x).abs().flatten(1).amax(1), torch.full((3,), 0.1))


def test_interpolated_labels_by_hand():
    y = interpolate_labels(torch.tensor([0, 1]), torch.tensor([2, 1]), 3, 0.1)
    torch.testing.assert_close(y, torch.tensor([[0.9, 0.0, 0.1], [0.0, 1.0, 0.0]]))


@pytest.mark.parametrize(("classes", "expected"), [(15, 0.59), (20, 0.56), (77, 0.44)])
def test_what_the_loss_asks_for_where_the_samples_cannot_be_told_from_the_text(classes, expected):
    """docs/method.md: one prediction for x, x′ and x″, averaged over the classes of the partner."""
    p = torch.linspace(0.2, 0.99, 791).double()
    logits = torch.cat([p[:, None], ((1 - p) / (classes - 1))[:, None].expand(-1, classes - 1)], dim=1).log()
    y, partners = torch.zeros(classes, dtype=torch.long), torch.arange(classes)
    targets = interpolate_labels(y, partners, classes, delta_y=0.1).double()
    r_on = torch.stack([kl_divergence(target, logits) for target in targets]).mean(dim=0)
    loss = -logits[:, 0] + r_on + negative_entropy(logits)
    assert p[loss.argmin()].item() == pytest.approx(expected, abs=0.005)
