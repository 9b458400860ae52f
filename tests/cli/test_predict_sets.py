"""``calibrant predict --coverage``."""

import json
import shutil

import pytest

import calibrant
from support.sentences import one_sentence
from support.tiny import WORDS, corpus, noisy_corpus

TEXTS = [text for text, _ in corpus(20, seed=22)]


@pytest.fixture
def here(tmp_path, monkeypatch, trained, csv_file):
    """The user's directory, with a run, a dev and a test file."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(trained, "run")
    csv_file("dev.csv", noisy_corpus(120, seed=21))
    csv_file("test.csv", corpus(20, seed=22))
    return tmp_path


def rows(command, *options):
    code, out, err = command("predict", "run", "test.csv", *options)
    assert code == 0, err
    return [json.loads(line) for line in out.splitlines()]


def test_the_set_beside_the_usual_fields(command, here):
    plain = rows(command)
    assert not (here / "run" / "dev.safetensors").exists()  # nothing is computed that was not asked for
    with_sets = rows(command, "--coverage", 0.9)
    assert (here / "run" / "dev.safetensors").exists()
    assert [{**row, "set": got["set"]} for row, got in zip(plain, with_sets, strict=True)] == with_sets
    for row in with_sets:
        assert row["set"][0] == row["label"]
        by_probability = sorted(row["probabilities"], key=row["probabilities"].get, reverse=True)
        assert row["set"] == by_probability[: len(row["set"])]
    assert with_sets == rows(command, "--coverage", 0.9)


def test_options_are_those_of_python(command, here):
    classifier = calibrant.load("run")
    by_command = [row["set"] for row in rows(command, "--coverage", 0.97, "--dev", "dev.csv")]
    assert by_command == classifier.predict_set(TEXTS, 0.97)
    got = [row["set"] for row in rows(command, "--coverage", 0.97, "--set-method", "aps", "--set-per-class")]
    assert got == classifier.predict_set(TEXTS, 0.97, "aps", per_class=True)
    assert got != by_command
    code, out, _ = command("predict", "run", "--text", TEXTS[0], "--coverage", 0.97)
    assert (code, json.loads(out)["set"]) == (0, by_command[0])


@pytest.mark.filterwarnings("default")
def test_rare_classes_are_told_in_one_line(command, here, csv_file):
    by_label = {name: [row for row in corpus(120, seed=21) if row[1] == name] for name in WORDS}
    csv_file("rare.csv", [*by_label["account"], *by_label["billing"][:6], *by_label["shipping"][:7]])
    options = ("--set-per-class", "--dev", "rare.csv")
    code, _, err = command("predict", "run", "test.csv", "--coverage", 0.9, *options)
    assert code == 0
    assert (
        "calibrant: warning: 2 of 3 classes have fewer than 9 dev texts each; for these the coverage is "
        "about 0.9, of all of them together."
    ) in " ".join(err.split())
    assert "run keeps its answers on rare.csv: sets are now fitted on these" in " ".join(err.split())
    code, out, err = command("predict", "run", "test.csv", "--coverage", 0.95, *options)
    assert (code, out) == (2, "")
    assert err.strip("\n") == (
        "calibrant: Sets per class with coverage 0.95: 2 of 3 classes have fewer than 19 dev texts each, and "
        "13 together; give more of them, ask for less coverage, or for sets that are not per class."
    )


@pytest.mark.filterwarnings("default")
def test_classes_without_any_dev_text_are_named(command, here, csv_file):
    by_label = {name: [row for row in corpus(120, seed=21) if row[1] == name] for name in WORDS}
    csv_file("none.csv", [*by_label["account"][:6], *by_label["billing"][:7]])
    options = ("--set-per-class", "--dev", "none.csv")
    code, _, err = command("predict", "run", "test.csv", "--coverage", 0.9, *options)
    assert code == 0
    assert (
        "calibrant: warning: 3 of 3 classes have fewer than 9 dev texts each; for these the coverage is "
        "about 0.9, of all of them together. Not covered, for want of any dev text: shipping."
    ) in " ".join(err.split())


@pytest.mark.filterwarnings("default")
def test_a_calibrator_that_knows_the_dev_texts_by_heart(command, here):
    told = (
        "calibrant: warning: The calibrator 'isotonic' was fitted on these very texts (file dev.csv), so "
        "that sets hold the true label less often than asked; name other labelled texts with --dev."
    )
    for fitted_on, warned in (("dev.csv", True), ("test.csv", False)):
        assert command("calibrate", "run", "--dev", fitted_on, "--calibrator", "isotonic")[0] == 0
        code, _, err = command("predict", "run", "test.csv", "--coverage", 0.9, "--dev", "dev.csv")
        assert (code, told in " ".join(err.split())) == (0, warned)


# A command and the sentence that it gets; an ellipsis stands for the rest of it.
MISTAKES = {
    "predict run test.csv --coverage 0": (
        "The coverage of sets must lie between 0 and 1, got 0; write 0.9 for …"
    ),
    "predict run test.csv --coverage 90": (
        "The coverage of sets must lie between 0 and 1, got 90; write 0.9 for …"
    ),
    "predict moved test.csv --coverage 90 --out answers.csv": (  # before the run is asked for its dev texts
        "The coverage of sets must lie between 0 and 1, got 90; write 0.9 for …"
    ),
    "predict run test.csv --coverage 0.9 --set-method asp": (
        "Unknown set method 'asp'; did you mean 'aps'? Known: lac, aps."
    ),
    "predict run test.csv --set-method aps": (
        "--set-method goes with --coverage; add, for instance, --coverage 0.9."
    ),
    "predict run test.csv --set-per-class": (
        "--set-per-class goes with --coverage; add, for instance, --coverage 0.9."
    ),
    "predict run test.csv --dev dev.csv": "--dev goes with --coverage; add, for instance, --coverage 0.9.",
    "predict run test.csv --coverage 0.98": (
        "Sets with coverage 0.98 need 49 dev texts or more, got 40; give more of them, or ask for less "
        "coverage."
    ),
    "predict run test.csv --coverage 0.9 --dev no.csv": "No file 'no.csv'; check the path.",
    "predict run no.csv --coverage 0.9": "No file 'no.csv'; check the path.",
    "predict run test.csv --coverage 0.9 --dev unlabelled.csv": (
        "--dev unlabelled.csv: no column 'label', and its columns are those of training; rename it."
    ),
    "predict moved test.csv --coverage 0.9": (
        "--dev is missing, and the run's own dev texts cannot be had again (No file 'gone.csv'; check the "
        "path); name a labelled file with text that training has not seen."
    ),
}


@pytest.mark.parametrize("line", MISTAKES)
def test_a_mistake_gets_one_sentence(line, here, csv_file, command):
    csv_file("unlabelled.csv", [("a card",)], ("text",))
    shutil.copytree("run", "moved")
    record = json.loads((here / "moved" / "calibrant.json").read_text())
    record["config"]["train"] = "gone.csv"
    (here / "moved" / "calibrant.json").write_text(json.dumps(record))
    one_sentence(command(*line.split()), MISTAKES[line])
