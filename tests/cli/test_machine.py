"""A machine that gives no more: one sentence, exit code 2, no traceback."""

import os
import subprocess
import sys

import pytest

from support.sentences import one_sentence

CALL = "import sys; from calibrant.cli import main; main()"
WHOLE = "What was kept before is whole."
MEMORY = f"The memory of this machine is used up; give it fewer or shorter texts at a time. {WHOLE}"


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A folder that looks like a run: only that is asked before the work."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "calibrant.json").write_text("{}")


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (MemoryError(), MEMORY),
        (RuntimeError("DefaultCPUAllocator: not enough memory: you tried to allocate 9 bytes."), MEMORY),
        (
            OSError(24, "Too many open files", "run/model/config.json"),
            f"run/model/config.json: too many files are open; allow more with `ulimit -n 4096`. {WHOLE}",
        ),
        (FileNotFoundError(2, "No such file or directory", "gone"), "gone: No such file or directory."),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_the_machine_refuses(command, run, monkeypatch, error, sentence):
    def refuse(*args, **kwargs):
        raise error

    monkeypatch.setattr("calibrant.tasks.predict.predict", refuse)
    one_sentence(command("predict", "run", "--text", "my card"), sentence)


@pytest.mark.parametrize("error", [RuntimeError("a mistake of ours"), OSError("of whom nobody knows")])
def test_other_errors_are_not_hidden(run, monkeypatch, error):
    from calibrant.cli import main

    def refuse(*args, **kwargs):
        raise error

    monkeypatch.setattr("calibrant.tasks.predict.predict", refuse)
    monkeypatch.setattr(sys, "argv", ["calibrant", "predict", "run", "--text", "my card"])
    with pytest.raises(type(error), match=str(error)):
        main()


def test_output_to_a_full_disk():
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-c", CALL, "list", "methods"], stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert done.returncode == 2
    assert done.stderr == f"calibrant: standard output: the disk is full; make room. {WHOLE}\n"


def test_output_that_nobody_reads_any_more():
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-c", CALL, "list", "methods"], stdout=writing, stderr=subprocess.PIPE, text=True
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (1, "")
