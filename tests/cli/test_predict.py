"""``calibrant predict``, and the mistakes that get one sentence."""

import csv
import json
import os
import subprocess
import sys
from subprocess import PIPE

import pyarrow.parquet as pq
import pytest

from calibrant.classifier import Classifier
from support.sentences import cases, one_sentence
from support.tiny import corpus


def test_an_interrupted_prediction_keeps_what_was_answered(command, trained, csv_file, monkeypatch):
    texts = csv_file("new.csv", [(text,) for text, _ in corpus(5)], ("text",))
    whole = [json.loads(line)["confidence"] for line in command("predict", trained, texts)[1].splitlines()]
    predict, asked = Classifier.predict, []

    def interrupted(self, some, *args, **kwargs):
        asked.append(len(some))
        if len(asked) == 3:
            raise KeyboardInterrupt
        return predict(self, some, *args, **kwargs)

    monkeypatch.setattr(Classifier, "predict", interrupted)
    monkeypatch.setattr("calibrant.tasks.predict.AT_ONCE", 2)
    code, out, err = command("predict", trained, texts)
    assert (code, asked) == (130, [2, 2, 1])
    assert [json.loads(line)["confidence"] for line in out.splitlines()] == pytest.approx(whole[:4], abs=1e-5)
    assert err.splitlines()[-1] == "calibrant: interrupted."


# A command and the sentence that it gets; an ellipsis stands for the rest of it.
MISTAKES = cases(
    """
# what is predicted
$ predict nowhere good.csv
nowhere is not a run: it has no calibrant.json. Train one with `calibrant train --out nowhere …`.
$ predict run
Give either a FILE (or - for standard input) or --text.
$ predict run good.csv --text hello
Give either a FILE (or - for standard input) or --text.
$ predict run no.csv
No file 'no.csv'; check the path.
$ predict run empty.csv
empty.csv: the file is empty; it needs rows with a text each.
$ predict run header.csv
header.csv: the file has no rows; it needs at least one text.
$ predict run own.csv
own.csv: no column 'text'; its columns are body, queue. Name the one that holds the text with …
$ predict run https://example.org/a.csv
https://example.org/a.csv is a URL, and only files are read; download it, and name the file.
$ predict run good.csv --out good.csv
--out good.csv is the file to read; name a new file.
$ predict run good.csv --out folder --format csv
--format goes with one file --out; the parts of a folder have that of the corpus.
$ predict run good.csv --out decided.txt
decided.txt: its name does not tell the format; give --format csv, jsonl or parquet.
$ predict run good.csv own.csv
2 files are answered into a folder; add --out decisions/.
$ predict run good.csv --engine ray
--engine goes with a folder; add, for instance, --out decisions/.
$ predict run good.csv --out decided.csv --format xml
--format xml: unknown; give --format csv, jsonl or parquet.
$ predict run good.csv --format csv
--format goes with --out; add, for instance, --out decided.csv.
$ predict run - --out decided.csv
--out goes with a FILE whose columns it keeps; send other answers on with >.
$ predict run own.csv --out decided.csv
own.csv: no column 'text'; its columns are body, queue. Name the one that holds the text with …
"""
)


@pytest.mark.parametrize("line", MISTAKES)
def test_a_mistake_gets_one_sentence(line, mistakes, command):
    one_sentence(command(*line.split()), MISTAKES[line])


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (" ", "Text 1 of 1 is empty; there is nothing to classify."),
        ("caf\udce9", "Text 1 of 1 holds half a character (surrogates not allowed); is it UTF-8?"),
    ],
)
def test_mistakes_in_a_text(text, sentence, command, trained):
    one_sentence(command("predict", trained, "--text", text), sentence)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "standard input: empty; it needs at least one text."),
        (b"caf\xe9\n", "standard input, line 1: not UTF-8; save it as UTF-8 (for instance with `iconv -f "),
    ],
)
def test_mistakes_on_standard_input(content, sentence, command, trained, pipe):
    pipe(content)
    one_sentence(command("predict", trained, "-"), f"{sentence}…")


