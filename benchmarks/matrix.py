"""The fast tests with the oldest and the newest versions, and on other Pythons:

    python benchmarks/matrix.py [CELL …] [--cache DIR]      # `make matrix` is all cells

Each cell is a virtual environment of its own. "oldest" has the lower bounds of pyproject.toml, "newest" what
pip finds. A cell says what it left out: an extra without a wheel for its Python, a Python that is not here.
Figures go to results/matrix/matrix.json, their table into docs/compatibility.md.
"""

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import time
import tomllib
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from xml.etree import ElementTree

from packaging.requirements import Requirement

ROOT = Path(__file__).parent.parent
FIGURES = ROOT / "results" / "matrix" / "matrix.json"
PAGE = ROOT / "docs" / "compatibility.md"
MARKS = "<!-- made by benchmarks/matrix.py -->\n", "<!-- end -->\n"
ALONE = "tests/training/test_several_processes.py"  # it forks; see the Makefile
DEPRECATED = "DeprecationWarning", "PendingDeprecationWarning", "FutureWarning"
"""What one library says of another; where CI's versions say it, it is an error."""
SHOWN = ("torch", "transformers", "accelerate", "datasets", "scikit-learn", "numpy", "pydantic")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@dataclass(frozen=True)
class Cell:
    """Which Python, and which versions of what calibrant needs."""

    python: str
    versions: str  # "oldest" or "newest"

    @property
    def name(self) -> str:
        return f"{self.python}-{self.versions}"


CELLS = {cell.name: cell for cell in (Cell("3.11", "oldest"), Cell("3.12", "newest"), Cell("3.13", "newest"))}


def extras() -> list[str]:
    """Those that a user may name."""
    return [name for name in PROJECT["optional-dependencies"] if name != "dev"]


def lower_bounds() -> dict[str, str]:
    """The lowest version of each thing that calibrant or an extra needs, as pyproject.toml says."""
    found = {}
    for line in (
        *PROJECT["dependencies"],
        *(line for extra in extras() for line in PROJECT["optional-dependencies"][extra]),
    ):
        requirement = Requirement(line)
        bounds = [each.version for each in requirement.specifier if each.operator == ">="]
        if bounds:
            (found[requirement.name],) = bounds
    return found


def constraints(cell: Cell) -> str:
    """What pip is told beside pyproject.toml."""
    pins = lower_bounds() if cell.versions == "oldest" else {}
    return "".join(f"{name}=={version}\n" for name, version in pins.items())


def interpreter(version: str) -> str | None:
    """One of this version, on the path or of pyenv."""
    found = shutil.which(f"python{version}")
    if found and subprocess.run([found, "-V"], capture_output=True, check=False).returncode == 0:
        return found
    there = sorted((Path.home() / ".pyenv" / "versions").glob(f"{version}.*/bin/python"))
    return str(there[-1]) if there else None


def install(cell: Cell, folder: Path, python: str) -> list[str]:
    """An environment for the cell, unless it is there; returns what could not be installed into it."""
    tools = [line for line in PROJECT["optional-dependencies"]["dev"] if not line.startswith("calibrant[")]
    asked = {"pins": constraints(cell), "needs": PROJECT["dependencies"], "extras": extras(), "tools": tools}
    stamp = folder / "installed.json"
    if stamp.exists() and (done := json.loads(stamp.read_text(encoding="utf-8")))["asked"] == asked:
        return done["left_out"]
    if not (folder / "bin" / "python").exists():
        subprocess.run([python, "-m", "venv", folder], check=True)
    pins = folder / "constraints.txt"
    pins.write_text(constraints(cell), encoding="utf-8")
    log = (folder / "pip.log").open("w", encoding="utf-8")

    def pip(*what: str) -> bool:
        how = ["--quiet", "--disable-pip-version-check", "--prefer-binary", "-c", pins]
        command = [folder / "bin" / "python", "-m", "pip", "install", *how, *what]
        return subprocess.run(command, stderr=log, check=False).returncode == 0

    left_out = []
    if not pip("-e", f"{ROOT}[{','.join(extras())}]", *tools):  # then one after another, to know which
        if not pip("-e", str(ROOT)):
            raise SystemExit(f"{cell.name}: calibrant itself cannot be installed; see {folder}/pip.log")
        left_out += [f"calibrant[{extra}]" for extra in extras() if not pip("-e", f"{ROOT}[{extra}]")]
        left_out += [tool for tool in tools if not pip(tool)]
    stamp.write_text(json.dumps({"asked": asked, "left_out": left_out}), encoding="utf-8")
    return left_out


