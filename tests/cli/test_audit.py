"""``calibrant audit``: models saved by ``save_pretrained``, as somebody else would have left them."""

import csv
import json

import numpy as np
import pytest
import torch
import transformers as hf

from calibrant.audits.subject import load_subject
from calibrant.classifier import Classifier
from support.encoders import SMALL, tiny, tiny_gpt
from support.made_runs import LABELS, opinionated
from support.sentences import one_sentence
from support.tiny import UNFAMILIAR, corpus, tiny_bert, tiny_tokenizer

METRICS = {"accuracy", "ece", "nll", "brier", "misclassification", "ood", "n_test", "n_ood"}


def write(path, rows, header=("text", "label")):
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])


def draw_labels(folder, model, part, n, seed):
    """A file of texts whose labels are drawn from the model's own probabilities: it is calibrated there."""
    words = [text for text, _ in corpus(2 * n, seed=seed)]
    texts = [f"{first} {second}" for first, second in zip(words[:n], words[n:], strict=True)]
    subject = load_subject(str(model), max_length=32)
    p = subject.predict_proba(texts)
    draw = np.random.default_rng(seed).random((n, 1))
    ids = (p.cumsum(axis=1) < draw).sum(axis=1)
    write(
        folder / f"{part}.csv", [(text, subject.label_names[i]) for text, i in zip(texts, ids, strict=True)]
    )
    return p


