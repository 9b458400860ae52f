"""What `make matrix` asks of pip, and what it says of its figures."""

import importlib.util
import json
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
NOTES = "a: `tests.x::test_y` fails.", "a: left out `calibrant[ray]`.", "b: Python 3.14 is not here."


@pytest.fixture(scope="module")
def matrix():
    spec = importlib.util.spec_from_file_location("matrix", ROOT / "benchmarks" / "matrix.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["matrix"] = module  # for its dataclass
    spec.loader.exec_module(module)
    yield module
    del sys.modules["matrix"]


def test_the_oldest_versions_are_the_lowest_that_pyproject_allows(matrix):
    pins = dict(line.split("==") for line in matrix.constraints(matrix.CELLS["3.11-oldest"]).splitlines())
    needs = matrix.PROJECT["dependencies"] + matrix.PROJECT["optional-dependencies"]["serve"]
    for line in needs:
        requirement = Requirement(line)
        if requirement.specifier:
            assert str(requirement.specifier) == f">={pins[requirement.name]}"
    assert "pytest" not in pins  # our tools are no promise


def test_the_newest_versions_are_what_pip_finds(matrix):
    assert matrix.constraints(matrix.CELLS["3.13-newest"]) == ""


def test_the_page_shows_the_figures(matrix):
    cells = json.loads(matrix.FIGURES.read_text(encoding="utf-8"))["cells"]
    assert matrix.table(cells) in matrix.PAGE.read_text(encoding="utf-8")
    assert [cell["cell"] for cell in cells] == [
        name for name in matrix.CELLS if name in {c["cell"] for c in cells}
    ]


def test_what_failed_and_what_was_left_out_is_told(matrix):
    packages = dict.fromkeys(matrix.SHOWN, "1.0")
    ran = {
        "cell": "a",
        "python": "3.13.0",
        "versions": "newest",
        "packages": packages,
        "passed": 7,
        "failed": 1,
    }
    ran |= {"skipped": 0, "failures": ["tests.x::test_y"], "left_out": ["calibrant[ray]"]}
    absent = {"cell": "b", "python": "3.14", "versions": "newest", "left_out": ["Python 3.14 is not here"]}
    told = matrix.table([ran, absent])
    assert "| 3.13.0 | newest | 1.0 |" in told
    assert "| 7 | 1 | 0 |" in told
    for line in (
        "a: `tests.x::test_y` fails.",
        "a: left out `calibrant[ray]`.",
        "b: Python 3.14 is not here.",
    ):
        assert f"- {line}\n" in told
