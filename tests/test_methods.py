"""Rows of a table: what each chooses, and what it costs."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from calibrant.methods import AXES, METHODS, Method, named

COSTS = json.loads((Path(__file__).parents[1] / "benchmarks" / "costs.json").read_text())["steps"]
MEASURED = {name: method for name, method in METHODS.items() if method.cost is not None}


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_a_cost_is_positive_or_not_measured(method):
    assert method.cost is None or method.cost > 0


@pytest.mark.parametrize("method", MEASURED.values(), ids=MEASURED)
def test_a_cost_is_the_measured_one(method):
    members = 5 if method.inference == "ensemble" else 1
    assert method.cost == pytest.approx(
        members * COSTS.get(method.name, COSTS[method.objective])["cost"], abs=0.05
    )


def test_what_is_planned_by_costs_has_them():
    """Manifold smoothing is compared to plain training everywhere."""
    assert {"bert", "manifold-smoothing"} <= set(MEASURED)


def test_the_default_learns_slower_the_wider_the_encoder():
    rate = METHODS["calibrant"].rate
    assert (rate(384), rate(768), rate(None)) == (2e-4, 1e-4, 2e-4)
    assert METHODS["bert"].rate(768) == METHODS["bert"].rate(384) == 1e-4


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_a_row_is_found_by_its_choices(method):
    assert named(replace(method, name="", cost=None)) == method


def test_no_two_rows_make_the_same_choices():
    assert len({tuple(getattr(method, axis) for axis in AXES) for method in METHODS.values()}) == len(METHODS)


def test_any_other_choice_is_named_after_what_is_not_plain():
    assert named(Method("", pooling="mean", patience=3)).name == "cross-entropy + pooling mean + patience 3"
    assert named(Method("", "vat", "mc-dropout", "isotonic")).name == "vat + mc-dropout + isotonic"
    assert named(replace(METHODS["vat"], start="probe")).cost is None  # nobody measured it
