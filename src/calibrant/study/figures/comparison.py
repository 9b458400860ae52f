"""The three models that the paper's first figure and its sequel set side by side."""

from calibrant.study.cells import Cell
from calibrant.study.figures.base import DatasetCells
from calibrant.study.figures.captions import encoder

TEXTCNN, PLAIN, SMOOTHED = ("bert", "model=textcnn"), ("bert", ""), ("manifold-smoothing", "")
OPTIONS = "--methods bert,manifold-smoothing --parts main,textcnn"


def side_by_side(cells: DatasetCells) -> dict[str, Cell]:
    """TextCNN, the encoder fine-tuned plainly and with manifold smoothing: title → cell of one seed.

    The smallest seed that all three have. Not the seeds pooled: where one model is over- and another
    under-confident in a bin, pooling hides both, and shows an ECE that no model has.
    """
    found = [cells.of(*which) for which in (TEXTCNN, PLAIN, SMOOTHED)]
    names = ("TextCNN (bert,model=textcnn)", "bert", "manifold-smoothing")
    missing = [name for name, by_seed in zip(names, found, strict=True) if not by_seed]
    if missing:
        raise cells.lacks(missing, OPTIONS)
    common = set.intersection(*map(set, found))
    if not common:
        raise cells.lacks(["one seed for TextCNN, bert and manifold-smoothing alike"], OPTIONS)
    textcnn, plain, smoothed = (by_seed[min(common)] for by_seed in found)
    return {
        "TextCNN": textcnn,
        f"{encoder(plain)}, plain": plain,
        f"{encoder(smoothed)}, manifold smoothing": smoothed,
    }
