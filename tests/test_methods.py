import json
from pathlib import Path

import pytest

from calibrant.methods import METHODS

COSTS = json.loads((Path(__file__).parents[1] / "benchmarks" / "costs.json").read_text())["objectives"]


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_the_cost_of_a_method_is_the_measured_one(method):
    members = 5 if method.inference == "ensemble" else 1
    assert method.cost == pytest.approx(members * COSTS[method.objective]["cost"], abs=0.05)
