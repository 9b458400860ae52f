"""What leaves calibrant as a plain model answers as calibrant does."""

import json
import subprocess
import sys

import numpy as np
import pytest
import torch
from torch import nn

import calibrant
from calibrant import Classifier
from calibrant.calibrators import calibrators
from calibrant.calibrators.foldable import Foldable
from calibrant.errors import UserError
from calibrant.exports.checked import checked
from calibrant.exports.plain import fold
from calibrant.models.last_linear import last_linear
from calibrant.runs import store
from calibrant.runs.record import ThresholdRecord
from calibrant.tasks.export import export
from calibrant.types import Outputs
from support.encoders import FAMILIES, tiny
from support.made_runs import LABELS, TEXTS, VECTOR, make_run
from support.tiny import tiny_tokenizer

HEADS = {  # the layer that makes the logits, by name: what the search must find without knowing it
    "bert": "classifier",
    "roberta": "classifier.out_proj",
    "albert": "classifier",
    "electra": "classifier.out_proj",
    "distilbert": "classifier",
    "deberta-v2": "classifier",
    "mpnet": "classifier.out_proj",
    "xlm-r": "classifier.out_proj",
    "modernbert": "classifier",
    "t5": "classifier",
    "textcnn": "classifier",
}


PLAIN = """
import json, sys
sys.modules["calibrant"] = None  # whoever imports it fails
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer, pipeline

torch.set_num_threads(1)
folders, texts, labels = json.load(sys.stdin)
answers = {}
for folder in folders:
    pipe = pipeline("text-classification", folder, truncation=True, top_k=None)
    scores = [{row["label"]: row["score"] for row in rows} for rows in pipe(texts, batch_size=5)]
    model = AutoModelForSequenceClassification.from_pretrained(folder)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    assert [model.config.id2label[i] for i in range(len(labels))] == labels
    with torch.no_grad():
        batch = tokenizer(texts, truncation=True, padding=True, return_tensors="pt")
        auto = model.eval()(**batch).logits.softmax(dim=-1).tolist()
    answers[folder] = [[[row[name] for name in labels] for row in scores], auto]
assert not [name for name in sys.modules if name.startswith("calibrant.")]
json.dump(answers, sys.stdout)
"""


