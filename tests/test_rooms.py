"""Which room may import which, and that nothing heavy is loaded before it is used."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

import calibrant

SOURCE = Path(calibrant.__file__).parent
BASE = {"errors", "types", "registry"}
NUMBERS = {"calibrators", "scores", "metrics"}

# room: rooms of calibrant that it may import, beside itself
ROOMS = {
    "errors": set(),
    "types": {"errors"},
    "registry": {"errors"},
    "config": {"errors", "registry", "methods"},
    "methods": set(),
    "_system": {"errors"},
    "data": BASE,
    "models": {"errors", "types", "data", "calibrators"},
    "objectives": BASE | {"models"},
    "inference": BASE | {"models"},
    "calibrators": BASE | {"scores"},
    "scores": BASE,
    "metrics": BASE,
    "decide": BASE | NUMBERS,
    "recipe": BASE | {"config", "methods", "models", "objectives", "inference", "calibrators"},
    "training": BASE | {"_system", "models", "objectives", "calibrators", "metrics"},
    "runs": BASE | {"_system", "config", "methods", "data", "calibrators", "scores"},
    "classifier": BASE | NUMBERS | {"_system", "data", "models", "inference", "decide", "runs"},
    "pages": BASE | {"_system", "metrics"},
    "corpus": BASE | {"_system", "data", "calibrators", "decide", "runs", "classifier"},
}
ROOMS["exports"] = (
    BASE
    | NUMBERS
    | {
        *("_system", "data", "models", "inference", "decide", "runs", "classifier"),
    }
)
ROOMS["fitting"] = BASE | {
    *("_system", "config", "data", "methods", "models", "recipe", "inference", "calibrators", "metrics"),
    *("training", "runs", "classifier", "pages"),
}
ROOMS["audits"] = BASE | {
    *("_system", "data", "methods", "models", "calibrators", "metrics", "decide"),
    *("runs", "classifier", "exports", "pages"),
}
ROOMS["testing"] = BASE | NUMBERS | {"models", "objectives"}
ROOMS["service"] = BASE | {"data", "calibrators", "decide", "runs", "classifier"}
WORKROOMS = set(ROOMS) - {"testing"}  # that is for tests, ours and others'
ROOMS["tasks"] = WORKROOMS
ROOMS["study"] = WORKROOMS | {"tasks"}
ROOMS["sklearn"] = WORKROOMS | {"tasks"}
ROOMS["cli"] = WORKROOMS | {"tasks", "study"}
ROOMS["__main__"] = {"cli"}

# library: the only rooms that may import it
ONLY = {
    "torch": {
        "types",  # for annotations; nothing is loaded (below)
        "_system",
        "data",
        "models",
        "objectives",
        "inference",
        "training",
        "classifier",
        "corpus",
        "exports",
        "tasks",
        "study",
        "testing",
    },
    "matplotlib": {"pages", "study"},
    "fastapi": {"service"},
    "starlette": {"service"},
    "uvicorn": {"service"},
    "prometheus_client": {"service"},
    "typer": {"cli"},
    "rich": {"cli"},
}
MODULES = sorted(set(SOURCE.rglob("*.py")) - {SOURCE / "__init__.py"})  # that one names all, and loads none
HEAVY = {
    "torch",
    "transformers",
    "sklearn",
    "pandas",
    "matplotlib",
    "scipy",
    "datasets",
    "pyarrow",
    "fastapi",
}


def room_of(path):
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imports(code):
    """All that the code names in any import, wherever it stands: ("calibrant", room) or (library, "")."""
    for node in ast.walk(ast.parse(code)):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are written in full"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            package, *rest = name.split(".")
            if package != "calibrant":
                yield package, ""
            elif rest and not rest[0].startswith("__"):
                yield package, rest[0]


def trespasses(room, code):
    """What a module of this room imports and may not."""
    for package, other in imports(code):
        if package == "calibrant" and other != room and other not in ROOMS[room]:
            yield f"{room} may not import calibrant.{other}"
        if room not in ONLY.get(package, {room}):
            yield f"{room} may not import {package}"


@pytest.mark.parametrize("path", MODULES, ids=[str(path.relative_to(SOURCE)) for path in MODULES])
def test_a_module_imports_what_its_room_may(path):
    assert list(trespasses(room_of(path), path.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize(
    ("room", "code", "found"),
    [
        ("metrics", "import torch", ["metrics may not import torch"]),
        ("scores", "def f():\n    from torch.nn import functional", ["scores may not import torch"]),
        ("tasks", "from calibrant.study.cells import Cell", ["tasks may not import calibrant.study"]),
        ("data", "from calibrant import runs, types", ["data may not import calibrant.runs"]),
        ("tasks", "import rich.console", ["tasks may not import rich"]),
        ("cli", "import typer, rich\nfrom calibrant.study.run import run_study", []),
    ],
)
def test_the_table_fails_where_it_should(room, code, found):
    assert list(trespasses(room, code)) == found


def test_every_room_is_in_the_table_and_there():
    assert set(ROOMS) == {room_of(path) for path in MODULES}


def test_a_command_is_a_file_in_cli_and_one_in_tasks():
    shared = {"__init__", "console", "options", "printing", "several", "tables"}
    commands = {path.stem for path in (SOURCE / "cli").glob("*.py")} - shared
    verbs = {name for name in commands if not name.startswith("study")}
    assert verbs == {path.stem for path in (SOURCE / "tasks").glob("*.py")} - {"__init__"}
    assert verbs - {"list"} <= set(calibrant.__all__)


def fresh(code):
    """What a new interpreter prints as JSON."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


LOADED = "import json, sys; print(json.dumps(list(sys.modules)))"
HELP = """
import sys
sys.argv = ["calibrant", "--help"]
from calibrant.cli import main
try:
    main()
except SystemExit as end:
    assert end.code == 0
"""
LIGHT = "import calibrant.calibrators, calibrant.scores, calibrant.metrics, calibrant.decide.advice\n"
LIGHT += "from calibrant import calibrators, scores, metrics\n"
LIGHT += "calibrators.calibrators(), scores.scores(), metrics.metrics()\n"


@pytest.mark.parametrize("code", ["import calibrant\n", HELP], ids=["import", "--help"])
def test_nothing_heavy_is_loaded_at_the_start(code):
    assert HEAVY & {module.split(".")[0] for module in fresh(code + LOADED)} == set()


def test_the_rooms_of_numbers_load_no_torch():
    assert "torch" not in fresh(LIGHT + LOADED)


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