def tests(folder: Path) -> dict[str, object]:
    """Counts of the fast tests, and the names of those that fail."""
    counts, failures = dict.fromkeys(("passed", "failed", "skipped"), 0), []
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    environment.pop("PYTHONPATH", None)
    for number, which in enumerate(([ALONE], ["-n", "2", "--dist", "loadfile", "--ignore", ALONE])):
        report = folder / f"report-{number}.xml"
        report.unlink(missing_ok=True)
        command = [folder / "bin" / "python", "-m", "pytest", "-q", "-m", "not slow", f"--junitxml={report}"]
        command += [part for kind in DEPRECATED for part in ("-W", f"default::{kind}")]
        with (folder / f"pytest-{number}.log").open("w", encoding="utf-8") as log:
            subprocess.run([*command, *which], cwd=ROOT, env=environment, stdout=log, stderr=log, check=False)
        if not report.exists():
            raise SystemExit(f"The tests did not run; see {log.name}")
        for case in ElementTree.parse(report).iter("testcase"):
            if case.find("failure") is not None or case.find("error") is not None:
                counts["failed"] += 1
                failures.append(f"{case.get('classname')}::{case.get('name')}")
            else:
                counts["skipped" if case.find("skipped") is not None else "passed"] += 1
    return counts | {"failures": sorted(failures)}


def installed(folder: Path) -> dict[str, str]:
    """Versions of all packages."""
    command = [folder / "bin" / "python", "-m", "pip", "list", "--format", "json"]
    listed = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return {each["name"]: each["version"] for each in listed}


def run(cell: Cell, cache: Path) -> dict[str, object]:
    """All of one cell."""
    begun = time.monotonic()
    told: dict[str, object] = {"cell": cell.name, "python": cell.python, "versions": cell.versions}
    python = interpreter(cell.python)
    if python is None:
        return told | {"left_out": [f"Python {cell.python} is not here"]}
    folder = cache / cell.name
    left_out = install(cell, folder, python)
    found = installed(folder)
    counts = tests(folder)
    say = subprocess.run([python, "-V"], capture_output=True, text=True, check=True).stdout.split()[1]
    return told | {
        "python": say,
        "left_out": left_out,
        **counts,
        "seconds": round(time.monotonic() - begun),
        "packages": found,
    }


def table(cells: list[dict[str, object]]) -> str:
    """For the page."""
    lines = [f"| Python | versions | {' | '.join(SHOWN)} | passed | failed | skipped |"]
    lines.append("|" + "---|" * (5 + len(SHOWN)))
    notes = []
    for cell in cells:
        if "packages" not in cell:
            notes.append(f"- {cell['cell']}: {cell['left_out'][0]}.")
            continue
        shown = [cell["packages"][name] for name in SHOWN]
        counts = [str(cell[name]) for name in ("passed", "failed", "skipped")]
        lines.append(f"| {' | '.join([cell['python'], cell['versions'], *shown, *counts])} |")
        for failed in cell["failures"]:
            notes.append(f"- {cell['cell']}: `{failed}` fails.")
        if cell["left_out"]:
            notes.append(f"- {cell['cell']}: left out {', '.join(f'`{each}`' for each in cell['left_out'])}.")
    return "\n".join([*lines, *([""] if notes else []), *notes, ""])


def write(cells: list[dict[str, object]]) -> None:
    """Figures and page; cells that were not run this time stay as they were."""
    kept = json.loads(FIGURES.read_text(encoding="utf-8"))["cells"] if FIGURES.exists() else []
    by_name = {cell["cell"]: cell for cell in (*kept, *cells)}
    ordered = [by_name[name] for name in CELLS if name in by_name]
    made = {"made": datetime.now(UTC).isoformat(timespec="minutes"), "machine": platform.platform()}
    FIGURES.parent.mkdir(parents=True, exist_ok=True)
    FIGURES.write_text(json.dumps(made | {"cells": ordered}, indent=1) + "\n", encoding="utf-8")
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(MARKS[0])
    after = rest.partition(MARKS[1])[2]
    PAGE.write_text(before + MARKS[0] + "\n" + table(ordered) + "\n" + MARKS[1] + after, encoding="utf-8")


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__.partition(":")[0])
    asked.add_argument("cells", nargs="*", default=list(CELLS), help=f"of {', '.join(CELLS)}")
    asked.add_argument("--cache", type=Path, default=Path.home() / ".cache" / "calibrant-matrix")
    options = asked.parse_args()
    failed = 0
    for name in options.cells:
        told = run(CELLS[name], options.cache)
        write([told])
        print(json.dumps({key: value for key, value in told.items() if key != "packages"}))
        failed += int(told.get("failed", 0))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
