"""TextCNN by hand, its vocabulary, and a run of it from training to a fresh process."""

import json
import random
import subprocess
import sys

import pytest
import torch

from calibrant import RunConfig, UserError, load
from calibrant.data.encode import encode, pad
from calibrant.models.pretrained import load_classifier
from calibrant.models.split import SplitModel
from calibrant.models.textcnn import word_tokenizer
from calibrant.tasks.train import train
from support.encoders import tiny
from support.tiny import corpus

LABELS = ("account", "billing", "shipping")
TEXTS = [text for text, _ in corpus(200)]


@pytest.fixture(scope="module")
def textcnn():
    torch.manual_seed(0)
    model, tokenizer = load_classifier("textcnn", LABELS, texts=TEXTS)
    return model.eval(), tokenizer


def by_hand(model, ids):
    """One text's logits, one window after the other."""
    x = model.textcnn.word_embeddings.weight[ids]
    maxima = []
    for convolution in model.textcnn.convolutions:
        width = convolution.kernel_size[0]
        windows = [
            torch.cat([x[t : t + width], x.new_zeros(width, x.shape[1])])[:width] for t in range(len(ids))
        ]
        maps = torch.stack(
            [(convolution.weight * window.T).sum((1, 2)) + convolution.bias for window in windows]
        )
        maxima.append(maps.relu().max(dim=0).values)
    return model.classifier(torch.cat(maxima))


def test_logits_by_hand_however_short_the_text_and_however_padded():
    model = tiny("textcnn").eval()
    torch.nn.init.normal_(model.textcnn.convolutions[0].bias)  # zero at the start, and zero hides mistakes
    rows = [[9], [7, 8], [5, 6, 7, 8], torch.randint(2, 64, (12,)).tolist()]  # the widest window is 5
    ids, mask = pad(rows, 0)
    expected = torch.stack([by_hand(model, row) for row in rows])
    torch.testing.assert_close(model(ids, mask).logits, expected, rtol=1e-5, atol=1e-5)
    for row, logits in zip(rows, expected, strict=True):  # a batch of one, without padding and without a mask
        torch.testing.assert_close(model(torch.tensor([row])).logits[0], logits, rtol=1e-5, atol=1e-5)
    assert torch.equal(model(ids.masked_fill(mask == 0, 33), mask).logits, model(ids, mask).logits)


def test_padding_never_wins_the_maximum():
    split = SplitModel(tiny("textcnn").eval())
    mask = torch.tensor([[1, 1, 0], [1, 0, 0]])
    hidden = torch.randn(2, 3, 30)
    expected = split.model.classifier(torch.stack([hidden[0, :2].amax(0), hidden[1, 0]]))
    hidden[mask == 0] = 1e6
    torch.testing.assert_close(split.head(hidden, mask), expected)


def test_the_sizes_are_kims(textcnn):
    model, tokenizer = textcnn
    assert [c.kernel_size[0] for c in model.textcnn.convolutions] == [3, 4, 5]
    assert {c.out_channels for c in model.textcnn.convolutions} == {100}
    assert model.dropout.p == 0.5
    assert model.get_input_embeddings().weight.shape == (len(tokenizer), 300)
    assert model.config.id2label == dict(enumerate(LABELS))


# the vocabulary


def test_words_are_ordered_by_frequency_and_rare_ones_unknown():
    tokenizer = word_tokenizer(["A card, a Card!", "a box, b-b once", "card"])
    assert tokenizer.convert_ids_to_tokens(range(len(tokenizer))) == ["[PAD]", "[UNK]", "a", "card", ",", "b"]
    assert tokenizer("CARD once , box")["input_ids"] == [3, 1, 4, 1]
    assert set(tokenizer("a")) == {"input_ids", "attention_mask"}


def test_the_order_of_the_texts_makes_no_difference():
    shuffled = random.Random(1).sample(TEXTS, len(TEXTS))
    assert (
        word_tokenizer(shuffled).backend_tokenizer.to_str()
        == word_tokenizer(TEXTS).backend_tokenizer.to_str()
    )


def test_the_vocabulary_is_bounded(monkeypatch):
    monkeypatch.setattr("calibrant.models.textcnn.MAX_WORDS", 5)
    tokenizer = word_tokenizer(["a a a b b b c c d d"])
    assert sorted(tokenizer.get_vocab()) == ["[PAD]", "[UNK]", "a", "b", "c"]


def test_texts_of_unknown_words_have_an_answer(textcnn):
    model, tokenizer = textcnn
    ids, mask = pad(encode(tokenizer, ["galaxy", "violin", "enzyme sonnet \x00 ½", "日本語"], 32), 0)
    assert set(ids[mask == 1].tolist()) == {tokenizer.unk_token_id}
    logits = model(ids, mask).logits
    assert torch.isfinite(logits).all()
    torch.testing.assert_close(logits[0], logits[1])


