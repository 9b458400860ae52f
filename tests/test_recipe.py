"""A method is a choice on three axes, and whatever is named takes the place of the row's own."""

import pytest

from calibrant.config import RunConfig
from calibrant.inference.mc_dropout import MCDropout
from calibrant.recipe import read_recipe


@pytest.mark.parametrize(
    ("choices", "name", "axes"),
    [
        ({}, "manifold-smoothing", ("manifold-smoothing", "single", None)),
        (
            {"method": "temperature-scaling"},
            "temperature-scaling",
            ("cross-entropy", "single", "temperature"),
        ),
        (
            {"method": "bert", "calibrator": "temperature"},
            "temperature-scaling",
            ("cross-entropy", "single", "temperature"),
        ),
        (
            {"objective": "manifold-smoothing", "calibrator": "temperature"},
            "manifold-smoothing + temperature",
            ("manifold-smoothing", "single", "temperature"),
        ),
        ({"method": "temperature-scaling", "calibrator": "none"}, "bert", ("cross-entropy", "single", None)),
        (
            {"inference": {"name": "mc-dropout", "passes": 3}, "calibrator": "isotonic"},
            "manifold-smoothing + mc-dropout + isotonic",
            ("manifold-smoothing", "mc-dropout", "isotonic"),
        ),
        ({"objective": "cross-entropy"}, "bert", ("cross-entropy", "single", None)),
    ],
)
def test_a_method_is_a_choice_on_three_axes(choices, name, axes):
    recipe = read_recipe(RunConfig(train="a.csv", **choices))
    assert recipe.method.name == name
    calibrator = None if recipe.calibrator is None else recipe.calibrator.name
    assert (recipe.objective.name, recipe.inference.name, calibrator) == axes


def test_hyper_parameters_go_with_their_axis():
    recipe = read_recipe(
        RunConfig(train="a.csv", method="mc-dropout", inference={"passes": "20"}, objective={})
    )
    assert recipe.inference == MCDropout(passes=20)
