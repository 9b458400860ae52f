"""The command line as a whole: the user's story, the installed script, and what the parser refuses."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from support.evaluated import DETECTION, KEYS
from support.tiny import corpus


def test_from_a_csv_to_answers(command, tickets, here, pipe):
    code, out, _ = command(*tickets, "--epochs", 5, "--learning-rate", 0.003, "--out", "run")
    assert code == 0
    assert [line.split(":")[0] for line in out.splitlines()] == [
        "160 texts, 40 for dev, 3 classes",
        "run",
        "Next",
    ]

    code, out, _ = command("evaluate", "run", "--test", "test.csv", "--ood", "other.csv", "--json")
    numbers = json.loads(out)
    assert code == 0
    assert set(numbers) == KEYS
    assert set(numbers["misclassification"]) == set(numbers["ood"]) == DETECTION
    assert (numbers["n_test"], numbers["n_ood"]) == (60, 28)
    assert numbers["accuracy"] > 0.8  # a guess: 0.33
    assert 1 / 3 < numbers["mean_confidence_ood"] < 1
    kept = json.loads((here / "run" / "metrics.json").read_text())
    assert kept["metrics"] == numbers
    assert kept["measured_on"]["ood"]["source"] == "file other.csv"

    code, out, _ = command(
        "evaluate", "run", "--test", "test.csv", "--ood", "other.csv", "--report", "page.html"
    )
    assert code == 0
    assert "Report: page.html" in out
    assert f"{100 * numbers['accuracy']:.1f} %" in out
    page = (here / "page.html").read_text(encoding="utf-8")
    assert page.lstrip().startswith("<!doctype html>")
    assert "test: 60 texts, file test.csv" in page

    code, out, _ = command("predict", "run", "--text", "refund my card", "--text", "parcel lost – délai")
    answers = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert [answer["label"] for answer in answers] == ["billing", "shipping"]
    for answer in answers:
        assert set(answer) == {"label", "confidence", "familiarity", "abstain", "probabilities"}
        assert answer["familiarity"] is None  # this run has nothing that tells it
        assert answer["confidence"] == max(answer["probabilities"].values())
        assert sum(answer["probabilities"].values()) == pytest.approx(1)
        assert answer["abstain"] is False

    code, from_file, _ = command("predict", "run", "test.csv", "--threshold", 1)
    answers = [json.loads(line) for line in from_file.splitlines()]
    assert (code, len(answers)) == (0, 60)
    assert all(answer["abstain"] for answer in answers)
    right = [answer["label"] == label for answer, (_, label) in zip(answers, corpus(60, seed=1), strict=True)]
    assert sum(right) / 60 == pytest.approx(numbers["accuracy"])

    pipe("\n".join(text for text, _ in corpus(60, seed=1)).encode())
    code, from_pipe, _ = command("predict", "run", "-", "--threshold", 1)
    piped = [json.loads(line) for line in from_pipe.splitlines()]
    assert (code, [answer["label"] for answer in piped]) == (0, [answer["label"] for answer in answers])
    # Lines are answered as they come, in other batches than a file's, which round otherwise.
    said, expected = ([answer["confidence"] for answer in told] for told in (piped, answers))
    assert said == pytest.approx(expected, abs=1e-6)


def test_the_installed_command():
    """Once as a process of its own: the entry point, the exit code and the streams."""
    script = Path(sys.executable).with_name("calibrant")
    arguments = ("train", "--train", "no.csv", "--out", "new")
    done = subprocess.run([script, *arguments], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "calibrant: No file 'no.csv'; check the path.\n"


# What matters of a refusal: which option, and what it takes. The words between are the parser's, and those of
# typer 0.29 (pydantic's) are others than those of older ones (click's).
REFUSED = {
    "train --train good.csv": r"Missing option '--out'\.",
    "train --train good.csv --out new --epochs many": r"Invalid value for '--epochs': .*\binteger\b",
    "train --train good.csv --out new --epoch 3": r"No such option:? '?--epoch\b.*--epochs\b",
    "predict run good.csv --threshold 2": r"Invalid value for '--threshold': .*\b1(\.0)?\.",
    "predict run good.csv --set 0.9": r"No such option:? '?--set\b",  # a hyper-parameter, in train alone
    "predict run good.csv --top 0": r"Invalid value for '--top': .*\b1\.",
    "predict": r"Missing argument '(run|RUN)'\.",
    "serve run --threshold -1": r"Invalid value for '--threshold': .*\b0\b",
    "serve run --port many": r"Invalid value for '--port': .*\binteger\b",
    "audit --test good.csv --max-length 3": r"Invalid value for '--max-length': .*\b4\.",
    "list things": r"Invalid value for '(kind|KIND.*)': 'things' is not one of 'methods', 'objectives'",
    "study figure --format bmp": r"Invalid value for '--format': 'bmp' is not one of 'svg', 'png', 'pdf'\.",
    "study": r"Missing command\.",
    "tain": r"No such command 'tain'\. Did you mean 'train'\?",
}


@pytest.mark.parametrize(("line", "sentence"), REFUSED.items(), ids=REFUSED)
def test_what_the_parser_refuses(line, sentence, command, tmp_path, monkeypatch):
    """In one line, as every other mistake, with the command that says what is taken."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "good.csv").touch()
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "calibrant.json").write_text("{}")
    code, out, err = command(*line.split())
    assert (code, out) == (2, "")
    assert re.match(f"calibrant: {sentence}", err), err
    assert re.search(r" See `calibrant[a-z ]* --help`\.\n$", err)
    assert err.count("\n") == 1


def test_an_option_without_its_value(command):
    """Of which the parser does not say whose it is."""
    assert command("study", "run", "--threads") == (
        2,
        "",
        "calibrant: Option '--threads' requires an argument.\n",
    )
