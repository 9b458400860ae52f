"""Scripts that are run by hand, months apart: what they import from calibrant has to be there still."""

import ast
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SCRIPTS = sorted(
    path for folder in ("benchmarks", "docs", "examples") for path in (ROOT / folder).rglob("*.py")
)


def imported(script):
    """Each module and name that it takes from calibrant, also within functions."""
    for node in ast.walk(ast.parse(script.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "calibrant":
            yield from ((node.module, alias.name) for alias in node.names)


def is_there(module, name):
    found = import_module(module)
    return hasattr(found, name) or (hasattr(found, "__path__") and find_spec(f"{module}.{name}") is not None)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_what_a_script_imports_is_there(script):
    assert [found for found in imported(script) if not is_there(*found)] == []


def test_a_name_that_is_gone_is_found(tmp_path):
    script = tmp_path / "old.py"
    script.write_text("def f():\n    from calibrant.tasks.monitor import monitor, _order\n")
    assert [found for found in imported(script) if not is_there(*found)] == [
        ("calibrant.tasks.monitor", "_order")
    ]
