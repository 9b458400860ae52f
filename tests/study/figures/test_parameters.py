import numpy as np
import pytest

from calibrant.study.figures.base import NotMeasured
from calibrant.study.figures.parameters import draw

VALUES = {"delta_on": (1e-5, 1e-4, 1e-3), "delta_off": (1e-4, 1e-3, 1e-1), "delta_y": (0.0, 0.1, 0.5)}


@pytest.fixture
def made(make):
    """Metrics of each cell by δ, value and seed."""
    make(method="manifold-smoothing", lambda_off=0, delta_on=0.1)  # of the ablation
    make(method="manifold-smoothing")
    return {
        (name, value, seed): make(method="manifold-smoothing", seed=seed, **{name: value})[0].metrics
        for name, values in VALUES.items()
        for value in values
        for seed in (0, 1)
    }


@pytest.mark.parametrize(
    ("row", "number"),
    [
        (0, lambda metrics: metrics["accuracy"]),
        (1, lambda metrics: metrics["ece"]),
        (2, lambda metrics: metrics["misclassification"]["nbaucc_0.5"]),
        (3, lambda metrics: metrics["ood"]["nbaucc_0.5"]),
    ],
)
def test_means_and_bars_over_the_seeds(make, made, row, number):
    axes = np.reshape(draw(make.of()).figure.axes, (4, 3))[row]
    for panel, (name, values) in zip(axes, VALUES.items(), strict=True):
        line, _, (bars,) = panel.containers[0]
        seeds = np.array([[100 * number(made[name, value, seed]) for value in values] for seed in (0, 1)])
        assert line.get_xdata().tolist() == list(values)
        np.testing.assert_allclose(line.get_ydata().astype(float), seeds.mean(axis=0), atol=1e-9)
        ends = np.array([segment[:, 1] for segment in bars.get_segments()])
        np.testing.assert_allclose(ends[:, 1] - ends[:, 0], 2 * seeds.std(axis=0, ddof=1), atol=1e-9)


def test_axes_and_defaults(make, made):
    drawing = draw(make.of())
    last = drawing.figure.axes[-3:]
    assert drawing.name == "parameters-20ng-15"
    assert [axes.get_xscale() for axes in last] == ["log", "log", "linear"]  # δ_y has a 0
    dashed = [[line.get_xdata()[0] for line in axes.lines if line.get_linestyle() == "--"] for axes in last]
    assert dashed == [[1e-4], [1e-3], [0.1]]
    assert [axes.get_xlabel() for axes in last] == [
        r"$\delta_\mathrm{on}$",
        r"$\delta_\mathrm{off}$",
        r"$\delta_y$",
    ]
    assert drawing.figure.axes[3].get_ylabel() == "ECE, %"


def test_without_unfamiliar_text_its_row_is_left_out(make):
    for name, values in VALUES.items():
        make(method="manifold-smoothing", ood=0, **{name: values[0]})
    assert len(draw(make.of()).figure.axes) == 9


def test_which_parameters_are_missing(make):
    make(method="manifold-smoothing")
    make(method="manifold-smoothing", delta_off=0.1)
    with pytest.raises(NotMeasured) as error:
        draw(make.of())
    assert str(error.value) == (
        f"{make.path} has no cells of manifold-smoothing,delta_on=…, nor of manifold-smoothing,delta_y=… on "
        "20ng-15; get them with `calibrant study run --datasets 20ng-15 --parts parameters "
        f"--out {make.path}`."
    )
