"""Parameter study: what δ_on, δ_off and δ_y of manifold smoothing do, one at a time."""

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from calibrant.pages.plots import ACCENT, FAINT, INK, dress
from calibrant.study.cells import Cell
from calibrant.study.figures.base import DatasetCells, Drawing, FigureOfCells, mean_and_deviation
from calibrant.study.figures.captions import about
from calibrant.study.measures import measures

METHOD = "manifold-smoothing"
PARAMETERS = {
    "delta_on": r"$\delta_\mathrm{on}$",
    "delta_off": r"$\delta_\mathrm{off}$",
    "delta_y": r"$\delta_y$",
}
ROWS = {
    "Accuracy, %": "accuracy",
    "ECE, %": "ece",
    "NBAUCC 0.5, %\nmisclassified": "misclassification.nbaucc_0.5",
    "NBAUCC 0.5, %\nunfamiliar": "ood.nbaucc_0.5",
}
"""What the paper's figure shows, by the names of ``measures``."""


def draw(cells: DatasetCells) -> Drawing:
    """A column for each δ, a row for each number; the δ that the others were measured with is marked."""
    points = {name: tried(cells, name) for name in PARAMETERS}
    missing = [f"{METHOD},{name}=…" for name, by_value in points.items() if not by_value]
    if missing:
        raise cells.lacks(missing, "--parts parameters")
    used = [cell for by_value in points.values() for at in by_value.values() for cell in at]
    found = {title: measures()[name].of for title, name in ROWS.items()}
    rows = {title: number for title, number in found.items() if None not in map(number, used)}
    figure = Figure(figsize=(9.6, 1.9 * len(rows) + 0.6), layout="constrained")
    grid = figure.subplots(len(rows), len(points), sharex="col", sharey="row", squeeze=False)
    for row, (title, number) in zip(grid, rows.items(), strict=True):
        for axes, (name, by_value) in zip(row, points.items(), strict=True):
            numbers = {delta: list(map(number, at)) for delta, at in by_value.items()}
            _panel(axes, {delta: [100 * n for n in at if n is not None] for delta, at in numbers.items()})
            for default in _defaults(name, points):
                axes.axvline(default, color=FAINT, linestyle="--", linewidth=1)
            dress(axes, "", title if axes is row[0] else "", title="")
    for axes, symbol in zip(grid[-1], PARAMETERS.values(), strict=True):
        axes.set_xlabel(symbol)
    figure.suptitle(f"{METHOD}, {cells.dataset}", color=INK, fontsize=11)
    caption = (
        "Parameter study of manifold smoothing: one δ varied, the others at the values that the dashed lines "
        f"mark; mean over seeds, bars of one standard deviation. {about(used, cells.study.preset)}"
    )
    return Drawing(f"parameters-{cells.dataset}", figure, caption)


def tried(cells: DatasetCells, name: str) -> dict[float, list[Cell]]:
    """The values of one δ, all else being as ever, in their order; each with its cells of all seeds."""
    by_value: dict[float, list[Cell]] = {}
    for cell in cells.cells:
        if (
            cell.key.method == METHOD
            and cell.key.variant.startswith(f"{name}=")
            and "," not in cell.key.variant
        ):
            by_value.setdefault(cell.objective[name], []).append(cell)
    return dict(sorted(by_value.items()))


def _defaults(name: str, points: Mapping[str, Mapping[float, Sequence[Cell]]]) -> set[float]:
    """What δ was while another was varied: one value, if the study was run with one preset."""
    others = [by_value for other, by_value in points.items() if other != name]
    return {cell.objective[name] for by_value in others for at in by_value.values() for cell in at}


def _panel(axes: Axes, percent: Mapping[float, Sequence[float]]) -> None:
    means, deviations = zip(*map(mean_and_deviation, percent.values()), strict=True)
    deltas = list(percent)
    axes.errorbar(deltas, means, deviations, color=ACCENT, marker="o", markersize=4, capsize=3, linewidth=1.2)
    if 0 < 20 * deltas[0] < deltas[-1]:  # more than a decade; 0 has no place on a logarithmic axis
        axes.set_xscale("log")


PARAMETER_STUDY = FigureOfCells("parameters", draw)
