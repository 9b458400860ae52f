"""A user's directory with tickets in it, and one with everything that can be wrong."""

import csv
import io
import json
import shutil
import sys

import datasets
import pytest

from support.tiny import UNFAMILIAR, corpus

FAST = (
    "--method",
    "manifold-smoothing",
    "--max-length",
    32,
    "--epochs",
    3,
    "--batch-size",
    16,
    "--learning-rate",
    0.01,
)


@pytest.fixture
def here(tmp_path, monkeypatch):
    """The user's directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def tickets(here, csv_file, model_dir):
    """Tickets with columns of the user's own, and the options that train on them."""
    header = ("body", "queue")
    csv_file("tickets.csv", corpus(200), header)
    csv_file("test.csv", corpus(60, seed=1), header)
    csv_file("other.csv", [(f"{a} {b}",) for a in UNFAMILIAR for b in UNFAMILIAR if a < b], ("body",))
    columns = ("--text-column", "body", "--label-column", "queue")
    return ("train", "--train", "tickets.csv", *columns, "--model", model_dir, *FAST)


@pytest.fixture
def pipe(monkeypatch):
    """Puts bytes on standard input."""

    def put(content):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content), encoding="utf-8"))

    return put


@pytest.fixture(scope="session")
def wrong_files(tmp_path_factory, trained, model_dir):
    """A directory with everything that can be wrong."""
    here = tmp_path_factory.mktemp("mistakes")

    def write(name, rows, header=("text", "label")):
        with open(here / name, "w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([header, *rows])

    write("good.csv", corpus(20, seed=3))
    write("own.csv", corpus(20), ("body", "queue"))
    write("header.csv", [])
    write("one.csv", [("a card", "billing"), ("a price", "billing")])
    write("few.csv", [("a card", "billing"), ("a box", "shipping")])
    write("gap.csv", [("a card", "billing"), ("  ", "billing")])
    write("nolabel.csv", [("a card", "")])
    write("unseen.csv", [("a card", "billing"), ("a book", "returns")])
    (here / "empty.csv").touch()
    (here / "latin1.csv").write_bytes("text,label\na card,billing\ncafé,food\n".encode("latin1"))
    (here / "quote.csv").write_text('text,label\n"a card,billing\n')
    (here / "comma.csv").write_text("text,label\nHello, you,chat\n")
    (here / "bad.jsonl").write_text('{"text": "a", "label": "b"}\nnot json\n')
    (here / "bad.parquet").write_bytes(b"not parquet at all")
    (here / "rows.xlsx").touch()
    (here / "folder").mkdir()
    (here / "folder" / "notes.txt").touch()
    part = datasets.Dataset.from_dict({"text": ["one"], "label": ["a"]})
    datasets.DatasetDict({"train": part, "test": part}).save_to_disk(str(here / "splits"))
    (here / "broken.yaml").write_text("epochs: [1,\nmodel: x\n")
    (here / "words.yaml").write_text("just words\n")
    (here / "typo.yaml").write_text("epoch: 3\n")
    (here / "model").symlink_to(model_dir)
    for run in ("run", "unfinished", "tampered", "damaged", "nameless", "newer"):
        shutil.copytree(trained, here / run)
    record = json.loads((here / "run" / "calibrant.json").read_text())
    (here / "unfinished" / "calibrant.json").write_text(json.dumps(record | {"status": "training"}))
    (here / "newer" / "calibrant.json").write_text(json.dumps(record | {"format": 9}))
    nameless = {part: about for part, about in record.items() if part != "labels"}
    (here / "nameless" / "calibrant.json").write_text(json.dumps(nameless))
    (here / "damaged" / "calibrant.json").write_text("{")
    (here / "tampered" / "model" / "config.json").write_text("{}")
    return here


@pytest.fixture
def mistakes(wrong_files, monkeypatch):
    """The user stands in that directory."""
    monkeypatch.delenv("CALIBRANT_DATA", raising=False)
    monkeypatch.chdir(wrong_files)
