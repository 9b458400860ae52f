"""What a package index and an installer are told."""

import re
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import calibrant

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
LOWEST = {Requirement(line).name: Requirement(line).specifier for line in PROJECT["dependencies"]}


@pytest.mark.parametrize(
    ("name", "works", "fails"), [("transformers", "5.18.0", "5.17.0"), ("accelerate", "1.3.0", "1.2.1")]
)
def test_the_lowest_version_that_works_is_the_lowest_allowed(name, works, fails):
    assert works in LOWEST[name]
    assert fails not in LOWEST[name]


def test_what_is_required_holds_here():
    for name, allowed in LOWEST.items():
        assert version(name) in allowed, name


def test_the_version_is_one():
    assert PROJECT["version"] == calibrant.__version__


def test_the_pythons_that_are_named_are_those_required():
    named = [line.rsplit(" ", 1)[1] for line in PROJECT["classifiers"] if ":: Python :: 3." in line]
    assert named == ["3.11", "3.12", "3.13"]
    assert PROJECT["requires-python"] == f">={named[0]}"
    assert "Typing :: Typed" in PROJECT["classifiers"]
    assert (Path(calibrant.__file__).parent / "py.typed").is_file()


def test_no_message_asks_for_a_checkout():
    """Who installed a wheel has neither constraints.txt nor a folder to install from."""
    for path in Path(calibrant.__file__).parent.rglob("*.py"):
        assert "pip install -" not in path.read_text(encoding="utf-8"), path


def test_the_extras_that_messages_name_exist():
    for path in Path(calibrant.__file__).parent.rglob("*.py"):
        for extra in re.findall(r"calibrant\[(\w+)\]", path.read_text(encoding="utf-8")):
            assert extra in PROJECT["optional-dependencies"], path


def test_python_dash_m():
    done = subprocess.run(
        [sys.executable, "-m", "calibrant", "--version"], capture_output=True, text=True, timeout=120
    )
    assert (done.stdout, done.returncode) == (f"calibrant {calibrant.__version__}\n", 0)
