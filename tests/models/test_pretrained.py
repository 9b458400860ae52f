"""The default encoder with its real weights, on real words."""

import itertools

import pytest
import torch
from torch.nn.functional import cross_entropy
from transformers import AutoModelForSequenceClassification

from calibrant.data.encode import encode, pad
from calibrant.errors import UserError
from calibrant.models.pretrained import load_classifier
from calibrant.models.split import SplitModel
from calibrant.objectives.functional import cosine_distance
from calibrant.objectives.manifold import off_manifold, on_manifold
from support.encoders import FAMILIES, tiny
from support.tiny import tiny_bert, tiny_tokenizer

TEXTS = [
    "The graphics card needs a new driver before the window system starts.",
    "He scored twice in the third period and the goalie never saw the puck.",
    "For sale: one motorcycle, low mileage, helmet included, call in the evening.",
    "The orbiter will be launched next spring if the budget is passed.",
    "Which cipher did they use, and who holds the keys?",
    "My doctor says the allergy is harmless.",
]


@pytest.fixture(scope="module")
def minilm():
    model, tokenizer = load_classifier("minilm", ("a", "b", "c"))
    ids, mask = pad(encode(tokenizer, TEXTS, 32), tokenizer.pad_token_id)
    return SplitModel(model.eval()), ids, mask


@pytest.mark.slow
def test_minilm_is_the_sentence_encoder_that_it_says(minilm):
    split, _, _ = minilm
    model, tokenizer = load_classifier("minilm", ("a", "b"))
    sentences = ["A man is eating food.", "A man eats something.", "The stock market fell sharply."]
    ids, mask = pad(encode(tokenizer, sentences, 32), tokenizer.pad_token_id)
    model.eval()
    features = split.features(SplitModel(model).encode(SplitModel(model).embed(ids), mask), mask)
    near, far = cosine_distance(features[0], features[1]), cosine_distance(features[0], features[2])
    assert near < 0.5 < far
    assert model.dtype == torch.float32
    assert model.config.id2label == {0: "a", 1: "b"}


@pytest.mark.slow
def test_on_real_text_the_distance_falls_and_the_loss_rises(minilm):
    split, ids, mask = minilm
    split.verify()
    labels = torch.tensor([0, 1, 2, 0, 1, 2])
    with torch.no_grad():
        x = split.embed(ids)

    def features(z):
        return split.features(split.encode(z, mask), mask)

    def loss(z):
        return cross_entropy(split(z, mask), labels, reduction="none")

    target = features(x).detach().roll(1, dims=0)
    on, off = on_manifold(features, x, target, 1e-4), off_manifold(loss, x, 1e-3)
    with torch.no_grad():
        assert (cosine_distance(features(on), target) < cosine_distance(features(x), target)).all()
        assert (loss(off) > loss(x)).all()
    assert (on - x).abs().max() <= 1e-4 * (1 + 1e-3)
    torch.testing.assert_close((off - x).abs().flatten(1).amax(1), torch.full((6,), 1e-3), rtol=1e-3, atol=0)
    assert torch.equal(on[mask == 0], x[mask == 0])
    assert torch.equal(off[mask == 0], x[mask == 0])


@pytest.mark.slow
def test_layers_are_cut_from_the_top():
    whole, _ = load_classifier("minilm", ("a", "b"))
    cut, _ = load_classifier("minilm", ("a", "b"), layers=2)
    assert len(cut.bert.encoder.layer) == 2
    weight = "attention.self.query.weight"
    kept = cut.bert.encoder.layer[1].get_parameter(weight)
    assert torch.equal(kept, whole.bert.encoder.layer[1].get_parameter(weight))


@pytest.mark.parametrize("layers", [0, 3])
def test_layers_out_of_range_are_refused(model_dir, layers):
    with pytest.raises(UserError, match=f"layers must lie between 1 and the 2 of .*, got {layers}"):
        load_classifier(str(model_dir), ("a", "b"), layers=layers)


def test_a_model_that_is_nowhere_is_refused(tmp_path):
    with pytest.raises(UserError, match=r"No model '.*nowhere': it is neither a directory"):
        load_classifier(str(tmp_path / "nowhere"), ("a", "b"))


def test_the_head_of_a_trained_classifier_is_not_taken_over(tmp_path):
    trained = tiny_bert(labels=2)
    trained.config.id2label, trained.config.problem_type = {0: "b", 1: "a"}, "multi_label_classification"
    trained.save_pretrained(tmp_path)
    tiny_tokenizer().save_pretrained(tmp_path)
    torch.manual_seed(0)
    model, _ = load_classifier(str(tmp_path), ("a", "b"))
    torch.manual_seed(1)
    other, _ = load_classifier(str(tmp_path), ("a", "b"))
    heads = [each.classifier.weight for each in (trained, model, other)]
    assert not any(torch.equal(one, two) for one, two in itertools.combinations(heads, 2))
    assert model.classifier.weight.std().item() == pytest.approx(0.02, rel=0.5)
    assert not model.classifier.bias.any()
    assert torch.equal(model.bert.pooler.dense.weight, trained.bert.pooler.dense.weight)
    model(torch.tensor([[5, 6]]), labels=torch.tensor([1]))  # the loss of one class, not of several


@pytest.mark.parametrize("family", sorted(set(FAMILIES) - {"textcnn"}))
def test_a_cut_encoder_can_be_saved_and_loaded(tmp_path, family):
    tiny(family).save_pretrained(tmp_path / "whole")
    tiny_tokenizer().save_pretrained(tmp_path / "whole")
    cut, tokenizer = load_classifier(str(tmp_path / "whole"), ("a", "b"), layers=1)
    cut.save_pretrained(tmp_path / "cut")
    text = tokenizer("refund", return_tensors="pt", return_token_type_ids=False)
    again = AutoModelForSequenceClassification.from_pretrained(tmp_path / "cut").eval()
    torch.testing.assert_close(again(**text).logits, cut.eval()(**text).logits)