def save(model, folder, loudness=1.0):
    """With its last layer multiplied."""
    layer = next(module for name, module in model.named_modules() if name in ("classifier", "score"))
    with torch.no_grad():
        for weight in layer.parameters():
            weight *= loudness
    model.save_pretrained(folder)
    tiny_tokenizer().save_pretrained(folder)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Test and dev texts on which a model is right as it is, a loud copy of it, and unfamiliar text."""
    here = tmp_path_factory.mktemp("audit")
    model = opinionated("distilbert")
    model.config.id2label = dict(enumerate(LABELS))
    save(model, here / "right", loudness=1.5)
    p = draw_labels(here, here / "right", "test", 300, seed=31)
    assert 0.7 < p.max(axis=1).mean() < 0.9  # neither a guess nor certain
    draw_labels(here, here / "right", "dev", 150, seed=32)
    save(model, here / "loud", loudness=4)
    write(
        here / "ood.csv", [(f"{a} {b} {c}", "") for a in UNFAMILIAR for b in UNFAMILIAR for c in ("a", "is")]
    )
    return here


@pytest.fixture
def here(folder, monkeypatch):
    monkeypatch.chdir(folder)
    return folder


def test_an_over_confident_model_without_dev(command, here):
    code, out, err = command("audit", "--model", "loud", "--test", "test.csv", "--ood", "ood.csv")
    assert code == 0, err
    familiar, unfamiliar, more, following = out.splitlines()
    assert familiar.startswith("On 300 familiar texts ")
    assert familiar.endswith(": it is over-confident.")
    assert unfamiliar.startswith("On 128 unfamiliar texts its mean confidence is ")
    assert more == "With --dev, another labelled file, it would fit calibrators and say what to do."
    assert following == "Next: calibrant audit --model loud --test test.csv --ood ood.csv --dev dev.csv"


def test_the_advice_and_the_command_that_it_ends_with(command, here, tmp_path):
    """The next command is typed as printed; the model that it writes needs no calibrator any more."""
    given = ("audit", "--model", "loud", "--test", "test.csv", "--dev", "dev.csv")
    code, out, err = command(*given, "--max-length", 32)
    assert code == 0, err
    assert "Advice: calibrate it." in out
    last = out.splitlines()[-1]
    assert last == (
        "Next: calibrant audit --model loud --test test.csv --dev dev.csv --max-length 32 --export "
        "loud-calibrated"
    )
    code, out, err = command(*last.removeprefix("Next: calibrant ").split(), "--json")
    assert code == 0, err
    first = json.loads(out)
    assert first["exported"] == "loud-calibrated"
    assert first["metrics"]["ece"] > 0.05 > first["metrics_calibrated"]["ece"]
    assert first["metrics_calibrated"]["accuracy"] == pytest.approx(first["metrics"]["accuracy"], abs=0.02)
    card = (here / "loud-calibrated" / "README.md").read_text()
    assert f"Calibrator: `{first['calibrator']}`, fitted on 150 texts (`file dev.csv`). It is folded" in card
    assert "Measured on 300 texts (`file test.csv`): accuracy " in card

    page = tmp_path / "page.html"
    given = ("audit", "--model", "loud-calibrated", "--test", "test.csv", "--dev", "dev.csv")
    code, out, err = command(*given, "--report", page, "--json")
    assert code == 0, err
    again = json.loads(out)
    assert again["max_length"] == 32
    assert again["metrics"]["nll"] == pytest.approx(first["metrics_calibrated"]["nll"], abs=1e-5)
    assert again["calibrator"] == "none"
    assert again["advice"]["action"] == "nothing"
    assert again["next"].startswith("calibrant audit --model loud-calibrated ")
    assert again["next"].endswith(" --report audit.html")
    html = page.read_text(encoding="utf-8")
    assert "calibrant audit: loud-calibrated" in html
    verdict = html[html.index('<h2 id="verdict">') :]
    assert again["advice"]["reasons"][0] in verdict
    assert again["next"] in verdict


def test_familiarity_is_fitted_to_a_model_that_somebody_else_trained(command, here):
    """By half of dev, or by the texts that it was trained on."""
    given = ("audit", "--model", "right", "--test", "test.csv", "--ood", "ood.csv", "--dev", "dev.csv")
    code, out, err = command(*given)
    assert code == 0, err
    assert "temperature and familiarity" in out
    half, train = (json.loads(command(*given, *more, "--json")[1]) for more in ((), ("--train", "test.csv")))
    for result in (half, train):
        known = result["metrics_familiarity"]
        assert known["accuracy"] == result["metrics"]["accuracy"]  # no label changes
        assert known["mean_confidence_ood"] < 0.7 * result["metrics"]["mean_confidence_ood"]
        assert known["mean_confidence_test"] > 0.9 * result["metrics_calibrated"]["mean_confidence_test"]
    assert half["metrics_familiarity"] != train["metrics_familiarity"]
    one_sentence(
        command("audit", "--model", "right", "--test", "test.csv", "--train", "dev.csv"),
        "--train is where familiarity begins, which is fitted on --dev; name one.",
    )


def test_json(command, here):
    given = ("audit", "--model", "right", "--test", "test.csv", "--ood", "ood.csv", "--dev", "dev.csv")
    code, out, err = command(*given, "--json")
    assert code == 0, err
    result = json.loads(out)
    assert set(result) == {
        *("model", "max_length", "texts", "metrics", "miscalibration", "calibrators", "calibrator"),
        "calibrator_state",
        *("metrics_calibrated", "metrics_familiarity", "advice", "exported", "next"),
    }
    assert set(result["metrics"]) >= METRICS
    assert set(result["metrics_calibrated"]) >= METRICS
    assert {part: about["n"] for part, about in result["texts"].items()} == {
        "test": 300,
        "ood": 128,
        "dev": 150,
    }
    assert set(result["miscalibration"]) == {"gap", "interval", "ece", "chance", "direction"}
    table = {row["name"]: row for row in result["calibrators"]}
    assert set(table["temperature"]) == {"name", "foldable", "dev_nll", "nll", "ece", "accuracy"}
    assert table["none"]["nll"] == result["metrics"]["nll"]
    assert table[result["calibrator"]]["nll"] == result["metrics_calibrated"]["nll"]
    assert set(result["advice"]) == {"action", "reasons"}
    assert result["exported"] is None

    # The tiny model, which was never trained, is as sure of unfamiliar text.
    after = result["metrics_calibrated"]
    assert after["mean_confidence_ood"] == pytest.approx(after["mean_confidence_test"], abs=0.05)
    assert result["advice"]["action"] == "retrain"

    code, out, _ = command("audit", "--model", "right", "--test", "test.csv", "--json")
    result = json.loads(out)
    assert (result["advice"], result["calibrators"], result["calibrator"]) == (None, [], None)


def test_the_figures_are_those_of_evaluate(command, here, run_copy):
    """A run without a calibrator and its plain model are the same classifier."""
    _, out, _ = command(
        "audit", "--model", run_copy / "model", "--test", "test.csv", "--max-length", 32, "--json"
    )
    _, same, _ = command("evaluate", run_copy, "--test", "test.csv", "--json")
    plain, run = json.loads(out)["metrics"], json.loads(same)
    for name in ("accuracy", "ece", "nll", "brier"):
        assert plain[name] == pytest.approx(run[name], abs=1e-6)


def test_labels_by_id(command, here, tmp_path):
    """A model whose classes nobody named, and a file that has their numbers."""
    names = ("account", "billing", "shipping")
    model, tokenizer = tiny_bert(), tiny_tokenizer()
    model.save_pretrained(tmp_path / "unnamed")
    tokenizer.save_pretrained(tmp_path / "unnamed")
    model.config.id2label = dict(enumerate(names))
    model.save_pretrained(tmp_path / "named")
    tokenizer.save_pretrained(tmp_path / "named")
    write(tmp_path / "ids.csv", [(text, names.index(label)) for text, label in corpus(40)], ("body", "class"))
    columns = ("--text-column", "body", "--label-column", "class")
    _, out, err = command(
        "audit", "--model", tmp_path / "unnamed", "--test", tmp_path / "ids.csv", *columns, "--json"
    )
    by_id = json.loads(out)
    assert err.strip() == ""
    assert by_id["next"].endswith("--text-column body --label-column class --dev dev.csv")
    write(tmp_path / "names.csv", corpus(40))
    _, out, _ = command("audit", "--model", tmp_path / "named", "--test", tmp_path / "names.csv", "--json")
    assert json.loads(out)["metrics"] == by_id["metrics"]


def test_a_decoder_is_measured_and_takes_a_temperature(command, here, tmp_path):
    """Its last layer has no bias, and training cannot take it apart: only its forward pass is asked for."""
    model = tiny_gpt(padding=0)
    save(model, tmp_path / "gpt", loudness=15)
    draw_labels(tmp_path, tmp_path / "gpt", "test", 200, seed=1)
    draw_labels(tmp_path, tmp_path / "gpt", "dev", 100, seed=2)
    save(model, tmp_path / "gpt", loudness=4)
    tokenizer = tiny_tokenizer()
    tokenizer.pad_token = None  # as decoders come
    tokenizer.save_pretrained(tmp_path / "gpt")
    files = ("--test", tmp_path / "test.csv", "--dev", tmp_path / "dev.csv", "--ood", tmp_path / "dev.csv")
    given = ("audit", "--model", tmp_path / "gpt", *files, "--export", tmp_path / "plain", "--json")
    code, out, err = command(*given)
    assert code == 0, err
    result = json.loads(out)
    assert result["miscalibration"]["direction"] == "over-confident"
    assert result["calibrator"] == "temperature"
    assert result["metrics_calibrated"]["ece"] < 0.5 * result["metrics"]["ece"]
    assert (tmp_path / "plain" / "model.safetensors").exists()
    assert result["advice"]["action"] == "retrain"  # of "unfamiliar" text it is as sure
    assert result["next"] == (f"calibrant train --dev {tmp_path}/dev.csv --train train.csv --out runs/gpt")


def test_retraining_starts_from_the_model_where_it_can(command, here, csv_file):
    rng = np.random.default_rng(0)
    noise = [(text, ("account", "billing", "shipping")[rng.integers(3)]) for text, _ in corpus(100, seed=4)]
    path = csv_file("noise.csv", noise)
    _, out, _ = command("audit", "--model", "right", "--test", path, "--dev", "dev.csv", "--json")
    result = json.loads(out)
    assert result["advice"]["action"] == "retrain"
    assert result["next"] == (
        "calibrant train --model right --dev dev.csv --train train.csv --out runs/right"
    )


def test_nothing_to_do_and_to_export(command, here, tmp_path):
    given = ("audit", "--model", "right", "--test", "test.csv", "--dev", "dev.csv", "--max-length", 32)
    code, out, err = command(*given, "--export", tmp_path / "new")
    assert code == 0, err
    assert ": these texts show no miscalibration.\n" in out
    assert "chosen there, as the simplest that is as good as the best: none.\n" in out
    assert "On familiar text its confidence can be used as it is.\nAdvice: leave it as it is.\n" in out
    assert "Nothing was exported: dev says that no calibrator helps." in out
    assert not (tmp_path / "new").exists()


def test_what_is_exported_against_the_advice(command, here, csv_file):
    """Dev chose a calibrator, but so few test texts show no miscalibration."""
    with open("test.csv", encoding="utf-8") as file:
        few = csv_file("few.csv", list(csv.reader(file))[1:13])
    given = ("audit", "--model", "loud", "--test", few, "--dev", "dev.csv", "--max-length", 32)
    code, out, err = command(*given, "--export", few.parent / "new")
    assert code == 0, err
    assert "Advice: leave it as it is.\nWritten as you asked, though the advice is another: " in out
    assert out.splitlines()[-2].endswith("/new, a plain transformers model with temperature folded in.")


@pytest.mark.parametrize("family", ["textcnn", "t5"])
def test_what_cannot_be_exported_is_told_before_the_work(
    family, command, here, tmp_path, monkeypatch, capsys
):
    model = tiny(family)
    model.config.id2label = dict(enumerate(LABELS))
    model.save_pretrained(tmp_path / "own")
    tiny_tokenizer().save_pretrained(tmp_path / "own")
    outputs = Classifier.outputs

    def of_a_few(self, texts, **progress):
        assert len(texts) < 3, "the work has begun"
        return outputs(self, texts, **progress)

    monkeypatch.setattr(Classifier, "outputs", of_a_few)
    capsys.readouterr()  # what saving the model drew
    given = ("audit", "--model", tmp_path / "own", "--test", "test.csv", "--dev", "dev.csv")
    code, out, err = command(*given, "--export", tmp_path / "new")
    assert (code, out) == (2, "")
    assert err == (
        f"calibrant: {type(model).__name__} is an architecture of calibrant's own, unknown to plain "
        "transformers, and cannot be exported; use its run with calibrant.load, or train another --model.\n"
    )


MISTAKES = {
    "--model nowhere --test test.csv --report right": (  # before the model is even looked for
        "The report is one file, but right is a directory; give a name ending in .html."
    ),
    "--model nowhere --test test.csv": "No model 'nowhere': it is neither a directory with a Hugging Face …",
    "--model right --test no.csv": "No file 'no.csv'; check the path.",
    "--model right --test few.csv --text-column body": "few.csv: no column 'body'; its columns are text, …",
    "--model right --test odd.csv": (
        "file odd.csv: its labels are not the model's: 'returns' where the model has 'account', 'billing', "
        "'shipping'; rename them, write the ids 0 to 2 in all files instead, or correct id2label in the "
        "model's config.json."
    ),
    "--model right --test test.csv --dev odd.csv": "odd.csv: 1 dev texts are too few to choose a …",
    "--model right --test test.csv --dev few.csv": (
        "few.csv: 19 dev texts are too few to choose a calibrator by; give 20 or more, better some hundreds."
    ),
    "--model right --test test.csv --export new": (
        "--export writes the model with a calibrator, which is fitted on --dev; name one."
    ),
    "--model right --test test.csv --dev dev.csv --export loud": (
        "loud exists and is not empty; name a new folder for the export."
    ),
    "--model run --test test.csv": (
        "run is a run of calibrant's; measure it with `calibrant evaluate`, or audit its plain model, "
        "run/model."
    ),
    "--model headless --test test.csv": (
        "The model 'headless' is not a trained classifier: it has no weights for classifier.bias; train one "
        "with `calibrant train --model headless …`."
    ),
    "--model regression --test test.csv": (
        "The model 'regression' does not choose one of several classes (regression)."
    ),
    "--model tags --test test.csv": (
        "The model 'tags' does not choose one of several classes (multi_label_classification)."
    ),
    "--model wordless --test test.csv": "The model 'wordless' has no tokenizer with words and a padding …",
}


@pytest.fixture(scope="module")
def strange_models(folder):
    write(folder / "few.csv", corpus(19))
    write(folder / "odd.csv", [("a book", "returns")])
    (folder / "run").mkdir()
    (folder / "run" / "calibrant.json").write_text("{}")
    config = hf.BertConfig(**SMALL)
    tags = hf.BertForSequenceClassification(config)
    tags.config.problem_type = "multi_label_classification"
    models = {
        "headless": hf.BertModel(config),
        "regression": tiny_bert(labels=1),
        "tags": tags,
        "wordless": tiny_bert(),
    }
    for name, model in models.items():
        model.save_pretrained(folder / name)
        if name != "wordless":
            tiny_tokenizer().save_pretrained(folder / name)


@pytest.mark.parametrize("line", MISTAKES)
def test_a_mistake_gets_one_sentence(line, strange_models, here, command, capsys):
    capsys.readouterr()
    one_sentence(command("audit", *line.split()), MISTAKES[line])
    assert not (here / "new").exists()
