"""Rows of the paper's tables, and what each costs."""

import json
from pathlib import Path

import pytest

from calibrant.methods import METHODS

COSTS = json.loads((Path(__file__).parents[1] / "benchmarks" / "costs.json").read_text())["objectives"]
MEASURED = {name: method for name, method in METHODS.items() if method.cost is not None}


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_a_cost_is_positive_or_not_measured(method):
    assert method.cost is None or method.cost > 0


@pytest.mark.parametrize("method", MEASURED.values(), ids=MEASURED)
def test_a_cost_is_the_measured_one(method):
    members = 5 if method.inference == "ensemble" else 1
    assert method.cost == pytest.approx(members * COSTS[method.objective]["cost"], abs=0.05)


def test_what_is_planned_by_costs_has_them():
    """Manifold smoothing is compared to plain training everywhere."""
    assert {"bert", "manifold-smoothing"} <= set(MEASURED)
