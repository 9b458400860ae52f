"""``calibrant study run``: what is asked, refused, planned and printed."""

import json
import sys

import pytest

from calibrant.cli import study_run
from calibrant.study import estimate


@pytest.fixture(autouse=True)
def generated(monkeypatch):
    monkeypatch.delenv("CALIBRANT_DATA", raising=False)


def test_help(command):
    code, out, err = command("study", "--help")
    assert (code, err) == (0, "")
    assert "run " in out
    code, out, err = command("study", "run", "--help")
    assert (code, err) == (0, "")
    assert "Usage: calibrant study run [OPTIONS]" in out
    assert "Example:  calibrant study run" in " ".join(line.strip(" ") for line in out.splitlines())


def test_every_option_is_explained():
    import typer

    from calibrant.cli import app

    study = typer.main.get_command(app).commands["study"]
    for command in study.commands.values():
        assert [p.name for p in command.params if not getattr(p, "help", None)] == []


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ["--preset", "labtop"],
            "Unknown preset 'labtop'; did you mean 'laptop'? Known: laptop, paper, smoke.",
        ),
        (["--datasets", "smoke,nope"], "Unknown dataset of the preset smoke 'nope'. Known: smoke."),
        (["--methods", "bert", "--methods", "mixp"], "Unknown method 'mixp'; did you mean 'mixup'?"),
        (["--parts", "man"], "Unknown part 'man'; did you mean 'main'?"),
        (["--seeds", "0,one"], "--seeds: expected whole numbers such as 0,1,2, got 'one'."),
        (["--seeds", "-1"], "--seeds: a seed lies between 0 and 2³² − 1, got -1."),
        (["--executor", "rai"], "Unknown executor 'rai'; did you mean 'ray'? Known: local, ray."),
        (["--address", "auto"], "--address goes with --executor ray; it is of a Ray cluster."),
        (["--parts", "search", "--methods", "bert"], "--parts search: none of bert has hyper-parameters to"),
        (["--threads", "0"], "--threads must be at least 1, got 0."),
    ],
)
def test_refused(command, tmp_path, arguments, sentence):
    preset = [] if "--preset" in arguments else ["--preset", "smoke"]
    code, out, err = command("study", "run", *preset, "--out", tmp_path / "study", *arguments)
    assert (code, out) == (2, "")
    assert err.startswith(f"calibrant: {sentence}")
    assert len(err.strip().splitlines()) == 1
    assert not (tmp_path / "study").exists()


def test_without_ray(command, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    code, _, err = command(
        *(
            "study",
            "run",
            "--preset",
            "smoke",
            "--methods",
            "bert",
            "--executor",
            "ray",
            "--out",
            tmp_path / "s",
        )
    )
    assert code == 2
    assert "--executor ray needs Ray, which is not installed: pip install 'calibrant[ray]'." in err


@pytest.mark.slow
def test_the_plan_and_then_the_study(command, tmp_path, monkeypatch):
    study = tmp_path / "study"
    asked = [
        *("study", "run", "--preset", "smoke", "--methods", "bert,mc-dropout", "--methods", "vat"),
        *("--seeds", "0, 1", "--out", study),
    ]
    code, out, _ = command(*asked, "--dry-run", "--json")
    assert code == 0
    planned = json.loads(out)
    assert (planned["preset"], planned["cells"], planned["finished"]) == ("smoke", 6, 0)
    assert [(job["training"], job["seed"], job["cells"]) for job in planned["jobs"]] == [
        ("cross-entropy", 0, ["bert", "mc-dropout"]),
        ("vat", 0, ["vat"]),
        ("cross-entropy", 1, ["bert", "mc-dropout"]),
        ("vat", 1, ["vat"]),
    ]
    assert all(job["steps"] == 15 for job in planned["jobs"])
    assert planned["seconds"] == pytest.approx(sum(job["seconds"] for job in planned["jobs"]), abs=0.1)
    assert sorted(path.name for path in study.iterdir()) == [estimate.CACHE]
    # seconds = 15 steps · cost · step + 3 epochs · 40 dev texts · text + (passes · 220 + 160) · text
    (times,) = json.loads((study / estimate.CACHE).read_text()).values()
    assert (times["train"], times["dev"], times["held_out"]) == (160, 40, 120 + 60)
    vat = 15 * 2.9 * times["step"] + (3 * 40 + 220 + 160) * times["text"]
    assert planned["jobs"][1]["seconds"] == pytest.approx(vat, abs=0.06)
    plain = 15 * times["step"] + (3 * 40 + (1 + 10) * 220 + 160) * times["text"]
    assert planned["jobs"][0]["seconds"] == pytest.approx(plain, abs=0.06)

    monkeypatch.setattr(estimate, "_measure", None)  # what was timed is used again
    code, out, _ = command(*asked, "--dry-run")
    assert code == 0
    assert "6 of 6 cells are to be measured, by 4 jobs: about " in out

    code, out, err = command(*asked[:-2], "--methods", "vat", *asked[-2:], "--json")
    assert code == 0
    done = json.loads(out)
    assert {name: done[name] for name in ("cells", "measured", "jobs")} == {
        "cells": 6,
        "measured": 6,
        "jobs": 4,
    }
    assert "study: 4 of 4 done (vat on smoke, seed 1)" in " ".join(err.split())
    code, out, _ = command(*asked, "--dry-run")
    assert "0 of 6 cells are to be measured, by 0 jobs: about 0 s one after another" in out
    code, out, _ = command(*asked)
    assert out.startswith(f"{study}: 6 cells, 0 of them measured now, in ")
    assert f"Next: calibrant study table {study}" in out


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0.4, "0 s"), (59.6, "1 min 00 s"), (125, "2 min 05 s"), (3 * 3600 + 61, "3 h 01 min")],
)
def test_times(seconds, shown):
    assert study_run._time(seconds) == shown
