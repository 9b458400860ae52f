"""What a launcher starts as several processes."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest

from calibrant.cli import several
from calibrant.runs import record as records
from support.tiny import noisy_corpus


@pytest.fixture
def started(monkeypatch):
    """As number 0 or 1 of two that a launcher has started."""

    def as_number(number):
        monkeypatch.setattr(several, "PROCESSES", 2)
        monkeypatch.setattr(several, "NUMBER", number)
        monkeypatch.setattr(several.time, "sleep", lambda seconds: None)

    before = signal.getsignal(signal.SIGTERM)
    yield as_number
    signal.signal(signal.SIGTERM, before)


def test_only_training_is_for_several_processes(command, started, trained, tmp_path, monkeypatch):
    told = tmp_path / "told.json"
    monkeypatch.setenv("TORCHELASTIC_ERROR_FILE", str(told))
    started(0)
    code, out, err = command("evaluate", trained, "--test", "test.csv")
    assert (code, out) == (2, "")
    assert err == (
        "calibrant: The launcher has started 2 processes, and only `calibrant train` is for several; start "
        "this without torchrun or `accelerate launch`.\n"
    )
    assert err == f"calibrant: {json.loads(told.read_text())['message']['message']}\n"  # torchrun repeats it
    started(1)
    assert command("evaluate", trained, "--test", "test.csv") == (2, "", "")
    assert command("--version")[0] == 0


@contextmanager
def launched(arguments, folder):
    """``torchrun … -m calibrant train``, and where its standard error goes."""
    err = folder / "stderr.txt"
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command += ["-m", "calibrant", "train", *map(str, arguments)]
    env = os.environ | {"OMP_NUM_THREADS": "1"}
    with (
        open(err, "w") as file,
        subprocess.Popen(command, env=env, stderr=file, stdout=subprocess.DEVNULL) as launcher,
    ):
        try:
            yield launcher, err
        finally:
            launcher.terminate()  # it ends its processes


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_one_of_two_is_killed_and_the_same_command_ends_as_if_nothing_had_been(csv_file, model_dir, tmp_path):
    texts = csv_file("train.csv", noisy_corpus(200))
    options = ["--train", texts, "--model", model_dir, "--epochs", 6, "--patience", 0, "--batch-size", 16]
    options += ["--max-length", 32, "--out"]
    with launched([*options, tmp_path / "run"], tmp_path) as (launcher, err):
        while not list((tmp_path / "run" / "checkpoints").glob("checkpoint-*/seal.json")):
            assert launcher.poll() is None, err.read_text()
            time.sleep(0.02)
        children = subprocess.check_output(["ps", "--ppid", str(launcher.pid), "-o", "pid="], text=True)
        killed = int(children.split()[-1])
        os.kill(killed, signal.SIGKILL)
        assert launcher.wait() != 0
    said = [line for line in err.read_text().splitlines() if line.startswith("calibrant: ")]
    assert len(said) == 1, said
    assert re.search(r"the same command (again )?goes on from the last checkpoint\.$", said[0], re.IGNORECASE)
    assert f"Signal 9 (SIGKILL) received by PID {killed}" in err.read_text()
    assert not (tmp_path / "run" / "model").exists()

    for out in ("run", "whole"):
        with launched([*options, tmp_path / out], tmp_path) as (launcher, err):
            assert launcher.wait() == 0, err.read_text()
        assert ("Resuming" in err.read_text()) == (out == "run")
    resumed, whole = (records.read(tmp_path / out) for out in ("run", "whole"))
    assert resumed.files == whole.files  # the very weights
    assert resumed.calibrator == whole.calibrator
    assert resumed.training.dev_nll == whole.training.dev_nll
