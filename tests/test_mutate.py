"""The short form of benchmarks/soak/mutate.py."""

import importlib.util
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def soak():
    path = Path(__file__).parents[1] / "benchmarks" / "soak" / "mutate.py"
    spec = importlib.util.spec_from_file_location("mutate", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_what_is_damaged_is_read_or_refused_in_one_sentence(soak, tmp_path):
    counts, failures = soak.mutate(soak.make_run(tmp_path), count=100, seed=1)
    assert failures == []
    assert set(counts) <= {"read", "refused"}
    assert counts["refused"] > 50  # it does damage