def test_a_line_is_answered_before_the_next_is_written(trained):
    start = [sys.executable, "-c", "from calibrant.cli import main; main()", "predict", str(trained), "-"]
    with subprocess.Popen(start, stdin=PIPE, stdout=PIPE, stderr=PIPE, env=os.environ) as process:
        assert process.stdin is not None
        for text in (b"a card\n", b"a box\n"):
            process.stdin.write(text)
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["label"]
        process.stdin.write(b"a box\ncaf\xe9\na card")
        rest, told = process.communicate(timeout=60)
    assert len(rest.splitlines()) == 1  # what came before the line that cannot be read
    assert b"standard input, line 4: not UTF-8" in told
    assert process.returncode == 2


def test_a_blank_line_is_answered_with_an_empty_decision(command, trained, pipe):
    pipe(b"a card\n\na box\n \n")
    code, out, err = command("predict", trained, "-")
    rows = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert [row["label"] is None for row in rows] == [False, True, False, True]
    assert rows[1] == {
        "label": None,
        "confidence": None,
        "familiarity": None,
        "abstain": True,
        "probabilities": {},
    }
    assert err.strip() == "2 of 4 texts are blank; their answers are empty."


def test_the_most_probable_labels_alone(command, trained):
    (line,) = command("predict", trained, "--text", "a card", "--top", 2)[1].splitlines()
    row = json.loads(line)
    (first, p), (_, q) = row["probabilities"].items()
    assert first == row["label"]
    assert p == row["confidence"] > q


HEADER = ("id", "text", "label")


@pytest.fixture
def tickets_file(csv_file):
    rows = [(str(i), text, label) for i, (text, label) in enumerate(corpus(6))]
    rows[2] = ("2", " ", "billing")
    return csv_file("tickets.csv", rows, HEADER), rows


def read(path):
    if path.suffix == ".csv":
        with open(path, newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))
    if path.suffix == ".parquet":
        return pq.read_table(path).to_pylist()
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_a_file_comes_back_with_the_answers_beside_its_columns(
    command, trained, tickets_file, tmp_path, kind
):
    path, rows = tickets_file
    out = tmp_path / "new" / f"decided.{kind}"
    code, told, err = command("predict", trained, path, "--out", out, "--top", 2)
    assert (code, told) == (0, f"{out}: 6 texts, 0 abstained on, 1 blank\n")
    assert "has a column 'label'; the answer is in 'predicted_label'" in " ".join(err.split())
    decided = read(out)
    added = ["predicted_label", "confidence", "familiarity", "abstain", "label_2", "confidence_2"]
    assert all(list(row) == [*HEADER, *added] for row in decided)
    assert [tuple(row[name] for name in HEADER) for row in decided] == rows
    answers = [json.loads(line) for line in command("predict", trained, path)[1].splitlines()]
    for row, answer in zip(decided, answers, strict=True):
        assert (row["predicted_label"] or None) == answer["label"]
        if answer["label"] is not None:
            assert float(row["confidence"]) == round(answer["confidence"], 4)
            assert float(row["confidence_2"]) <= float(row["confidence"])
    assert decided[0]["abstain"] == ("false" if kind == "csv" else False)
    assert decided[2]["confidence"] == ("" if kind == "csv" else None)


def test_sets_in_a_file(command, run_copy, tickets_file, tmp_path):
    out = tmp_path / "decided.csv"
    assert command("predict", run_copy, tickets_file[0], "--out", out, "--coverage", 0.9)[0] == 0
    sets = [json.loads(row["set"]) for row in read(out)]
    assert sets[2] == []
    assert all(sets[i] for i in (0, 1, 3, 4, 5))


def test_what_fails_on_the_way_leaves_the_file_of_before(
    command, trained, tickets_file, tmp_path, monkeypatch
):
    out = tmp_path / "decided.csv"
    out.write_text("before")

    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(Classifier, "outputs", interrupted)
    assert command("predict", trained, tickets_file[0], "--out", out)[0] == 130
    assert out.read_text() == "before"


@pytest.mark.parametrize(
    ("header", "sentence"),
    [
        (("text", "label", "predicted_label"), "has columns 'label' and 'predicted_label' already"),
        (("text", "id", "id"), "2 columns are called 'id'; rename all but one."),
    ],
)
def test_columns_that_cannot_be_kept(command, trained, csv_file, header, sentence):
    path = csv_file("tickets.csv", [("a card", "1", "2")], header)
    code, _, err = command("predict", trained, path, "--out", path.with_name("decided.csv"))
    assert code == 2
    assert sentence in err
