"""The other figures of the report, drawn into an ``Axes`` that the caller owns."""

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike, NDArray

from calibrant.metrics import f1_curve, reliability, thresholds
from calibrant.metrics.base import Floats
from calibrant.pages.plots import ACCENT, FAINT, GAP, GREEN, INK, OCHRE, PLUM, dress, legend_below

LINES = [(ACCENT, "-"), (GAP, "--"), (GREEN, "-."), (OCHRE, ":"), (PLUM, (0, (5, 1, 1, 1, 1, 1))), (INK, "-")]
"""Colour and dashes of one line after another."""

MOST_POINTS = 300  # of a line: more would not be seen, and the page must stay small
BINS = 20


def bin_counts(axes: Axes, confidence: ArrayLike, correct: ArrayLike, bins: int = 15) -> None:
    """How many texts are in each bin of the reliability diagram that stands above."""
    found = reliability(confidence, correct, bins)
    axes.bar(found.edges[:-1], found.count, np.diff(found.edges), align="edge", color=FAINT, edgecolor="none")
    for middle, count in zip((found.edges[:-1] + found.edges[1:]) / 2, found.count, strict=True):
        if count:
            axes.annotate(
                compact(int(count)),
                (middle, count),
                xytext=(0, 1.5),
                textcoords="offset points",
                ha="center",
                fontsize=6.5,
                color=INK,
            )
    dress(axes, "confidence", "texts", "")
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1.3 * found.count.max())
    axes.set_yticks([])


def compact(count: int) -> str:
    """In four characters or less, where it is below a million.

    >>> compact(999), compact(1250), compact(9960), compact(12500)
    ('999', '1.2k', '10k', '12k')
    """
    if count < 1000:
        return str(count)
    return f"{count / 1000:.1f}k" if count < 9950 else f"{count / 1000:.0f}k"


def overlaid_shares(axes: Axes, kinds: Mapping[str, Floats], xlabel: str, guess: float | None = None) -> None:
    """Of each kind of text the share in each bin of [0, 1], one outline over the other.

    Args:
        axes: where to draw.
        kinds: name → (n,) confidences or familiarities; a kind without texts is left out.
        xlabel: what they are.
        guess: the confidence of a random guess, marked where given.
    """
    edges = np.arange(BINS + 1) / BINS
    for (name, values), (colour, dashes) in zip(kinds.items(), LINES, strict=False):
        if not len(values):
            continue
        # (lo, hi], as in the reliability diagram; 0 itself goes into the first.
        index = np.maximum(np.ceil(np.asarray(values, dtype=np.float64) * BINS - 1e-9).astype(int) - 1, 0)
        share = np.bincount(index, minlength=BINS) / len(values)
        axes.stairs(share, edges, fill=True, color=colour, alpha=0.13)
        label = f"{name} ({len(values):,})"
        axes.stairs(share, edges, color=colour, linestyle=dashes, linewidth=1.6, label=label)
    if guess is not None:
        axes.axvline(guess, color=INK, linewidth=1, linestyle=(0, (2, 2)), label=f"a guess ({guess:.1%})")
    dress(axes, xlabel, "share of its kind", "")
    axes.set_xlim(0, 1)
    axes.set_ylim(0, None)
    legend_below(axes)


def risk_coverage_lines(
    axes: Axes,
    curves: Mapping[str, tuple[Floats, Floats]],
    rules: Mapping[str, tuple[float, float | None, float]],
) -> None:
    """The error rate when only the most confident part is answered, a line for each model.

    Args:
        axes: where to draw.
        curves: name → coverages (n,) and risks (n,).
        rules: name → coverage and risk of its rule on these texts, and the risk that it promises.
    """
    top = 0.02
    for (name, (coverage, risk)), (colour, dashes) in zip(curves.items(), _styles(curves), strict=True):
        kept = thinned(len(coverage))
        axes.plot(
            coverage[kept], risk[kept], color=colour, linestyle=dashes, linewidth=1.6, label=_short(name)
        )
        top = max(top, float(risk[-1]))
        if name not in rules:
            continue
        answered, wrong, promised = rules[name]
        axes.axhline(promised, color=colour, linewidth=0.9, linestyle=(0, (2, 2)))
        if wrong is not None:
            axes.plot(
                [answered], [wrong], "o", color=colour, markersize=6, label=f"rule, promised {promised:.1%}"
            )
        top = max(top, promised)
    dress(axes, "share of familiar text answered", "wrong among the answered", "")
    _percent_axis(axes.yaxis)
    _percent_axis(axes.xaxis)
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1.25 * top)
    legend_below(axes)


def f1_lines(axes: Axes, found: Mapping[str, tuple[Floats, NDArray[np.bool_]]]) -> None:
    """F1(τ) of finding texts by confidence < τ, a line for each confidence (n,) with what should be found."""
    grid = np.concatenate([[0.0], thresholds(1.0, steps=100)])
    for (name, (confidence, positive)), (colour, dashes) in zip(found.items(), _styles(found), strict=True):
        axes.plot(
            grid,
            f1_curve(confidence, positive, grid),
            color=colour,
            linestyle=dashes,
            linewidth=1.6,
            label=_short(name),
        )
    dress(axes, "threshold τ on the confidence", "F1(τ)", "")
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    legend_below(axes)


def thinned(n: int) -> NDArray[np.integer]:
    """Positions of at most ``MOST_POINTS`` among n, the first and the last among them."""
    return np.unique(np.linspace(0, n - 1, min(n, MOST_POINTS)).round().astype(int))


def _styles(lines: Mapping[str, object]) -> list[tuple[str, object]]:
    return [LINES[i % len(LINES)] for i in range(len(lines))]


def _short(name: str) -> str:
    """As a legend can show it: short, no mathematics, and not hidden for a leading underscore."""
    name = name if len(name) <= 24 else f"…{name[-23:]}"
    return f" {name}".replace("$", r"\$") if name.startswith("_") else name.replace("$", r"\$")


def _percent_axis(axis: object) -> None:
    from matplotlib.ticker import PercentFormatter

    axis.set_major_formatter(PercentFormatter(1.0))  # type: ignore[attr-defined]
