"""``calibrant audit --probabilities``: a classifier of which nothing is known but what it said."""

import csv
import json
import re

import numpy as np
import pytest

from calibrant import audit
from calibrant.audits.subject import load_subject
from calibrant.calibrators import from_state
from calibrant.data.files import read_file
from calibrant.errors import UserError
from calibrant.metrics import negative_log_likelihood
from calibrant.types import Outputs
from support.made_runs import LABELS, opinionated
from support.sentences import one_sentence
from support.tiny import UNFAMILIAR, corpus, tiny_tokenizer

PAIRS = {"test": "--probabilities", "dev": "--dev-probabilities", "ood": "--ood-probabilities"}


def write(path, rows, header=("text", "label")):
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model that is too sure, its texts, and what it says of them."""
    here = tmp_path_factory.mktemp("said")
    model = opinionated("distilbert")
    model.config.id2label = dict(enumerate(LABELS))
    model.classifier.weight.data *= 4
    model.classifier.bias.data *= 4
    model.save_pretrained(here / "model")
    tiny_tokenizer().save_pretrained(here / "model")
    subject, rng = load_subject(str(here / "model"), max_length=32), np.random.default_rng(0)
    for part, n in (("test", 120), ("dev", 80), ("ood", 40)):
        texts = [text for text, _ in corpus(n, seed=n)] if part != "ood" else UNFAMILIAR * 5
        p = subject.predict_proba(texts)
        honest = np.exp(np.log(np.clip(p, 1e-12, 1)) / 4)  # from which labels are drawn
        honest /= honest.sum(axis=1, keepdims=True)
        ids = (honest.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
        write(here / f"{part}.csv", [(text, LABELS[i]) for text, i in zip(texts, ids, strict=True)])
        np.save(here / f"{part}.npy", p)
        write(here / f"{part}-said.csv", p[:, ::-1].tolist(), list(LABELS)[::-1])
    return here


@pytest.fixture
def here(folder, monkeypatch):
    monkeypatch.chdir(folder)
    return folder


def files(kind="{}.npy", parts=("test", "dev", "ood")):
    return [word for part in parts for word in (f"--{part}", f"{part}.csv", PAIRS[part], kind.format(part))]


def figures(command, *words):
    code, out, err = command("audit", *words, "--json")
    assert code == 0, err
    return json.loads(out)


@pytest.mark.parametrize("kind", ["{}.npy", "{}-said.csv"])
def test_the_figures_are_those_of_the_model_itself(command, here, kind):
    """By an array with the classes in their order, and by a table with its own order."""
    assert sorted(LABELS) == list(LABELS)
    given = figures(command, *files(kind))
    asked = figures(
        command,
        *(
            "--model",
            "model",
            "--max-length",
            32,
            "--test",
            "test.csv",
            "--dev",
            "dev.csv",
            "--ood",
            "ood.csv",
        ),
    )
    for part in ("metrics", "metrics_calibrated"):
        for name in ("accuracy", "ece", "nll", "brier", "mean_confidence_ood"):
            assert given[part][name] == pytest.approx(asked[part][name], rel=1e-3, abs=1e-5), name
    assert given["calibrator"] == asked["calibrator"]
    assert given["miscalibration"]["direction"] == asked["miscalibration"]["direction"] == "over-confident"
    assert given["advice"]["action"] == asked["advice"]["action"]
    assert (given["max_length"], given["metrics_familiarity"], given["exported"]) == (None, None, None)
    assert given["model"] == kind.format("test")


def test_what_is_said_to_a_person(command, here):
    code, out, err = command("audit", *files(parts=("test", "dev")), "--report", here / "page.html")
    assert code == 0, err
    assert "it is over-confident" in out
    assert "Advice: calibrate it." in out
    assert re.search(r"Fitted on dev, \S+.* takes the ECE on test from", out)
    assert "--export" not in out  # there is no model to write
    assert "audit.html" in out.splitlines()[-1]
    assert "calibrant audit: test.npy" in (here / "page.html").read_text(encoding="utf-8")


def test_without_dev_the_next_command_asks_for_both(command, here):
    code, out, err = command("audit", *files(parts=("test",)))
    assert code == 0, err
    assert out.splitlines()[-1] == (
        "Next: calibrant audit --test test.csv --probabilities test.npy --dev dev.csv "
        "--dev-probabilities dev.npy"
    )


def test_the_next_command_of_retraining_names_no_probabilities(command, here):
    """One that is as sure of unfamiliar text."""
    p = np.load(here / "test.npy")
    np.save(here / "sure.npy", np.tile([[0.0, 1.0, 0.0]], (40, 1)))
    write(
        here / "right.csv",
        [(text, LABELS[i]) for text, i in zip(read_file("test.csv").texts, p.argmax(1), strict=True)],
    )
    given = (
        "--test",
        "right.csv",
        "--probabilities",
        "test.npy",
        "--dev",
        "dev.csv",
        "--dev-probabilities",
        "dev.npy",
    )
    found = figures(command, *given, "--ood", "ood.csv", "--ood-probabilities", "sure.npy")
    assert found["advice"]["action"] == "retrain"
    assert found["next"] == "calibrant train --dev dev.csv --train train.csv --out runs/test"
    assert found["metrics"]["mean_confidence_ood"] == pytest.approx(1)  # of zeros, which have no logarithm


def test_the_calibrator_can_be_applied_by_hand(command, here):
    """What ``--json`` gives of it and log p are enough for the figures that were promised."""
    found = figures(command, *files(parts=("test", "dev")))
    outputs = Outputs(np.log(np.clip(np.load("test.npy").astype(float), 1e-12, 1)))
    p = from_state(found["calibrator_state"]).probabilities(outputs)
    y = np.array([LABELS.index(label) for label in read_file("test.csv", labelled=True).labels])
    assert negative_log_likelihood(p, y) == pytest.approx(found["metrics_calibrated"]["nll"])
    assert found["metrics_calibrated"]["nll"] < found["metrics"]["nll"]


def test_in_python(here):
    found = audit(probabilities="test.npy", test="test.csv")
    assert found.as_it_is.metrics["n_test"] == 120


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ("--test", "test.csv"),
            "Give either --model, or --probabilities of another classifier for the texts of --test.",
        ),
        (
            ("--model", "model", *files(parts=("test",))),
            "Give either --model, or --probabilities of another classifier for the texts of --test.",
        ),
        *[
            (
                (*files(parts=("test",)), option, value),
                f"{option} asks for the model itself, and --probabilities are all that is known of it; "
                "leave it out, or give --model.",
            )
            for option, value in (("--export", "x"), ("--train", "dev.csv"), ("--max-length", 32))
        ],
        (
            (*files(parts=("test",)), "--dev", "dev.csv"),
            "--dev has no --dev-probabilities: what the classifier says of its texts.",
        ),
        (
            (*files(parts=("test",)), "--ood-probabilities", "ood.npy"),
            "--ood-probabilities goes with --ood; name a file.",
        ),
        (
            ("--model", "model", "--test", "test.csv", "--dev", "dev.csv", "--dev-probabilities", "dev.npy"),
            "--dev-probabilities goes with --probabilities; name a file.",
        ),
        (
            ("--test", "test.csv", "--probabilities", "dev.npy"),
            "dev.npy has 80 rows for the 120 texts of --test; give a row for each, in the same order.",
        ),
        (("--test", "test.csv", "--probabilities", "no.npy"), "No file 'no.npy'; check the path."),
    ],
)
def test_what_is_refused(command, here, words, sentence):
    one_sentence(command("audit", *words), sentence)


@pytest.mark.parametrize(
    ("p", "words"),
    [
        (lambda p: np.log(p), "logits.npy: probabilities must lie in "),
        (lambda p: p / 2, "logits.npy: Each row of probabilities must sum to 1 within 0.001"),
        (lambda p: p * np.nan, "logits.npy: probabilities must be finite"),
        (lambda p: p[:, :1] * 0 + 1, "one column is no choice; give one for each class."),
    ],
)
def test_what_is_no_probability(here, tmp_path, p, words):
    np.save(tmp_path / "logits.npy", p(np.load("test.npy")))
    with pytest.raises(UserError) as refused:
        audit(probabilities=str(tmp_path / "logits.npy"), test="test.csv")
    assert words in str(refused.value)
