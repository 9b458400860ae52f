"""Pairs of texts, from two columns of a file to every answer and export."""

import csv
import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer

import calibrant
from calibrant import RunConfig, UserError, load
from calibrant.exports.onnx import Session
from calibrant.tasks.evaluate import evaluate
from calibrant.tasks.export import export
from calibrant.tasks.train import train
from calibrant.types import Pair
from support.sentences import one_sentence
from support.tiny import WITH_TYPES, pair_corpus, tiny_bert, tiny_tokenizer

HEADER = ("question", "answer", "label")
PAIRS = [(question, answer) for question, answer, _ in pair_corpus(40, seed=5)]
COLUMNS = ("--text-column", "question", "--pair-column", "answer")


@pytest.fixture(scope="module")
def typed_dir(tmp_path_factory):
    """A model whose tokenizer tells the two texts apart, as BERT's does."""
    path = tmp_path_factory.mktemp("tiny-bert")
    tiny_bert().save_pretrained(path)
    tiny_tokenizer(model_input_names=WITH_TYPES).save_pretrained(path)
    return path


@pytest.fixture(scope="module")
def run(tmp_path_factory, typed_dir):
    """Trained with the default recipe on pairs; for reading only."""
    folder = tmp_path_factory.mktemp("pairs")
    with open(folder / "train.csv", "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([HEADER, *pair_corpus(240)])
    settings = RunConfig(
        train=str(folder / "train.csv"),
        text_column="question",
        pair_column="answer",
        model=str(typed_dir),
        max_length=48,
        epochs=6,
        learning_rate=3e-3,
    )
    return train(settings, out=folder / "run").path


@pytest.mark.slow
def test_it_learns_which_text_is_which(run, csv_file):
    test = csv_file("test.csv", pair_corpus(60, seed=9), HEADER)
    assert evaluate(run, test=str(test)).entry.metrics["accuracy"] > 0.6  # a third by chance
    classifier = load(run)
    forth, back = classifier.predict_proba(PAIRS), classifier.predict_proba([(b, a) for a, b in PAIRS])
    assert np.abs(forth - back).max() > 0.1
    assert classifier.predict([Pair(*PAIRS[0])]) == classifier.predict(PAIRS[:1])
    assert classifier.predict(PAIRS[:1])[0].familiarity is not None
    assert classifier.cut([("card " * 60, "box")]) == [True]


def test_a_model_reads_the_types_of_its_tokens(run):
    """As transformers itself asks the saved model."""
    classifier = load(run)
    folder = run / "model"
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    batch = tokenizer(*map(list, zip(*PAIRS, strict=True)), padding=True, return_tensors="pt")
    assert batch["token_type_ids"].any()
    with torch.no_grad():
        logits = model(**batch).logits.numpy()
    for needs in (frozenset(), frozenset({"features", "middle"})):
        np.testing.assert_allclose(classifier.outputs(PAIRS, needs).logits, logits, atol=1e-5)


@pytest.mark.slow
def test_every_export_answers_as_the_run(run, tmp_path):
    made = export(run, folder=tmp_path / "out", onnx=True)
    assert made.needs_code
    assert made.difference < 1e-5
    assert made.onnx_difference < 1e-4
    session = Session(tmp_path / "out" / "model.onnx")
    assert [value.name for value in session._session.get_inputs()] == [
        "input_ids",
        "attention_mask",
        "token_type_ids",
    ]
    assert '"text_pair"' in (tmp_path / "out" / "README.md").read_text()
    classifier = load(run)
    rows = classifier._rows(PAIRS)
    found = session(rows, classifier.tokenizer.pad_token_id)["probabilities"]
    np.testing.assert_allclose(found, classifier.predict_proba(PAIRS), atol=1e-4)


def test_a_plain_export_too(csv_file, typed_dir, tmp_path):
    config = RunConfig(
        train=str(csv_file("train.csv", pair_corpus(60), HEADER)),
        text_column="question",
        pair_column="answer",
        model=str(typed_dir),
        method="temperature-scaling",
        epochs=1,
    )
    made = train(config, out=tmp_path / "run")
    plain = export(made.path, folder=tmp_path / "plain")
    assert not plain.needs_code
    assert plain.difference < 1e-5


def test_the_commands_find_both_columns(command, run, csv_file, tmp_path):
    file = csv_file("new.csv", pair_corpus(30, seed=7), HEADER)
    code, out, err = command("predict", run, file)
    assert code == 0, err
    assert command("predict", run, file, "--out", tmp_path / "decided.csv")[0] == 0
    rows = [json.loads(line) for line in out.splitlines()]
    expected = load(run).predict([row[:2] for row in pair_corpus(30, seed=7)])
    assert [row["label"] for row in rows] == [decision.label for decision in expected]
    other = csv_file("other.csv", pair_corpus(30, seed=7), ("q", "a", "label"))
    one_sentence(
        command("predict", run, other, "--text-column", "q"),
        f"{other}: no column 'answer'; its columns are q, a, label. Name the one that holds the second text "
        "with --pair-column.",
    )
    code, again, _ = command("predict", run, other, "--text-column", "q", "--pair-column", "a")
    assert (code, again) == (0, out)
    code, _, err = command("predict", run, file, file, "--out", tmp_path / "corpus")
    assert code == 0, err
    assert command("monitor", run, file)[0] == 0
    copy = shutil.copytree(run, tmp_path / "run")
    assert command("calibrate", copy, "--dev", file, "--calibrator", "temperature")[0] == 0


def test_what_is_no_pair_is_refused(command, run, csv_file):
    sentence = (
        "Text 1 of 1 is one text, and the run was trained on pairs; give both texts, as (text, second text) "
        "or as two columns of a file."
    )
    one_sentence(command("predict", run, "--text", "a card"), sentence)
    with pytest.raises(UserError, match=r"^Text 2 of 2 is empty"):
        load(run).predict([("a", "b"), ("a", " ")])
    with pytest.raises(UserError, match=r"^Text 1 of 1 has 3 parts; a pair has two\.$"):
        load(run).predict([("a", "b", "c")])
    gap = csv_file("gap.csv", [("a card", "", "billing"), ("a", "b", "shipping")], HEADER)
    one_sentence(
        command("train", "--train", gap, *COLUMNS, "--out", "nowhere"),
        f"{gap}, line 2: empty second text in column 'answer'; fill it or drop the line.",
    )
    one_sentence(
        command("train", "--dataset", "20ng", "--pair-column", "answer", "--out", "nowhere"),
        "A second text (--pair-column) goes with a training file (--train).",
    )


def test_a_run_of_single_texts_takes_no_pairs(trained):
    with pytest.raises(
        UserError, match="is a pair, and the run was trained on single texts; give the text alone"
    ):
        load(trained).predict([("a card", "a box")])


def test_the_verbs_in_python(run, csv_file):
    rows = list(calibrant.predict(run, texts=[PAIRS[0], None]))
    assert rows[0]["label"] == load(run).predict(PAIRS[:1])[0].label
    assert rows[1]["label"] is None
    test = str(csv_file("test.csv", pair_corpus(30, seed=7), HEADER))
    audited = calibrant.audit(str(run / "model"), test=test, text_column="question", pair_column="answer")
    plain = replace(load(run), calibrator=None)
    expected = plain.predict_proba([row[:2] for row in pair_corpus(30, seed=7)])
    np.testing.assert_allclose(audited.as_it_is.test.probabilities, expected, atol=1e-5)
