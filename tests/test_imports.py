"""Imports point only leftwards in the picture, and nothing heavy is loaded before it is used."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

import calibrant

SOURCE = Path(calibrant.__file__).parent
# The picture, from left to right. A part may import from those to its left, and a package from itself.
ORDER = (
    *("errors", "types", "atomic", "allocator", "device", "methods", "card", "registry", "config"),
    *("data", "models", "objectives", "training", "artifact", "inference", "calibrators"),
    *("dev", "conformal", "scores", "selective", "prediction", "metrics", "evaluation", "fitting", "scoring"),
    *("calibration", "abstention", "report", "measuring", "demo", "reference", "drift", "monitoring"),
    *("onnx", "exporting", "choosing", "miscalibration", "advice", "subject", "auditing"),
    *("study", "cli"),
)
MODULES = sorted(set(SOURCE.rglob("*.py")) - {SOURCE / "__init__.py"})  # that one names all, and loads none
HEAVY = {"torch", "transformers", "sklearn", "pandas", "matplotlib", "scipy", "datasets", "pyarrow"}


def part_of(path):
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported_parts(tree):
    """The parts of calibrant that the code names in any import, wherever it stands."""
    for node in ast.walk(tree):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are written in full"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            package, *rest = name.split(".")
            if package == "calibrant" and rest and not rest[0].startswith("__"):
                yield rest[0]


@pytest.mark.parametrize("path", MODULES, ids=[str(path.relative_to(SOURCE)) for path in MODULES])
def test_imports_point_leftwards(path):
    part = part_of(path)
    assert part in ORDER, f"{part} has no place in the picture"
    left = set(ORDER[: ORDER.index(part)])
    assert set(imported_parts(ast.parse(path.read_text(encoding="utf-8")))) - {part} <= left


def test_the_check_sees_an_import_to_the_right():
    code = """
import calibrant.data.files
def f():
    from calibrant.cli import main
    from calibrant import artifact
"""
    assert set(imported_parts(ast.parse(code))) == {"cli", "artifact", "data"}


def test_the_picture_has_nothing_that_is_not_there():
    assert set(ORDER) == {part_of(path) for path in MODULES}


def fresh(code):
    """What a new interpreter prints as JSON."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


LOADED = "import json, sys, time; print(json.dumps([list(sys.modules), time.process_time()]))"
HELP = """
import sys
sys.argv = ["calibrant", "--help"]
from calibrant.cli import main
try:
    main()
except SystemExit as end:
    assert end.code == 0
"""


@pytest.mark.parametrize(
    ("code", "seconds"), [("import calibrant\n", 0.3), (HELP, 0.7)], ids=["import", "--help"]
)
def test_nothing_heavy_is_loaded_at_the_start(code, seconds):
    times = []
    for _ in range(3):
        modules, spent = fresh(code + LOADED)
        assert HEAVY & {module.split(".")[0] for module in modules} == set()
        times.append(spent)
    assert min(times) < seconds


@pytest.mark.slow
def test_public_names():
    """In a new interpreter, where nothing has been imported before."""
    code = """
import json, calibrant
print(json.dumps({name: callable(getattr(calibrant, name)) for name in calibrant.__all__}))
"""
    assert fresh(code) == dict.fromkeys(calibrant.__all__, True)


def test_no_other_names():
    with pytest.raises(AttributeError, match="module 'calibrant' has no attribute 'nope'"):
        calibrant.nope  # noqa: B018