# mistakes


@pytest.mark.parametrize(
    ("texts", "layers", "sentence"),
    [
        (
            ["each word", "only once"],
            None,
            r"No word occurs 2 times in the 2 training texts, .*; give more texts or",
        ),
        ((), None, "No word occurs 2 times in the 0 training texts"),
        (["fine", "bro\udce9ken"], None, "Text 2 of 2 holds half a character"),
        (TEXTS, 1, "textcnn has no layers to choose from; leave --layers out."),
    ],
)
def test_refusals(texts, layers, sentence):
    with pytest.raises(UserError, match=sentence):
        load_classifier("textcnn", LABELS, layers, texts)


def test_layers_of_a_saved_one_are_refused_too(textcnn, tmp_path):
    for part in textcnn:
        part.save_pretrained(tmp_path)
    with pytest.raises(UserError, match="has no layers to choose from"):
        load_classifier(str(tmp_path), LABELS, layers=1)


# a run


def settings(csv_file, **more):
    config = {
        "model": "textcnn",
        "method": "manifold-smoothing",
        "max_length": 32,
        "epochs": 3,
        "batch_size": 16,
        "learning_rate": 1e-3,
    }
    return RunConfig(train=str(csv_file("train.csv", corpus(200))), **{**config, **more})


def test_gradient_checkpointing_is_refused(csv_file, tmp_path):
    with pytest.raises(UserError, match="--gradient-checkpointing: the model 'textcnn' cannot do it"):
        train(settings(csv_file, gradient_checkpointing=True), out=tmp_path / "run")


def test_train_evaluate_predict_and_train_again(command, csv_file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    csv_file("train.csv", corpus(200))
    csv_file("test.csv", corpus(60, seed=1))
    fast = (
        "--method",
        "manifold-smoothing",
        "--max-length",
        32,
        "--epochs",
        3,
        "--batch-size",
        16,
        "--learning-rate",
        1e-3,
    )
    code, _, _ = command("train", "--train", "train.csv", "--model", "textcnn", *fast, "--out", "run")
    assert code == 0
    code, out, _ = command("evaluate", "run", "--test", "test.csv", "--json")
    assert code == 0
    assert json.loads(out)["accuracy"] > 0.6  # a guess: 0.33
    code, out, _ = command(
        "predict", "run", "--text", "REFUND my card", "--text", "parcel", "--text", "violin"
    )
    answers = [json.loads(line) for line in out.splitlines()]
    assert [answer["label"] for answer in answers[:2]] == ["billing", "shipping"]
    assert answers[2]["confidence"] < answers[0]["confidence"]
    assert not {file.suffix for file in (tmp_path / "run").rglob("*")} - {"", ".json", ".md", ".safetensors"}
    # the directory of a trained one is a model like any other, and keeps its words
    words = (tmp_path / "run/model/tokenizer.json").read_text()
    code, _, _ = command("train", "--train", "test.csv", "--model", "run/model", *fast, "--out", "again")
    assert code == 0
    assert (tmp_path / "again/model/tokenizer.json").read_text() == words


FRESH = """
import json, sys
import calibrant
from transformers import pipeline
classifier = calibrant.load(sys.argv[1])
(stock,) = pipeline("text-classification", f"{sys.argv[1]}/model", device="cpu")(["refund my card"])
print(json.dumps([classifier.predict_proba(["refund my card", "violin"]).tolist(), stock]))
"""


@pytest.mark.slow
def test_an_interrupted_run_resumes_and_loads_in_a_fresh_process(csv_file, tmp_path):
    config = settings(csv_file)

    def interrupt(what, done, total):
        if done == 15:  # an epoch is 10 steps
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(config, out=tmp_path / "run", progress=interrupt)
    resumed, whole = train(config, out=tmp_path / "run"), train(config, out=tmp_path / "whole")
    texts = ["refund my card", "violin"]
    expected = load(whole.path).predict_proba(texts)
    assert load(resumed.path).predict_proba(texts).tolist() == expected.tolist()
    done = subprocess.run(
        [sys.executable, "-c", FRESH, str(whole.path)], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    probabilities, stock = json.loads(done.stdout.splitlines()[-1])
    torch.testing.assert_close(torch.tensor(probabilities), torch.tensor(expected.tolist()))
    assert stock["label"] == LABELS[expected[0].argmax()]
    assert stock["score"] == pytest.approx(expected[0].max(), abs=1e-5)
