"""docs/tutorial.md: every command in it runs, as it stands there, on small data and with a tiny model."""

import json
import os
import random
import re
import runpy
import shlex
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from support.tiny import UNFAMILIAR, corpus, make_text

PAGE = Path(__file__).parents[1] / "docs" / "tutorial.md"
SET_UP = {"python3", ".venv/bin/pip", "."}  # what a test has been given already


@dataclass
class Step:
    """A command of the page, and what it prints there."""

    command: str
    printed: list[str] = field(default_factory=list)


def blocks(kind):
    return re.findall(rf"^```{kind}\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def steps():
    found = []
    for block in blocks("console"):
        for line in block.replace("\\\n", " ").splitlines():
            if line.startswith("$ "):
                found.append(Step(line.removeprefix("$ ")))
            else:
                found[-1].printed.append(line)
    return [step for step in found if shlex.split(step.command)[0] not in SET_UP]


def titles(lines):
    """Of the rows of a table."""
    rows = (re.match(r" (\S.*?)  +\S", line) for line in lines)
    return [row[1] for row in rows if row]


def answer(lines):
    """The JSON among the lines, if any."""
    return next((json.loads(line) for line in lines if line.startswith("{")), None)


def keys(value):
    """As deep as they go, but for names of classes."""
    if isinstance(value, list):
        return [keys(value[0])] if value else []
    if not isinstance(value, dict):
        return None
    return {name: None if name == "probabilities" else keys(inner) for name, inner in value.items()}


@pytest.fixture
def stranger(tmp_path, monkeypatch, model_dir):
    """An empty directory, small files for the datasets of the page, and the tiny model for the default."""
    rng = random.Random(7)
    strange = [(make_text(UNFAMILIAR, rng), "talk.politics.guns") for _ in range(120)]
    data = {"reuters-r8": {"train": corpus(1600), "test": corpus(400, seed=1)}, "20ng": {"test": strange}}
    for name, splits in data.items():
        (tmp_path / "data" / name).mkdir(parents=True)
        for split, rows in splits.items():
            lines = [json.dumps({"text": text, "label": label}) + "\n" for text, label in rows]
            (tmp_path / "data" / name / f"{split}.jsonl").write_text("".join(lines), encoding="utf-8")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("CALIBRANT_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr("calibrant.models.pretrained.default_encoder", lambda: model_dir)


@pytest.fixture
def shell(command, capsys):
    """Runs a line of the page; gives what it prints."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    serving = []

    def run(line):
        first, *rest = shlex.split(line.replace("8000", port))
        if first == "calibrant" and rest[0] == "serve":
            assert rest.pop() == "&"
            serving.append(serve([*rest, "--port", port]))
            return ""
        if first == "calibrant":
            code, out, err = command(*rest)
            assert code == 0, err
            return out
        if first == "python":
            runpy.run_path(rest[0], run_name="__main__")
        elif first == "curl":
            return ask(rest)
        elif first == "kill":
            serving[0].send_signal(signal.SIGTERM)
            assert serving[0].wait(timeout=60) == 0
        else:
            assert first == "head", f"the test knows nothing of {first}"
            return subprocess.run([first, *rest], check=True, capture_output=True, text=True).stdout
        return ""

    yield run
    for process in serving:
        process.kill()
        process.wait()


def serve(arguments):
    code = "from calibrant.cli import main; main()"
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    with open("serve.log", "w") as log:
        process = subprocess.Popen([sys.executable, "-c", code, *arguments], stderr=log, env=environment)
    end = time.monotonic() + 120
    while "http://127.0.0.1:" not in (told := Path("serve.log").read_text()):
        assert process.poll() is None, told
        assert time.monotonic() < end, told
        time.sleep(0.1)
    return process


def ask(arguments):
    """As ``curl URL -H HEADER -d BODY``."""
    url, header, body = arguments[0], *arguments[2::2]
    assert arguments[1::2] == ["-H", "-d"]
    with urlopen(Request(url, body.encode(), dict([header.split(": ")]))) as response:
        return response.read().decode()


@pytest.mark.slow
def test_every_command_runs_and_prints_what_the_page_shows(stranger, shell):
    (script,) = blocks("python")
    Path("make_files.py").write_text(script, encoding="utf-8")
    for step in steps():
        said = shell(step.command).splitlines()
        assert set(titles(step.printed)) <= set(titles(said)), step.command
        assert keys(answer(step.printed)) == keys(answer(said)), step.command
    assert Path("report.html").exists()
    assert Path("decided.csv").exists()


def test_the_page_shows_the_journey():
    verbs = [shlex.split(step.command)[1] for step in steps() if step.command.startswith("calibrant")]
    assert {"train", "evaluate", "threshold", "predict", "monitor", "serve"} <= set(verbs)
