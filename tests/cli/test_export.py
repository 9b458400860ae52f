"""``calibrant export``."""

import json
import shutil

import numpy as np
import pytest
import torch
from onnxruntime import InferenceSession

import calibrant
from calibrant.exports import onnx
from calibrant.tasks import export as task
from support.made_runs import MATRIX, TEXTS, VECTOR, make_run
from support.sentences import one_sentence


def test_export(command, tmp_path):
    make_run(tmp_path / "run")
    code, out, err = command("export", tmp_path / "run", tmp_path / "plain")
    assert code == 0, err
    first, last = out.splitlines()
    assert first.startswith(
        f"{tmp_path}/plain: plain transformers model, temperature folded in; answers equal to "
    )
    assert last == f'In Python: pipeline("text-classification", "{tmp_path}/plain", truncation=True)'
    code, out, _ = command("export", tmp_path / "run", tmp_path / "again", "--json")
    result = json.loads(out)
    assert set(result) == {
        *("run", "folder", "needs_code", "calibrator", "difference", "onnx_difference", "int8", "address"),
    }
    assert (result["calibrator"], result["onnx_difference"]) == ("temperature", None)
    assert 0 <= result["difference"] < 1e-6


def onnx_answers(folder, texts, file="model.onnx"):
    """As a program without torch would: tokenizer, onnxruntime."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.enable_padding(pad_id=0)
    tokenizer.enable_truncation(32)
    rows = tokenizer.encode_batch(texts)
    inputs = {
        "input_ids": np.array([row.ids for row in rows]),
        "attention_mask": np.array([row.attention_mask for row in rows]),
    }
    session = InferenceSession(folder / file)
    names = [value.name for value in session.get_outputs()]
    return dict(zip(names, session.run(names, inputs), strict=True))


@pytest.mark.parametrize(
    ("family", "calibrator"),
    [
        ("bert", VECTOR),
        *(
            pytest.param(family, MATRIX, marks=pytest.mark.slow)  # four seconds each in torch's exporter
            for family in ("roberta", "distilbert", "deberta-v2", "modernbert")
        ),
    ],
)
def test_onnx(command, tmp_path, family, calibrator):
    run, folder = make_run(tmp_path / "run", family, calibrator), tmp_path / "plain"
    code, out, err = command("export", run, folder, "--onnx", "--json")
    assert code == 0, err
    assert "onnx" not in err.lower()  # torch's exporter has much to say
    result = json.loads(out)
    assert 0 <= result["onnx_difference"] < 1e-5
    assert {"model.onnx", "model.safetensors"} <= {file.name for file in folder.iterdir()}
    assert not (folder / "model.onnx.data").exists()
    assert "`model.onnx` takes `input_ids`" in (folder / "README.md").read_text()
    expected = calibrant.load(run).predict_proba(TEXTS)
    for part in (slice(0, 1), slice(2, 7), slice(None)):  # sizes and lengths that it was not traced with
        said = onnx_answers(folder, TEXTS[part])
        assert set(said) == {"logits", "probabilities", "abstain"}
        for p in (said["probabilities"], torch.tensor(said["logits"]).softmax(dim=-1).numpy()):
            np.testing.assert_allclose(p, expected[part], rtol=0, atol=1e-4)
        assert not said["abstain"].any()


def test_an_onnx_file_that_answers_otherwise_is_refused_and_nothing_is_left(command, tmp_path, monkeypatch):
    run = make_run(tmp_path / "run")
    whole = task.whole_graph
    monkeypatch.setattr(task, "whole_graph", lambda first, classifier, _: whole(first, classifier, None))
    code, out, err = command("export", run, tmp_path / "plain", "--onnx")
    assert (code, out) == (2, "")
    told = err.strip()
    assert told.startswith(
        "calibrant: The ONNX file of BertForSequenceClassification gives answers that are off by 0."
    )
    assert told.endswith("more than 0.0001; nothing was written. Instead, leave --onnx out.")
    assert {path.name for path in tmp_path.iterdir()} == {"run"}


def test_whatever_fails_in_the_exporter(command, tmp_path, monkeypatch):
    def fails(*_, **__):
        reason = NotImplementedError("aten::strange is not supported.\n\nHere are forty lines of advice.")
        raise torch.onnx.OnnxExporterError("Failed in step 1/3.") from reason

    monkeypatch.setattr(torch.onnx, "export", fails)
    run = make_run(tmp_path / "run")
    one_sentence(
        command("export", run, tmp_path / "plain", "--onnx"),
        "No ONNX file can be made of BertForSequenceClassification (NotImplementedError: aten::strange is "
        "not supported); leave --onnx out.",
    )
    assert {path.name for path in tmp_path.iterdir()} == {"run"}


def test_weights_that_fit_in_no_file(command, tmp_path, monkeypatch):
    monkeypatch.setattr(onnx, "LARGEST", 1000)
    run = make_run(tmp_path / "run")
    result = command("export", run, tmp_path / "plain", "--onnx")
    one_sentence(
        result, "No ONNX file can be made of BertForSequenceClassification: its weights have 0.0 GB, …"
    )


def test_a_missing_extra_is_told_before_the_work(command, tmp_path, monkeypatch):
    monkeypatch.setattr(onnx, "find_spec", lambda name: None if name == "onnxscript" else object())
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "calibrant.json").write_text("no record is read")
    code, _, err = command("export", tmp_path / "run", tmp_path / "plain", "--onnx")
    assert code == 2
    assert err == "calibrant: --onnx needs onnxscript, not installed: pip install 'calibrant[onnx]'.\n"
    code, _, err = command("export", tmp_path / "run", tmp_path / "plain", "--int8")
    assert err.startswith("calibrant: --int8 needs onnxscript, not installed")


ISOTONIC = {"name": "isotonic", "parameters": {"points": [[0, 1]] * 3, "values": [[0, 1]] * 3}}
BINS = {"name": "histogram-binning", "parameters": {"bins": 2, "values": [[0.2, 0.8]] * 3}}
REFUSED = {
    "isotonic": (
        {"calibrator": ISOTONIC},
        "The calibrator 'isotonic' cannot be exported: what can be is a linear one (temperature, "
        "vector-scaling, matrix-scaling), familiarity, or the two in this order; fit another with `calibrant "
        "calibrate RUN --calibrator temperature+familiarity`.",
    ),
    "histogram-binning": ({"calibrator": BINS}, "The calibrator 'histogram-binning' cannot be exported: …"),
    "mc-dropout": (
        {"inference": "mc-dropout"},
        "RUN answers with the mean of several passes (mc-dropout), which one plain model cannot give; export "
        "a run that was trained with --inference single.",
    ),
    "ensemble": (
        {"inference": "ensemble"},
        "RUN answers with the mean of several passes (ensemble), which …",
    ),
    "textcnn": (
        {"family": "textcnn"},
        "TextCNNForSequenceClassification is an architecture of calibrant's own, unknown to plain "
        "transformers, and cannot be exported; use its run with calibrant.load, or train another --model.",
    ),
    "t5": ({"family": "t5"}, "T5EncoderForSequenceClassification is an architecture of calibrant's own, …"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_exported(command, tmp_path, name):
    how, expected = REFUSED[name]
    run = make_run(tmp_path / "run", **how)
    one_sentence(
        command("export", run, tmp_path / "plain"), expected.replace("RUN answers", f"{run} answers")
    )
    assert {path.name for path in tmp_path.iterdir()} == {"run"}


def test_places_that_are_taken(command, tmp_path, trained):
    full, empty, file = tmp_path / "full", tmp_path / "empty", tmp_path / "file"
    shutil.copytree(trained, full)
    empty.mkdir()
    file.write_text("mine")
    for place in (full, file):
        one_sentence(
            command("export", trained, place),
            f"{place} exists and is not empty; name a new folder for the export.",
        )
    assert file.read_text() == "mine"
    assert command("export", trained, empty)[0] == 0
    assert (empty / "config.json").exists()
    one_sentence(
        command("export", "nowhere", tmp_path / "new"), "nowhere is not a run: it has no calibrant.json. …"
    )
