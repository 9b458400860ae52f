"""Reliability diagrams on familiar text: the upper row of the paper's first figure."""

from matplotlib.figure import Figure

from calibrant.pages.plots import INK, reliability_diagram
from calibrant.study.figures.base import DatasetCells, Drawing, FigureOfCells
from calibrant.study.figures.captions import about
from calibrant.study.figures.comparison import side_by_side


def draw(cells: DatasetCells) -> Drawing:
    """A panel for each of the three models, of one seed."""
    models = side_by_side(cells)
    first = next(iter(models.values()))
    figure = Figure(figsize=(9.6, 3.6), layout="constrained")
    for axes, (title, cell) in zip(figure.subplots(1, len(models)), models.items(), strict=True):
        confidences = cells.confidences(cell)
        reliability_diagram(axes, confidences.test, confidences.correct)
        axes.set_title(f"{title}\n{axes.get_title()}", color=INK, fontsize=10)
    n, seed = first.metrics["n_test"], first.key.seed
    figure.suptitle(f"{cells.dataset}, {n} test texts, seed {seed}", color=INK, fontsize=11)
    caption = (
        "Reliability diagrams: the accuracy of the texts in each of 15 bins of confidence, and its gap to "
        f"their mean confidence. {about(list(models.values()), cells.study.preset)}"
    )
    return Drawing(f"reliability-{cells.dataset}", figure, caption)


RELIABILITY = FigureOfCells("reliability", draw)
