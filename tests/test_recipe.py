"""A method is a choice on each axis, and whatever is named takes the place of the row's own."""

from dataclasses import replace

import pytest

from calibrant.config import RunConfig
from calibrant.errors import UserError
from calibrant.inference.mc_dropout import MCDropout
from calibrant.methods import DEFAULT, METHODS
from calibrant.recipe import read_recipe


@pytest.mark.parametrize(
    ("choices", "name", "axes"),
    [
        ({}, "calibrant", ("cross-entropy", "single", "temperature+familiarity")),
        ({"method": "manifold-smoothing"}, "manifold-smoothing", ("manifold-smoothing", "single", None)),
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
            {"method": "bert", "objective": "manifold-smoothing", "calibrator": "temperature"},
            "manifold-smoothing + temperature",
            ("manifold-smoothing", "single", "temperature"),
        ),
        ({"method": "temperature-scaling", "calibrator": "none"}, "bert", ("cross-entropy", "single", None)),
        (
            {
                "method": "manifold-smoothing",
                "inference": {"name": "mc-dropout", "passes": 3},
                "calibrator": "isotonic",
            },
            "manifold-smoothing + mc-dropout + isotonic",
            ("manifold-smoothing", "mc-dropout", "isotonic"),
        ),
        (
            {"method": "manifold-smoothing", "objective": "cross-entropy"},
            "bert",
            ("cross-entropy", "single", None),
        ),
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


# the axes of the recipe

PAPER = [name for name in METHODS if name not in ("calibrant", "linear-probe")]


@pytest.mark.parametrize("name", PAPER)
def test_the_papers_rows_have_the_papers_start_head_and_epoch(name):
    method = read_recipe(RunConfig(train="a.csv", method=name)).method
    assert method == METHODS[name]
    assert (method.start, method.frozen, method.pooling) == ("random", False, "native")
    assert (method.keep, method.patience) == ("accuracy", 0)
    assert method.calibrator in (None, "temperature")


def test_the_default_is_the_recipe():
    recipe, quick = (
        read_recipe(RunConfig(train="a.csv", **more)) for more in ({}, {"method": "linear-probe"})
    )
    assert recipe.method.name == DEFAULT == "calibrant"
    assert not recipe.method.frozen
    assert quick.method.frozen
    for either in (recipe, quick):
        assert (either.method.start, either.method.keep) == ("probe", "interpolation")
        assert [part.name for part in either.calibrator.parts] == ["temperature", "familiarity"]


@pytest.mark.parametrize(
    ("axis", "value"), [("start", "random"), ("pooling", "mean"), ("keep", "accuracy"), ("patience", 3)]
)
def test_an_axis_that_is_named_takes_the_place_of_the_rows_own(axis, value):
    method = read_recipe(RunConfig(train="a.csv", **{axis: value})).method
    assert getattr(method, axis) == value
    assert replace(method, **{axis: getattr(METHODS[DEFAULT], axis)}, name=DEFAULT) == METHODS[DEFAULT]
    assert method.name not in METHODS


def test_plain_training_can_be_reached_from_the_recipe():
    choices = {
        "start": "random",
        "pooling": "native",
        "keep": "accuracy",
        "calibrator": "none",
    }
    assert read_recipe(RunConfig(train="a.csv", **choices)).method == METHODS["bert"]


def test_a_frozen_encoder_needs_the_probe():
    with pytest.raises(UserError) as refused:
        read_recipe(RunConfig(train="a.csv", method="linear-probe", start="random"))
    assert str(refused.value) == "--start random: an encoder that stays frozen needs the probe as its head."
