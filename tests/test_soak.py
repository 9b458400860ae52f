"""The short form of `make soak`: a few kills, races and full disks of each kind."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SHORT = ["--kills", "2", "--every", "30", "--pairs", "1", "--updates", "60", "--sizes", "2"]


@pytest.mark.slow
@pytest.mark.timeout(1800)  # half a minute on an idle machine
def test_whatever_is_disturbed_ends_as_if_nothing_had_happened(tmp_path):
    path = [str(ROOT / "tests"), str(ROOT / "benchmarks"), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [sys.executable, "-m", "soak", *SHORT, "--json", str(tmp_path / "counts.json")],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(path), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    rows = json.loads((tmp_path / "counts.json").read_text())["rows"]
    for command in ("train", "calibrate", "threshold", "export", "predict", "study"):
        assert rows[f"{command}, killed"] == {"held": 2}
        assert rows[f"{command}, killed at a file operation"]["held"] >= 1
    assert rows["two equal trainings"] == rows["two different trainings"] == {"held": 1}
    assert rows["60 racing updates of one run"] == {"held": 1}
