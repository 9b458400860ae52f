import numpy as np
import pytest

from calibrant.metrics import f1_curve, nbaucc
from calibrant.study.figures.base import NotMeasured
from calibrant.study.figures.curves import STYLES, draw, misclassified, unfamiliar

METHODS = ("bert", "label-smoothing", "manifold-smoothing")


@pytest.fixture
def cells(make):
    for method in METHODS:
        for seed in range(3):
            make(method=method, seed=seed)
    make(method="manifold-smoothing", delta_on=0.1)  # of the parameter study
    return make.of()


def lines(axes):
    return {line.get_label(): line for line in axes.lines if line.get_label() in METHODS}


def test_the_mean_of_a_curve_is_nbaucc(cells):
    for axes, detection in zip(draw(cells).figure.axes, (misclassified, unfamiliar), strict=True):
        assert list(lines(axes)) == list(METHODS)
        for method, line in lines(axes).items():
            values = [
                nbaucc(*detection(cells.confidences(cell)), tau=1) for cell in cells.of(method).values()
            ]
            assert line.get_ydata().mean() == pytest.approx(np.mean(values), abs=1e-12)


@pytest.mark.parametrize(("panel", "group"), [(0, "misclassification"), (1, "ood")])
def test_it_is_the_one_that_evaluate_measured(cells, panel, group):
    for method, line in lines(draw(cells).figure.axes[panel]).items():
        measured = [cell.metrics[group]["nbaucc_1.0"] for cell in cells.of(method).values()]
        assert line.get_ydata().mean() == pytest.approx(np.mean(measured), abs=1e-3)  # stored in 16 bits


def test_thresholds_and_band(cells):
    axes = draw(cells).figure.axes[0]
    line = lines(axes)["bert"]
    np.testing.assert_allclose(line.get_xdata(), np.arange(1, 51) / 50, atol=1e-15)
    pairs = [misclassified(cells.confidences(cell)) for cell in cells.of("bert").values()]
    curves = np.stack([f1_curve(*pair, line.get_xdata()) for pair in pairs])
    deviation = curves.std(axis=0, ddof=1)
    drawn = axes.collections[0].get_paths()[0].vertices
    at = drawn[np.isclose(drawn[:, 0], 0.8)][:, 1]
    mean = curves.mean(axis=0)
    expected = [mean[39] - deviation[39], mean[39] + deviation[39]]
    assert [at.min(), at.max()] == pytest.approx(expected, abs=1e-12)


def test_every_method_has_a_look_of_its_own():
    looks = [(style["color"], style["linestyle"]) for style in STYLES.values()]
    assert len(set(looks)) == len(looks)


def test_one_seed_has_no_band_and_the_caption_says_who_has_fewer(make):
    make(method="manifold-smoothing", seed=0)
    for seed in (0, 1):
        make(seed=seed)
    drawing = draw(make.of())
    bands = [band.get_paths() for band in drawing.figure.axes[0].collections]
    assert [len(paths[0].vertices) > 50 if paths else False for paths in bands] == [True, False]
    assert drawing.caption.endswith("bert: seeds 0, 1; manifold-smoothing: seed 0.")


def test_without_unfamiliar_text_there_is_one_panel(make):
    make(ood=0)
    drawing = draw(make.of())
    assert [axes.get_title() for axes in drawing.figure.axes] == ["finding misclassified text"]


def test_nothing_to_draw(make):
    make(model="textcnn")
    with pytest.raises(NotMeasured) as error:
        draw(make.of())
    assert str(error.value) == (
        f"{make.path} has no cells of any method on 20ng-15; get them with "
        f"`calibrant study run --datasets 20ng-15 --parts main --out {make.path}`."
    )
