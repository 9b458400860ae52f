"""Calibration curves: F1(τ) of finding misclassified, and unfamiliar, text by confidence < τ."""

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from calibrant.methods import METHODS
from calibrant.metrics import f1_curve, thresholds
from calibrant.metrics.base import Flags, Floats, unfamiliar_among_all
from calibrant.pages.plots import FAINT, GAP, INK, dress
from calibrant.study.cells import Confidences
from calibrant.study.figures.base import DatasetCells, Drawing, FigureOfCells, mean_and_deviation
from calibrant.study.figures.captions import about
from calibrant.study.rows import ROWS

# Told apart by those who see colours differently too (Okabe and Ito), the second time round by dashes.
COLOURS = (INK, "#e69f00", "#56b4e9", "#009e73", "#cc79a7", "#0072b2")
DASHES = ("-", "--", ":")
OUR_OWN = "manifold-smoothing"
STYLES: dict[str, dict[str, Any]] = {
    name: {"color": COLOURS[i % len(COLOURS)], "linestyle": DASHES[i // len(COLOURS)], "linewidth": 1.2}
    for i, name in enumerate(
        sorted(ROWS, key=lambda name: METHODS[ROWS[name].method].start == "probe")
    )  # the paper's first
} | {OUR_OWN: {"color": GAP, "linestyle": "-", "linewidth": 2.4}}


def draw(cells: DatasetCells) -> Drawing:
    """A line for each method that was measured: the mean over its seeds, in a band of one deviation."""
    measured = {name: cells.of(name) for name in ROWS if cells.of(name)}
    if not measured:
        raise cells.lacks(["any method"], "--parts main")
    used = [cell for by_seed in measured.values() for cell in by_seed.values()]
    panels = {"misclassified": misclassified, "unfamiliar": unfamiliar}
    if not all(cell.metrics["n_ood"] for cell in used):
        del panels["unfamiliar"]
    figure = Figure(figsize=(4.8 * len(panels), 4.8), layout="constrained")
    for axes, (title, detection) in zip(
        figure.subplots(1, len(panels), squeeze=False)[0], panels.items(), strict=True
    ):
        for name, by_seed in measured.items():
            pairs = [detection(cells.confidences(cell)) for cell in by_seed.values()]
            _line(axes, name, [f1_curve(*pair, thresholds()) for pair in pairs])
        axes.axvline(0.5, color=FAINT, linewidth=1)
        dress(axes, "threshold τ", "F1", title=f"finding {title} text")
        axes.set_xlim(0, 1)
        axes.set_ylim(bottom=0)
    several = any(len(by_seed) > 1 for by_seed in measured.values())
    figure.suptitle(f"{cells.dataset}{', mean over seeds' if several else ''}", color=INK, fontsize=11)
    handles, labels = figure.axes[0].get_legend_handles_labels()
    below = {"ncols": 4, "frameon": False, "fontsize": 8, "labelcolor": INK}
    figure.legend(handles, labels, loc="outside lower center", **below)
    caption = (
        "Calibration curves: F1 of finding misclassified and unfamiliar text by confidence < τ, the mean "
        "over seeds with a band of one standard deviation. NBAUCC is the mean height of a curve: NBAUCC 1 "
        f"of all of it, NBAUCC 0.5 of what lies left of the line. {about(used, cells.study.preset)}"
    )
    return Drawing(f"curves-{cells.dataset}", figure, caption)


def misclassified(confidences: Confidences) -> tuple[Floats, Flags]:
    """Confidence, and which texts are to be found: those of the test texts that it got wrong."""
    return confidences.test, ~confidences.correct


def unfamiliar(confidences: Confidences) -> tuple[Floats, Flags]:
    """Confidence, and which texts are to be found: the unfamiliar among all."""
    return unfamiliar_among_all(confidences.test, confidences.ood)


def _line(axes: Axes, name: str, curves: list[Floats]) -> None:
    mean, deviation = mean_and_deviation(curves)
    style = STYLES[name]
    axes.plot(thresholds(), mean, label=name, **style)
    axes.fill_between(
        thresholds(), mean - deviation, mean + deviation, color=style["color"], alpha=0.15, linewidth=0
    )


CURVES = FigureOfCells("curves", draw)
