"""``calibrant evaluate``, and the mistakes that get one sentence."""

import json
import shutil

import pytest

from support.evaluated import KEYS
from support.sentences import cases, one_sentence
from support.tiny import corpus


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


# A command and the sentence that it gets; an ellipsis stands for the rest of it.
MISTAKES = cases(
    """
# runs
$ evaluate nowhere --test good.csv
nowhere is not a run: it has no calibrant.json. Train one with `calibrant train --out nowhere …`.
$ evaluate unfinished --test good.csv
unfinished has not finished training; run the same `calibrant train` again to resume it.
$ evaluate tampered --test good.csv
tampered/model/config.json is missing or not the file that was saved with the run; restore it or …
$ evaluate damaged --test good.csv
damaged/calibrant.json is damaged (Expecting property name …
$ evaluate nameless --test good.csv
nameless/calibrant.json is damaged (labels: Field required); restore it or train again.
$ evaluate newer --test good.csv
newer/calibrant.json has format 9, this version reads 2.

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
"""
)


@pytest.mark.parametrize("line", MISTAKES)
def test_a_mistake_gets_one_sentence(line, mistakes, command):
    one_sentence(command(*line.split()), MISTAKES[line])


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


def test_it_ends_in_a_verdict_and_one_command(run_copy, command, csv_file, monkeypatch):
    monkeypatch.chdir(run_copy.parent)
    csv_file("test.csv", corpus(60, seed=1))
    options = ("run", "--test", "test.csv", "--report", "page.html", "--figures", "figures")
    code, out, err = command("evaluate", *options)
    assert code == 0, err
    *_, familiar, reason, last = out.splitlines()
    assert familiar.startswith("On 60 familiar texts ")
    assert last.startswith("Next: calibrant ")
    page = (run_copy.parent / "page.html").read_text(encoding="utf-8").split('<h2 id="verdict">')[1]
    for part in (familiar, reason, last.removeprefix("Next: ")):
        assert part in page
    assert (run_copy.parent / "figures" / "reliability.png").exists()
    # What it says to do can be done.
    code, _, err = command(*last.split()[2:])
    assert code == 0, err


def test_figures_go_with_a_page(mistakes, command):
    code, out, err = command("evaluate", "run", "--test", "good.csv", "--figures", "new")
    assert (code, out) == (2, "")
    assert err == "calibrant: --figures goes with --report; name the page, as in --report page.html.\n"
