"""The whole study by its commands: run, killed, run again, tables, figures, significance."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from calibrant.study.cells import Key, read_cells
from calibrant.study.figures import figures
from calibrant.study.plan import ABLATION
from calibrant.study.presets import PAPER_METHODS, PARAMETERS
from calibrant.study.render import FORMATS

RUN = [
    *("study", "run", "--preset", "smoke", "--seeds", "0", "--parts", "main,ablation,parameters,textcnn"),
    *("--threads", "1", "--drop-runs", "--out"),
]
COMMAND = [sys.executable, "-c", "from calibrant.cli import main; main()"]


@pytest.mark.slow
def test_a_study_with_all_its_parts(command, tmp_path, monkeypatch):
    monkeypatch.delenv("CALIBRANT_DATA", raising=False)
    study = tmp_path / "study"
    process = subprocess.Popen(
        [*COMMAND, *RUN, str(study)], stderr=subprocess.PIPE, text=True, env=os.environ
    )
    first, deadline = Key("smoke", "bert", 0).path(study), time.monotonic() + 200
    while not first.exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    _, said = process.communicate()
    assert process.returncode == -signal.SIGKILL, said
    code, out, _ = command(*RUN, study, "--json")
    assert code == 0
    expected = len(PAPER_METHODS) + len(ABLATION) - 1 + sum(map(len, PARAMETERS.values())) + 1
    assert json.loads(out)["cells"] == len(read_cells(study)) == expected
    assert json.loads(out)["measured"] < expected
    assert list((study / "runs").iterdir()) == []

    code, out, _ = command("study", "table", study, "--what", "all", "--json")
    tables = json.loads(out)
    (errors,) = [table for table in tables if table["name"] == "ece"]
    measured = {row["title"]: row["entries"][-1]["mean"] for row in errors["rows"]}
    assert list(measured) == list(PAPER_METHODS)
    assert None not in measured.values()
    (ablation,) = [table for table in tables if table["name"] == "ablation-smoke"]
    assert None not in [entry["mean"] for row in ablation["rows"] for entry in row["entries"]]
    notes = {note for table in tables for note in table["notes"]}
    assert not any("NOT the same" in note or "MIXED" in note for note in notes)
    assert any("generated sentences on billing" in note and "4 classes" in note for note in notes)
    for form in FORMATS:
        code, _, _ = command("study", "table", study, "--format", form, "--out", tmp_path / form)
        assert code == 0
        assert "manifold-smoothing" in (tmp_path / form).read_text()

    code, out, err = command("study", "figure", study, "--what", "all")
    assert (code, "not drawn" in err) == (0, False)
    drawn = {path.name for path in (study / "figures").iterdir()}
    names = {name if name == "illustration" else f"{name}-smoke" for name in figures()}
    assert drawn == {f"{name}.{ending}" for name in names for ending in ("svg", "txt")}

    code, out, _ = command("study", "significance", study, "--json")
    assert code == 0
    compared = {comparison["other"] for comparison in json.loads(out)["comparisons"]}
    assert compared == set(PAPER_METHODS) - {"manifold-smoothing"}
