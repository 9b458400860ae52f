import numpy as np
import pytest
import torch
from matplotlib.patches import Rectangle

from calibrant.objectives.functional import cosine_distance
from calibrant.pages.plots import figure_bytes
from calibrant.study.figures import illustration
from calibrant.study.figures.illustration import DELTA_OFF, DELTA_ON, SHOWN, draw


@pytest.fixture(scope="module")
def drawn():
    """What was drawn, and the networks behind it."""
    networks, train = [], illustration.train
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(illustration, "train", lambda *a, **k: networks.append(train(*a, **k)) or networks[-1])
        torch.manual_seed(5)
        drawing = draw()
        after = torch.rand(3)
    torch.manual_seed(5)
    assert torch.equal(after, torch.rand(3)), "the caller's random numbers were advanced"
    return drawing, networks


@pytest.fixture
def samples(drawn):
    """(SHOWN, 2) of each marker in the first panel, by the legend's name."""
    axes = drawn[0].figure.axes[0]
    return {
        c.get_label(): c.get_offsets().data for c in axes.collections if not c.get_label().startswith("_")
    }


def test_on_manifold_samples_near_their_partners_within_the_ball(drawn, samples):
    x, partner, on = samples["x"], samples["partner of x"], samples["x′, on the manifold"]
    assert x.shape == (SHOWN, 2)
    assert np.abs(on - x).max() <= DELTA_ON + 1e-6
    f = drawn[1][1].f

    def distance(points):
        return cosine_distance(*(f(torch.tensor(p, dtype=torch.float32)) for p in (points, partner)))

    assert (distance(on) <= distance(x)).all()
    assert (distance(on) < distance(x)).any()


def test_off_manifold_samples_lie_on_the_square(drawn, samples):
    x, off = samples["x"], samples["x″, off the manifold"]
    np.testing.assert_allclose(np.abs(off - x).max(axis=1), DELTA_OFF, atol=1e-6)
    squares = [patch.get_bbox() for patch in drawn[0].figure.axes[0].patches if isinstance(patch, Rectangle)]
    np.testing.assert_allclose([(box.p0 + box.p1) / 2 for box in squares], x, atol=1e-6)


def test_smoothing_lowers_the_confidence_off_the_moons_and_keeps_the_classes(drawn):
    """The claim of the picture: sure on the moons, unsure around them, where plain training is sure too."""
    _, (plain, smoothed) = drawn
    points, classes = illustration.make_moons(200, noise=0.1, random_state=0)
    x, y = torch.tensor(points, dtype=torch.float32), torch.tensor(classes)
    _, off = smoothed.samples(x, y, torch.arange(200))

    def confidence(network, where):
        with torch.no_grad():
            return network.g(network.f(where)).softmax(dim=1).amax(dim=1).mean().item()

    for network in (plain, smoothed):
        assert (network.g(network.f(x)).argmax(dim=1) == y).float().mean() > 0.98
    assert confidence(plain, off) > 0.9
    assert confidence(smoothed, off) < 0.75
    assert confidence(smoothed, x) > 0.85


def test_the_figure_and_its_caption_say_that_the_deltas_are_exaggerated(drawn):
    drawing = drawn[0]
    assert drawing.figure.get_suptitle() == (
        f"Two moons: δ_on = {DELTA_ON} and δ_off = {DELTA_OFF}, exaggerated so that they can be seen"
    )
    assert "the first two are exaggerated" in drawing.caption
    assert [axes.get_title() for axes in drawing.figure.axes[1:3]] == ["plain training", "smoothed training"]


def test_again_it_is_the_same(monkeypatch):
    monkeypatch.setattr(illustration, "STEPS", 20)
    assert figure_bytes(draw().figure) == figure_bytes(draw().figure)
