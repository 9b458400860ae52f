"""The method on two moons: where its samples lie, and what they do to the confidence between and beyond.

In two dimensions all of it can be seen. The samples are made by the functions that train text classifiers,
``on_manifold`` and ``off_manifold``; only the network and the data are small, and the deltas large.
"""

from dataclasses import dataclass

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.contour import QuadContourSet
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from sklearn.datasets import make_moons
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from calibrant.metrics.base import Floats, Integers
from calibrant.objectives.functional import kl_divergence, negative_entropy
from calibrant.objectives.manifold import (
    interpolate_labels,
    off_manifold,
    on_manifold,
)
from calibrant.pages.plots import ACCENT, FAINT, GAP, INK, dress, legend_below
from calibrant.study.figures.base import Drawing, FigureOfItsOwn

DELTA_ON, DELTA_OFF, DELTA_Y = 0.2, 0.7, 0.1
"""The moons are three wide; a δ of the paper's size could not be seen."""
POINTS, STEPS, SHOWN, SEED = 200, 400, 4, 0
WIDTH, HEIGHT = (-2.0, 3.0), (-1.8, 2.3)


@dataclass(frozen=True)
class Network:
    """g∘f of points in the plane."""

    f: nn.Module  # (B, 2) → (B, h)
    g: nn.Module  # (B, h) → (B, 2)

    def loss(self, x: Tensor, y: Tensor) -> Tensor:
        """ℓ(g∘f(x), y), (B,)."""
        return cross_entropy(self.g(self.f(x)), y, reduction="none")

    def samples(self, x: Tensor, y: Tensor, partners: Tensor) -> tuple[Tensor, Tensor]:
        """x′ and x″ of each point."""
        on = on_manifold(self.f, x, self.f(x[partners]), DELTA_ON)
        return on, off_manifold(lambda z: self.loss(z, y), x, DELTA_OFF)


def train(x: Tensor, y: Tensor, smoothed: bool) -> Network:
    """CE, or CE + R_on + R_off, from the same start and over the same number of steps."""
    torch.manual_seed(SEED)
    f = nn.Sequential(nn.Linear(2, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh())
    network = Network(f, nn.Linear(64, 2))
    optimiser = torch.optim.Adam([*f.parameters(), *network.g.parameters()], lr=5e-3)
    for _ in range(STEPS):
        optimiser.zero_grad()
        loss = network.loss(x, y).mean()
        if smoothed:
            partners = torch.randperm(len(x))
            on, off = network.samples(x, y, partners)
            target = interpolate_labels(y, y[partners], 2, DELTA_Y)
            loss = loss + kl_divergence(target, network.g(f(on))).mean()
            loss = loss + negative_entropy(network.g(f(off))).mean()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    return network


def draw() -> Drawing:
    """The samples of a few points, then the confidence after plain and after smoothed training."""
    points, classes = make_moons(POINTS, noise=0.1, random_state=SEED)
    x, y = torch.tensor(points, dtype=torch.float32), torch.tensor(classes)
    # The caller's random numbers are not ours to advance.
    with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
        plain, smoothed = train(x, y, smoothed=False), train(x, y, smoothed=True)
        partners = torch.randperm(POINTS)
    figure = Figure(figsize=(12, 4.4), layout="constrained")
    samples, *surfaces = figure.subplots(1, 3, width_ratios=(1.3, 1, 1))
    _samples(samples, smoothed, x, y, partners)
    for axes, network, title in zip(surfaces, (plain, smoothed), ("plain", "smoothed"), strict=True):
        filled = _surface(axes, network)
        _points(axes, points, classes)
        dress(axes, "", "", title=f"{title} training")
    figure.colorbar(filled, ax=surfaces, label="confidence", shrink=0.7)
    figure.suptitle(
        f"Two moons: δ_on = {DELTA_ON} and δ_off = {DELTA_OFF}, exaggerated so that they can be seen",
        color=INK,
        fontsize=11,
    )
    caption = (
        f"Manifold smoothing on two moons ({POINTS} points, a network of two hidden layers, {STEPS} steps, "
        f"seed {SEED}), by the functions that train text classifiers. Left: x′ lies in the ball of δ_on, the "
        "way its features near those of its partner; the dotted line to the partner is the one that Mixup "
        "walks. x″ lies on the ℓ_∞ sphere of δ_off, the square, the way the loss grows. Middle, right: the "
        "confidence in each point of the plane after plain and after smoothed training. "
        f"δ_on = {DELTA_ON}, δ_off = {DELTA_OFF} and δ_y = {DELTA_Y}; the first two are exaggerated so that "
        "they can be seen."
    )
    return Drawing("illustration", figure, caption)


def _samples(axes: Axes, network: Network, x: Tensor, y: Tensor, partners: Tensor) -> None:
    _points(axes, x.numpy(), y.numpy())
    on, off = (sample[:SHOWN].numpy() for sample in network.samples(x, y, partners))
    start, end = x[:SHOWN].numpy(), x[partners[:SHOWN]].numpy()
    kinds = (
        ("partner of x", end, "s", FAINT, ":"),
        ("x′, on the manifold", on, "^", "#009e73", "-"),
        ("x″, off the manifold", off, "X", "#e69f00", "-"),
        ("x", start, "o", INK, ""),
    )
    for name, at, marker, colour, line in kinds:
        axes.plot(*np.stack([start, at]).transpose(2, 0, 1), color=colour, linestyle=line, linewidth=1)
        axes.scatter(
            at[:, 0], at[:, 1], s=36, marker=marker, label=name, zorder=3, color=colour, edgecolors="white"
        )
    for corner in start - DELTA_OFF:
        axes.add_patch(
            Rectangle(corner, 2 * DELTA_OFF, 2 * DELTA_OFF, fill=False, edgecolor="#e69f00", linewidth=0.5)
        )
    dress(axes, "", "", title="samples")
    legend_below(axes)
    axes.set(xlim=WIDTH, ylim=HEIGHT, aspect="equal")


def _surface(axes: Axes, network: Network) -> QuadContourSet:
    across, up = np.meshgrid(np.linspace(*WIDTH, 80), np.linspace(*HEIGHT, 80))
    with torch.no_grad():
        plane = torch.tensor(np.stack([across.ravel(), up.ravel()], axis=1), dtype=torch.float32)
        confidence = network.g(network.f(plane)).softmax(dim=1).amax(dim=1).reshape(across.shape)
    axes.set(aspect="equal")
    # Shades up to the half of the scale, so that the points stand out.
    return axes.contourf(
        across, up, confidence.numpy(), levels=np.linspace(0.5, 1, 11), cmap="Greys", vmin=0.5, vmax=1.5
    )


def _points(axes: Axes, points: Floats, classes: Integers) -> None:
    for label, colour in enumerate((ACCENT, GAP)):
        of_class = points[classes == label]
        axes.scatter(of_class[:, 0], of_class[:, 1], s=4, color=colour, alpha=0.7)


ILLUSTRATION = FigureOfItsOwn("illustration", draw)
