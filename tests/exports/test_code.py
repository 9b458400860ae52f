"""A folder with its own code, and ONNX: what a pooled run with familiarity and a rule becomes."""

import json
import re
import shutil
import subprocess
import sys
import warnings

import numpy as np
import pytest
from onnxruntime import InferenceSession

from calibrant.classifier import load
from calibrant.data.encode import encode, pad
from calibrant.errors import UserError
from calibrant.exports.answers import Answers, difference, of_the_run, steps
from calibrant.tasks.export import export
from calibrant.tasks.threshold import threshold
from support.tiny import UNFAMILIAR, corpus

TEXTS = [text for text, _ in corpus(40, seed=9)] + [" ".join(UNFAMILIAR), "refund password parcel " * 40]

PLAIN = """
import json, sys
sys.modules["calibrant"] = None  # whoever imports it fails
import torch
from transformers import pipeline

torch.set_num_threads(1)
folder, texts = json.load(sys.stdin)
pipe = pipeline("text-classification", folder, trust_remote_code=True, truncation=True)
print(json.dumps([pipe(texts, batch_size=5, top_k=None), pipe(texts[0])]))
"""


def asked_without_calibrant(folder, texts, home):
    done = subprocess.run(
        [sys.executable, "-I", "-c", PLAIN],
        input=json.dumps([str(folder), texts]),
        capture_output=True,
        text=True,
        timeout=120,
        env={"HF_HOME": str(home), "HF_HUB_OFFLINE": "1", "ONEDNN_MAX_CPU_ISA": "AVX512_CORE"},
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def from_rows(rows, labels):
    scores = [{each["label"]: each["score"] for each in row} for row in rows]
    return Answers(
        np.array([[of_text[name] for name in labels] for of_text in scores]),
        np.array([row[0]["familiarity"] for row in rows]),
        np.array([row[0]["abstain"] for row in rows]),
    )


def onnx_answers(file, classifier, texts):
    session = InferenceSession(file)
    rows = encode(classifier.tokenizer, texts, classifier.max_length)
    ids, mask = (part.numpy() for part in pad(rows, classifier.tokenizer.pad_token_id))
    names = ["probabilities", "familiarity", "abstain"]
    return Answers(*session.run(names, {"input_ids": ids, "attention_mask": mask}))


@pytest.fixture(scope="module")
def ruled(ruled_run):
    """The run with a rule, and all that can be made of it."""
    folder = ruled_run.parent / "exported"
    return ruled_run, export(ruled_run, folder=folder, onnx=True, int8=True, max_loss=0.1)


def test_the_folder_and_the_graph_decide_as_the_run_does(ruled, tmp_path):
    run, done = ruled
    assert done.needs_code
    assert done.calibrator == "temperature+familiarity"
    assert done.difference < 1e-5
    assert done.onnx_difference < 1e-5
    classifier = load(run)
    said = classifier.outputs(TEXTS)
    expected = of_the_run(said, classifier.rule)
    left_out = steps(classifier.calibrator, classifier.rule, said)
    assert left_out.mean() < 0.1
    assert 0 < expected.abstain.mean() < 1
    assert (expected.familiarity < 0.05).any()
    graph = onnx_answers(done.folder / "model.onnx", classifier, TEXTS)
    assert difference(expected, graph, left_out) < 1e-4
    rows, single = asked_without_calibrant(done.folder, TEXTS, tmp_path)
    assert difference(expected, from_rows(rows, classifier.label_names), left_out) < 1e-4
    assert single == [rows[0][0]] or single[0]["score"] == pytest.approx(rows[0][0]["score"], abs=1e-6)


def test_eight_bits_have_a_calibrator_of_their_own(ruled):
    run, done = ruled
    classifier = load(run)
    assert done.int8.n == 60
    assert done.int8.other_labels < 0.2
    small = onnx_answers(done.folder / "model_quantized.onnx", classifier, TEXTS)
    large = onnx_answers(done.folder / "model.onnx", classifier, TEXTS)
    apart = np.abs(small.probabilities - large.probabilities).max()
    assert 1e-4 < apart < 0.5  # other weights, and not other answers
    size = {name: (done.folder / name).stat().st_size for name in ("model.onnx", "model_quantized.onnx")}
    assert size["model_quantized.onnx"] < size["model.onnx"]
    alone = onnx_answers(done.folder / "model_quantized.onnx", classifier, TEXTS[3:4])
    np.testing.assert_allclose(alone.probabilities[0], small.probabilities[3], atol=1e-5)


def test_the_card_tells_what_it_is(ruled):
    _, done = ruled
    card = (done.folder / "README.md").read_text()
    assert 'pipeline("text-classification", "exported", trust_remote_code=True, truncation=True' in card
    assert "`temperature+familiarity`, fitted on 60 texts (`file train.csv" in card
    assert "It is part of this model." in card
    assert "`model.onnx` takes `input_ids`" in card
    assert (
        "`model_quantized.onnx` is the same, in integers of 8 bits: on the 60 dev texts its accuracy" in card
    )
    assert "and abstains elsewhere. Promised: of the texts it answers at most 30.00% are wrong" in card
    assert "`model_quantized.onnx` abstains by the same rule, without the promise." in card


def test_no_file_knows_a_folder_of_this_machine(ruled, probed, model_dir):
    _, done = ruled
    for file in done.folder.iterdir():
        content = file.read_bytes()
        for folder in (probed.parent, model_dir, done.folder.parent):
            assert str(folder).encode() not in content, file.name


def test_what_loses_too_much_is_not_written(probed, tmp_path, monkeypatch):
    def upside_down(graph):
        from onnx import numpy_helper

        for each in graph.graph.initializer:
            values = numpy_helper.to_array(each)
            if values.shape in ((3, 64), (64, 3)):  # the head
                each.CopyFrom(numpy_helper.from_array(-values, each.name))
        return graph

    monkeypatch.setattr("calibrant.tasks.export.quantised", upside_down)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a temperature at its bound
        with pytest.raises(UserError) as refused:
            export(probed, folder=tmp_path / "new", int8=True)
    assert re.fullmatch(
        r"--int8 would cost \d\d\.\d\d% of accuracy on the 60 dev texts \(.* → .*\), more than --max-loss "
        r"0\.01; nothing was written\. Leave --int8 out, or allow more\.",
        str(refused.value),
    )
    assert list(tmp_path.iterdir()) == []


def test_texts_that_are_gone(probed, tmp_path):
    run = shutil.copytree(probed, tmp_path / "run")
    record = json.loads((run / "calibrant.json").read_text())
    record["config"]["train"] = str(tmp_path / "gone.csv")
    (run / "calibrant.json").write_text(json.dumps(record))
    assert export(run, folder=tmp_path / "new").difference < 1e-5, "eight bits alone need them"
    with pytest.raises(
        UserError, match=r"^--int8 fits on the run's own texts, and these cannot be had again"
    ):
        export(run, folder=tmp_path / "small", int8=True)


def test_a_rule_whose_score_was_fitted_is_not_for_eight_bits(probed, tmp_path, csv_file):
    run = shutil.copytree(probed, tmp_path / "run")
    words = [" ".join(UNFAMILIAR[i % 8 :] + UNFAMILIAR[: i % 5]) for i in range(40)]
    other = csv_file("other.csv", [(f"{text} {'it ' * i}", "") for i, text in enumerate(words)])
    threshold(run, risk=0.4, ood=str(other), ood_rate=0.5, score="mahalanobis")
    with pytest.raises(
        UserError, match=r"^--int8: the rule of abstention reads the score 'mahalanobis', whose"
    ):
        export(run, folder=tmp_path / "new", int8=True)
    assert export(run, folder=tmp_path / "new").difference < 1e-5