def plain_answers(folders):
    """Of the pipeline and of the Auto classes, in a process that cannot import calibrant."""
    asked = json.dumps([list(map(str, folders)), TEXTS, LABELS])
    done = subprocess.run(
        [sys.executable, "-I", "-c", PLAIN], input=asked, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return {folder: np.array(both) for folder, both in json.loads(done.stdout).items()}


@pytest.mark.slow
def test_plain_transformers_gives_the_probabilities_of_the_run(tmp_path):
    expected, uncalibrated = {}, {}
    for family in ("bert", "roberta", "distilbert", "deberta-v2", "modernbert"):
        run, folder = make_run(tmp_path / family, family), tmp_path / "plain" / family
        assert export(run, folder=folder).difference < 1e-6
        classifier = calibrant.load(run)
        expected[str(folder)] = classifier.predict_proba(TEXTS)
        uncalibrated[str(folder)] = torch.tensor(classifier.outputs(TEXTS).logits).softmax(dim=-1).numpy()
    for folder, both in plain_answers(expected).items():
        for answers in both:
            np.testing.assert_allclose(answers, expected[folder], rtol=0, atol=1e-6, err_msg=folder)
        assert np.ptp(expected[folder], axis=0).max() > 0.05, "were all texts alike, anything would pass"
        assert np.abs(expected[folder] - uncalibrated[folder]).max() > 0.02


@pytest.mark.parametrize("family", FAMILIES)
def test_the_last_layer_is_found_whatever_its_name(family):
    model = tiny(family)
    ids = torch.arange(5, 15).view(1, -1)
    assert last_linear(model, input_ids=ids, attention_mask=torch.ones_like(ids)) is model.get_submodule(
        HEADS[family]
    )
    assert not any(module._forward_hooks for module in model.modules())


def test_what_an_export_holds(tmp_path):
    run = make_run(tmp_path / "run")
    before = (run / "model" / "model.safetensors").read_bytes()
    done = export(run, folder=tmp_path / "new" / "plain")
    assert (done.folder, done.calibrator) == (tmp_path / "new" / "plain", "temperature")
    names = {file.name for file in done.folder.iterdir()}
    assert names == {
        "README.md",
        "config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
    }
    assert [file.name for file in done.folder.parent.iterdir()] == ["plain"], "something was left beside it"
    config = json.loads((done.folder / "config.json").read_text())
    assert config["problem_type"] == "single_label_classification"
    assert config["id2label"] == {"0": "account", "1": "billing", "2": "shipping"}
    assert json.loads((done.folder / "tokenizer_config.json").read_text())["model_max_length"] == 32
    assert (run / "model" / "model.safetensors").read_bytes() == before


def test_the_card(tmp_path):
    run = make_run(tmp_path / "run")
    card = (export(run, folder=tmp_path / "unmeasured").folder / "README.md").read_text()
    assert (
        "Calibrator: `temperature`, fitted on 2 texts (`file train.csv`). It is folded into the last" in card
    )
    assert "cuts texts at 32 tokens" in card
    assert "Not measured yet" in card
    assert "model.onnx" not in card
    metrics = {"accuracy": 0.91, "ece": 0.034, "n_test": 80, "mean_confidence_test": 0.88, "ood": None}
    metrics["misclassification"] = {"nbaucc_0.5": 0.25}
    store.load(run).record_metrics(
        metrics, {"test": {"n": 80, "source": "file test.csv", "fingerprint": "x"}}
    )
    card = (export(run, folder=tmp_path / "measured").folder / "README.md").read_text()
    assert "Measured on 80 texts (`file test.csv`): accuracy 91.0%, mean confidence 88.0%" in card
    assert "Not measured" not in card


def a_rule(score=None):
    """As `calibrant threshold` stores it."""
    about = {"n": 400, "source": "file dev.csv", "fingerprint": "f"}
    return ThresholdRecord(
        rule={"threshold": 0.99994, "score": score, "cut": score and 0.5},
        promise={"risk": 0.02, "ood_rate": score and 0.05, "confidence": 0.95},
        learnt_on={"dev": about, "ood": score and about | {"source": "file other.csv"}},
        dev={"coverage": 0.5, "risk": 0.01, "turned_away": 0.0},
    )


PROMISE = (
    "of the texts it answers at most 2.00% are wrong, with confidence 0.95, on text like the 400 it was "
    "learnt on (`file dev.csv`)"
)


def test_the_card_does_not_claim_the_rule_of_the_run(tmp_path):
    run = make_run(tmp_path / "run")
    store.load(run).ruled(a_rule())
    assert "at least 0.99994, and abstains elsewhere." in (run / "README.md").read_text()
    card = (export(run, folder=tmp_path / "plain").folder / "README.md").read_text()
    assert (
        "This plain model answers every text. The run that it was made of abstains where its confidence is "
        f"below 0.99994; do so yourself, by `score`, to have its promise: {PROMISE}.\n"
    ) in card
    assert "It answers where" not in card
    store.load(run).ruled(a_rule("max-probability"))
    card = (export(run, folder=tmp_path / "scored").folder / "README.md").read_text()
    assert (
        "This plain model answers every text. The run that it was made of abstains by its score "
        "`max-probability` too: a rule that needs calibrant and is not part of this model, and neither is "
        f"its promise: {PROMISE}; of unfamiliar texts at most 5.00% are answered"
    ) in card
    assert "0.99994" not in card


@pytest.mark.parametrize(("max_length", "longest"), [(32, 32), (32768, 517)])
def test_the_check_is_with_a_long_text_but_not_with_an_endless_one(max_length, longest):
    model = tiny("modernbert")
    texts = checked(Classifier([model], tiny_tokenizer(), LABELS, max_length))
    assert list(map(len, texts.batches)) == [1, 1, len(texts.texts) - 2]
    assert [len(rows[0]) for rows in texts.batches[:2]] == [longest, min(map(len, texts.rows))]


def test_folding_is_the_algebra_of_the_calibrator():
    rng = np.random.default_rng(0)
    z, y = rng.normal(size=(60, 3)), rng.integers(0, 3, 60)
    foldable = {name: kind for name, kind in calibrators().items() if issubclass(kind, Foldable)}
    assert set(foldable) == {"temperature", "vector-scaling", "matrix-scaling"}
    weight, bias, h = rng.normal(size=(3, 7)), rng.normal(size=3), rng.normal(size=(9, 7))
    for kind in foldable.values():
        calibrator = kind().fit(Outputs(3 * z + 2 * np.eye(3)[y]), y)
        new_weight, new_bias = calibrator.fold(weight, bias)
        expected = calibrator.probabilities(Outputs(h @ weight.T + bias))
        got = torch.tensor(h @ new_weight.T + new_bias).softmax(dim=-1)
        np.testing.assert_allclose(got, expected, rtol=0, atol=1e-12)


def test_a_layer_without_bias():
    """It takes a temperature; offsets have nowhere to go."""
    layer = nn.Linear(4, 3, bias=False)
    doubled = 2 * layer.weight.detach().clone()
    fold(calibrators()["temperature"](temperature=0.5), layer)
    torch.testing.assert_close(layer.weight.detach(), doubled)
    with pytest.raises(UserError) as refused:
        fold(calibrators()["vector-scaling"](**VECTOR["parameters"]), layer)
    assert str(refused.value) == (
        "The last layer has no bias to take the offsets of the calibrator 'vector-scaling'; use temperature, "
        "which has none."
    )


def test_no_layer_of_that_size():
    model = tiny("bert")
    model.classifier = nn.Sequential(nn.Flatten(), nn.LazyLinear(4))
    ids = torch.arange(5, 9).view(1, -1)
    with pytest.raises(
        UserError, match=r"^BertForSequenceClassification has no linear layer with 3 outputs, a class"
    ):
        last_linear(model, input_ids=ids, attention_mask=torch.ones_like(ids))


def test_a_model_that_does_something_after_its_last_layer_is_refused(tmp_path, monkeypatch):
    """As a head with a layer norm behind it would: the folded temperature is lost on the way."""
    run = make_run(tmp_path / "run")
    norm = nn.functional.layer_norm
    forward = nn.Linear.forward

    def normed(self, x):
        z = forward(self, x)
        return norm(z, z.shape[-1:]) if self.out_features == 3 else z

    monkeypatch.setattr(nn.Linear, "forward", normed)
    with pytest.raises(
        UserError, match=r"^Plain transformers with this Bert\w+ gives answers that are off by 0\.\d+, more"
    ):
        export(run, folder=tmp_path / "plain")
    assert {path.name for path in tmp_path.iterdir()} == {"run"}
