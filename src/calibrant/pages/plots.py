"""Figures drawn into an ``Axes`` that the caller owns; no pyplot, so no state and no display."""

import io
import re
from html import escape

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from calibrant.errors import visible
from calibrant.metrics import reliability
from calibrant.metrics.base import Floats
from calibrant.metrics.bootstrap import accuracy_bands
from calibrant.metrics.ece import assign_bins

# The colours of the light page. In SVG text each becomes a CSS variable, so that a dark page can set its own.
# Each pair of them differs in hue and lightness to a colour-blind eye; lines differ in their dashes, too.
INK, FAINT, ACCENT, GAP = "#1b2a38", "#9aa7b2", "#2f6f9f", "#c8553d"
GREEN, OCHRE, PLUM = "#0b7a5c", "#8f6400", "#944a7f"
_VARIABLES = {
    INK: "--ink",
    FAINT: "--faint",
    ACCENT: "--accent",
    GAP: "--gap",
    GREEN: "--green",
    OCHRE: "--ochre",
    PLUM: "--plum",
}

FORMATS = {
    "svg": ("Date", "Creator", "Format", "Type"),
    "png": ("Software",),
    "pdf": ("CreationDate", "Creator", "Producer"),
}
"""Of files; with each the metadata that we leave out, since they tell when a figure was made."""


def reliability_diagram(
    axes: Axes, confidence: ArrayLike, correct: ArrayLike, bins: int = 15, bands: bool = False
) -> None:
    """Accuracy of each confidence bin against its mean confidence; a calibrated model is on the diagonal.

    Args:
        axes: where to draw.
        confidence: (n,) in [0, 1], on familiar text.
        correct: (n,) bool, whether the predicted class is the true one.
        bins: as in the expected calibration error, whose binning this is.
        bands: also draw what chance does to the accuracy of each bin.
    """
    r = reliability(confidence, correct, bins)
    filled = r.count > 0
    left, width = r.edges[:-1][filled], np.diff(r.edges)[filled]
    hit, said = r.accuracy[filled], r.confidence[filled]
    axes.bar(left, hit, width, align="edge", color=ACCENT, edgecolor="none", label="accuracy")
    gaps = (hit, said, GAP, "over-confident by"), (said, hit, FAINT, "under-confident by")
    for low, high, colour, label in gaps:
        axes.bar(left, np.maximum(high - low, 0), width, low, align="edge", color=colour, label=label)
    axes.plot([0, 1], [0, 1], color=INK, linestyle="--", linewidth=1)
    if bands:
        low, high = (ends[filled] for ends in accuracy_bands(r))
        axes.vlines(left + width / 2, low, high, color=INK, linewidth=1.2, label="95 % interval")
    right = np.asarray(correct).mean()
    dress(axes, "confidence", "accuracy", title=f"ECE {r.ece:.1%}, accuracy {right:.1%}")
    legend_below(axes)
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)


def reliability_picture(probabilities: Floats, labels: NDArray[np.integer]) -> NDArray[np.uint8]:
    """The same of class probabilities (n, K) and true classes (n,), as pixels, (height, width, 3)."""
    figure = Figure(figsize=(4.0, 3.6), dpi=120, layout="constrained")
    predicted = probabilities.argmax(axis=1)
    reliability_diagram(figure.add_subplot(), probabilities.max(axis=1), predicted == labels)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()  # type: ignore[no-untyped-call]
    return np.asarray(canvas.buffer_rgba())[:, :, :3].copy()  # type: ignore[no-untyped-call]


def confidence_histogram(
    axes: Axes, confidence: ArrayLike, bins: int = 15, guess: float | None = None, top: float | None = None
) -> None:
    """Share of texts in each confidence bin, with the mean.

    Args:
        axes: where to draw.
        confidence: (n,) in [0, 1].
        bins: bins of equal width.
        guess: the confidence of a random guess (1/K), marked where given: unfamiliar text belongs there.
        top: upper end of the vertical axis, so that figures side by side compare.
    """
    edges, share = _shares(confidence, bins)
    mean = float(np.mean(np.asarray(confidence), dtype=np.float64))
    axes.bar(edges[:-1], share, np.diff(edges), align="edge", color=ACCENT, edgecolor="none")
    axes.axvline(mean, color=GAP, linewidth=1.5, label="mean")
    if guess is not None:
        axes.axvline(guess, color=INK, linewidth=1, linestyle="--", label=f"random guess ({guess:.0%})")
    dress(axes, "confidence", "share of texts", title=f"mean confidence {mean:.1%}")
    legend_below(axes)
    axes.set_xlim(0, 1)
    axes.set_ylim(0, top)


def histogram_top(confidence: ArrayLike, bins: int = 15) -> float:
    """The height of the histogram's highest bar."""
    return float(_shares(confidence, bins)[1].max())


def _shares(confidence: ArrayLike, bins: int) -> tuple[Floats, Floats]:
    edges, index = assign_bins(confidence, bins)
    return edges, np.bincount(index, minlength=bins) / len(index)


def figure_bytes(figure: Figure, format: str = "svg", transparent: bool = False) -> bytes:
    """A file's content, in one of ``FORMATS``: the same figure gives the same bytes, its layout settled."""
    _settle_layout(figure)
    buffer = io.BytesIO()
    # Ids come from a hash of the content and a salt that is random otherwise; text stays text.
    with matplotlib.rc_context({"svg.hashsalt": "calibrant", "svg.fonttype": "none"}):
        figure.savefig(
            buffer, format=format, transparent=transparent, metadata=dict.fromkeys(FORMATS[format]), dpi=150
        )
    return buffer.getvalue()


def _settle_layout(figure: Figure) -> None:
    """Lay the axes out now, at rounded places.

    The solver of a constrained layout takes its constraints in the order of their addresses, so the last
    bits of a place differ from one time to the next, and with them the ids that are hashed from it.
    """
    if figure.get_layout_engine() is None:
        return
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    for axes in figure.axes:
        place = np.round(axes.get_position(original=True).bounds, 6)
        axes.set_position((place[0], place[1], place[2], place[3]), which="original")


def figure_svg(figure: Figure, prefix: str = "", label: str = "") -> str:
    """SVG text to put into a page: the same figure gives the same text.

    Args:
        figure: any figure.
        prefix: put before each id, so that the ids of two figures on a page differ.
        label: what the figure shows, for those who cannot see it.
    """
    svg = figure_bytes(figure, transparent=True).decode()
    svg = svg[svg.index("<svg") :]  # the XML declaration and doctype do not belong inside HTML
    svg = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{escape(prefix)}", svg)
    for colour, variable in _VARIABLES.items():
        svg = svg.replace(colour, f"var({variable}, {colour})")
    role = f'role="img" aria-label="{escape(visible(label))}"' if label else 'aria-hidden="true"'
    return svg.replace("<svg", f"<svg {role}", 1)


def legend_below(axes: Axes) -> None:
    """Below the axes, where it hides nothing."""
    axes.legend(
        loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=2, frameon=False, fontsize=8, labelcolor=INK
    )


def dress(axes: Axes, xlabel: str, ylabel: str, title: str) -> None:
    """Labels and colours that all figures share."""
    axes.set_xlabel(xlabel, color=INK)
    axes.set_ylabel(ylabel, color=INK)
    axes.set_title(title, color=INK, fontsize=10)
    axes.tick_params(colors=INK, labelsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(FAINT)
