"""Histograms of the confidence on unfamiliar text: the lower row of the paper's first figure."""

from matplotlib.figure import Figure

from calibrant.pages.plots import INK, confidence_histogram, histogram_top
from calibrant.study.figures.base import DatasetCells, Drawing, FigureOfCells, NotMeasured
from calibrant.study.figures.captions import about
from calibrant.study.figures.comparison import side_by_side


def draw(cells: DatasetCells) -> Drawing:
    """A panel for each of the three models, of one seed, all to one scale."""
    models = side_by_side(cells)
    first = next(iter(models.values()))
    confidence = {title: cells.confidences(cell).ood for title, cell in models.items()}
    if not all(map(len, confidence.values())):
        raise NotMeasured(f"{cells.dataset} was measured in {cells.study.path} without unfamiliar text.")
    top = 1.05 * max(map(histogram_top, confidence.values()))
    figure = Figure(figsize=(9.6, 3.6), layout="constrained")
    for axes, (title, values) in zip(figure.subplots(1, len(models)), confidence.items(), strict=True):
        confidence_histogram(axes, values, guess=1 / first.data["test"]["classes"], top=top)
        axes.set_title(f"{title}\n{axes.get_title()}", color=INK, fontsize=10)
    n, seed = first.metrics["n_ood"], first.key.seed
    figure.suptitle(f"{cells.dataset}, {n} unfamiliar texts, seed {seed}", color=INK, fontsize=11)
    caption = (
        "Histograms of the confidence on unfamiliar text, where it should be that of a random guess. "
        f"{about(list(models.values()), cells.study.preset)}"
    )
    return Drawing(f"ood-histogram-{cells.dataset}", figure, caption)


OOD_HISTOGRAM = FigureOfCells("ood-histogram", draw)
