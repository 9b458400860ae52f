"""T5's encoder: from whatever T5 was saved as, to a run that loads again."""

import json
import subprocess
import sys

import pytest
import torch
import transformers as hf

from calibrant import CalibratedTrainer, RunConfig, UserError, load
from calibrant.models.pretrained import load_classifier
from calibrant.models.t5 import T5EncoderForSequenceClassification
from calibrant.tasks.train import train
from support.encoders import tiny
from support.tiny import corpus, tiny_tokenizer

SMALL = {
    "vocab_size": 64,
    "d_model": 32,
    "d_kv": 8,
    "d_ff": 64,
    "num_layers": 2,
    "num_heads": 4,
    "dropout_rate": 0.25,
    "decoder_start_token_id": 0,
}


def save(model, path):
    model.save_pretrained(path)
    tiny_tokenizer().save_pretrained(path)
    return path


@pytest.mark.parametrize(
    "stock",
    [
        hf.T5ForConditionalGeneration(hf.T5Config(**SMALL)),
        hf.T5ForConditionalGeneration(hf.T5Config(**SMALL, feed_forward_proj="gated-gelu")),
        hf.T5EncoderModel(hf.T5Config(**SMALL)),
        hf.T5ForSequenceClassification(hf.T5Config(**SMALL, num_labels=5)),
        hf.MT5ForConditionalGeneration(hf.MT5Config(**SMALL)),
    ],
    ids=["t5", "t5 v1.1", "encoder alone", "classifier", "mt5"],
)
def test_the_encoder_of_any_t5_is_taken(stock, tmp_path):
    model, _ = load_classifier(str(save(stock, tmp_path)), ("a", "b", "c"))
    assert type(model) is T5EncoderForSequenceClassification
    assert model.classifier.out_features == 3
    assert model.config.id2label == {0: "a", 1: "b", 2: "c"}
    assert model.config.dropout_rate == 0.25
    assert not any("decoder" in name for name, _ in model.named_parameters())
    ids = torch.tensor([[5, 6, 7, 8], [9, 10, 0, 0]])
    mask = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]])
    encoder = getattr(stock, "transformer", stock).encoder.eval()
    expected = encoder(input_ids=ids, attention_mask=mask).last_hidden_state
    got = model.eval().transformer(input_ids=ids, attention_mask=mask).last_hidden_state
    torch.testing.assert_close(got, expected)


def test_logits_are_linear_in_the_mean_over_own_tokens():
    model = tiny("t5").eval()
    ids, mask = torch.tensor([[5, 6, 7, 8], [9, 10, 0, 0]]), torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]])
    hidden = model.transformer(input_ids=ids, attention_mask=mask).last_hidden_state
    expected = model.classifier(torch.stack([hidden[0].mean(0), hidden[1, :2].mean(0)]))
    torch.testing.assert_close(model(ids, mask).logits, expected)
    torch.testing.assert_close(model(ids[1:, :2]).logits, expected[1:])  # alone, and without a mask


def test_layers_can_be_cut(tmp_path):
    path = save(hf.T5ForConditionalGeneration(hf.T5Config(**SMALL)), tmp_path)
    model, _ = load_classifier(str(path), ("a", "b"), layers=1)
    assert len(model.transformer.encoder.block) == 1


def test_the_stock_classifier_is_refused_by_the_trainer(tmp_path):
    stock = hf.T5ForSequenceClassification(hf.T5Config(**SMALL, num_labels=3))
    with pytest.raises(
        UserError, match=r"T5ForSequenceClassification cannot be calibrated: it does not run from"
    ):
        CalibratedTrainer(stock, hf.TrainingArguments(output_dir=str(tmp_path), report_to="none"))


FRESH = """
import json, sys
import calibrant
print(json.dumps(calibrant.load(sys.argv[1]).predict_proba(["refund my card"]).tolist()))
"""


@pytest.mark.slow
def test_a_run_loads_in_a_fresh_process_and_trains_again(csv_file, tmp_path):
    path = save(hf.T5ForConditionalGeneration(hf.T5Config(**SMALL)), tmp_path / "t5")
    config = RunConfig(
        train=str(csv_file("train.csv", corpus(120))),
        model=str(path),
        max_length=32,
        epochs=2,
        batch_size=16,
        learning_rate=1e-2,
        gradient_checkpointing=True,
    )
    run = train(config, out=tmp_path / "run")
    first, last = (entry["loss"] for entry in run.training.history if "loss" in entry)
    assert last < first
    expected = load(run.path).predict_proba(["refund my card"])
    done = subprocess.run(
        [sys.executable, "-c", FRESH, str(run.path)], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    torch.testing.assert_close(
        torch.tensor(json.loads(done.stdout.splitlines()[-1])), torch.tensor(expected.tolist())
    )
    saved = json.loads((run.model_dir / "config.json").read_text())
    assert saved["model_type"] == "calibrant-t5"  # as "t5", transformers would add a random decoder
    model, _ = load_classifier(str(run.model_dir), ("x", "y"))
    trained = load(run.path).models[0]
    weight = "transformer.encoder.block.1.layer.0.SelfAttention.q.weight"
    assert torch.equal(model.get_parameter(weight), trained.get_parameter(weight))
