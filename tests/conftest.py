"""Fixtures: a tiny model on disk, a finished run of it, files, the command line; and no network."""

import csv
import os
import shutil
import socket
import sys
from pathlib import Path

import pytest
from hypothesis import settings

# Before torch is loaded: on some virtual machines oneDNN's newest bf16 kernels die by SIGILL, and a test
# process that dies tells nothing.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE")

import torch

from calibrant.cli import main
from calibrant.config import RunConfig
from calibrant.tasks.train import train
from support.random_cells import Maker
from support.tiny import corpus, tiny_bert, tiny_tokenizer

torch.set_num_threads(1)  # for models this small, a second thread only waits

# What a first call imports, or a busy machine, is no fault of the code.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")


@pytest.fixture(scope="session")
def model_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory that ``--model`` takes."""
    path = tmp_path_factory.mktemp("tiny-bert")
    tiny_bert().save_pretrained(path)
    tiny_tokenizer().save_pretrained(path)
    return path


@pytest.fixture
def csv_file(tmp_path: Path):
    """Writes rows into a CSV file and returns its path."""

    def write(name: str, rows: list[tuple[str, ...]], header: tuple[str, ...] = ("text", "label")) -> Path:
        path = tmp_path / name
        with open(path, "w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([header, *rows])
        return path

    return write


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test that reaches for the network fails at once, instead of passing on some machines."""
    connect = socket.socket.connect

    def refuse(self: socket.socket, address: object) -> None:
        here = isinstance(address, tuple) and address[0] in ("127.0.0.1", "::1")
        if self.family != socket.AF_UNIX and not here:
            raise AssertionError(f"a test must not use the network, and this one asked for {address}")
        connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory, model_dir: Path) -> Path:
    """The directory of a finished run; for reading only, so copy it before changing anything."""
    folder = tmp_path_factory.mktemp("trained")
    with open(folder / "train.csv", "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("text", "label"), *corpus(200)])
    settings = RunConfig(
        train=str(folder / "train.csv"),
        model=str(model_dir),
        method="manifold-smoothing",
        max_length=32,
        epochs=5,
        batch_size=16,
        learning_rate=3e-3,
    )
    return train(settings, out=folder / "run").path


@pytest.fixture
def run_copy(trained: Path, tmp_path: Path) -> Path:
    """A finished run to tamper with."""
    return Path(shutil.copytree(trained, tmp_path / "run"))


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """Runs ``calibrant …`` in this process; gives the exit code, standard output and standard error."""

    def run(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["calibrant", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            main()
        out, err = capsys.readouterr()
        return int(end.value.code or 0), out, err

    return run


@pytest.fixture
def make(tmp_path: Path) -> Maker:
    """Writes cells into a study."""
    return Maker(tmp_path / "study")
