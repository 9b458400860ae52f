"""Any encoder with a linear head on its pooled hidden states."""

import json

import pytest
import torch
from torch.nn.functional import cross_entropy
from transformers import AutoModel, AutoModelForSequenceClassification, BertConfig, DistilBertConfig

from calibrant.models.modeling_calibrant import POOLINGS, PooledForSequenceClassification
from calibrant.models.pooling import declared_pooling
from calibrant.models.pretrained import load_classifier
from calibrant.models.split import SplitModel
from support.encoders import FAMILIES, tiny
from support.tiny import tiny_tokenizer

ENCODERS = sorted(set(FAMILIES) - {"t5", "textcnn"})  # these keep the head that they have
LABELS = ("a", "b", "c")
LENGTHS = (8, 5, 2)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A directory with a tiny encoder of each family, and a tokenizer."""
    root = tmp_path_factory.mktemp("encoders")
    for family in FAMILIES:
        tiny(family).save_pretrained(root / family)
        tiny_tokenizer().save_pretrained(root / family)
    return root


@pytest.fixture(params=ENCODERS)
def family(request):
    return request.param


def pooled(folder, pooling, labels=LABELS, layers=None):
    torch.manual_seed(0)
    return load_classifier(str(folder), labels, layers, pooling=pooling)[0].eval()


def padded_batch(model):
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(5, 64, (3, 8), generator=generator)
    mask = (torch.arange(8) < torch.tensor(LENGTHS).unsqueeze(1)).long()
    padding = model.config.pad_token_id
    return ids.masked_fill(mask == 0, 0 if padding is None else padding), mask


def by_hand(hidden, pooling):
    """Of last hidden states (B, T, h), text by text."""
    rows = []
    for states, length in zip(hidden, LENGTHS, strict=True):
        first, mean = states[0], sum(states[i] for i in range(length)) / length
        rows.append({"first": first, "mean": mean, "first+mean": torch.cat([first, mean])}[pooling])
    return torch.stack(rows)


@pytest.mark.parametrize("pooling", POOLINGS)
@torch.no_grad()
def test_logits_are_a_linear_map_of_the_pooled_hidden_states(folders, family, pooling):
    model = pooled(folders / family, pooling)
    encoder = AutoModel.from_pretrained(folders / family).eval()  # as it was before it got the head
    ids, mask = padded_batch(model)
    features = by_hand(encoder(input_ids=ids, attention_mask=mask).last_hidden_state, pooling)
    assert features.shape == (3, model.classifier.in_features)
    expected = features @ model.classifier.weight.T + model.classifier.bias
    torch.testing.assert_close(model(input_ids=ids, attention_mask=mask).logits, expected)
    assert expected.std(dim=0).min() > 0  # the texts differ


@pytest.mark.parametrize("pooling", POOLINGS)
@torch.no_grad()
def test_without_a_mask_every_token_counts(folders, pooling):
    model = pooled(folders / "bert", pooling)
    ids, _ = padded_batch(model)
    torch.testing.assert_close(model(input_ids=ids).logits, model(ids, torch.ones_like(ids)).logits)


@torch.no_grad()
def test_saved_and_loaded_it_is_the_same_to_the_last_bit(folders, family, tmp_path):
    model = pooled(folders / family, "first+mean")
    model.save_pretrained(tmp_path)
    again = AutoModelForSequenceClassification.from_pretrained(tmp_path).eval()
    assert type(again) is PooledForSequenceClassification
    assert again.config.pooling == "first+mean"
    assert again.config.id2label == dict(enumerate(LABELS))
    weights = again.state_dict()
    assert weights.keys() == model.state_dict().keys()
    assert all(torch.equal(weights[name], weight) for name, weight in model.state_dict().items())
    ids, mask = padded_batch(model)
    assert torch.equal(again(ids, mask).logits, model(ids, mask).logits)


def test_it_can_be_split(folders, family):
    SplitModel(pooled(folders / family, "first+mean")).verify()


def test_every_weight_gets_a_gradient(folders, family):
    model = pooled(folders / family, "first+mean").train()
    labels = torch.tensor([0, 1, 2])
    ids, mask = padded_batch(model)
    found = model(input_ids=ids, attention_mask=mask, labels=labels)
    torch.testing.assert_close(found.loss, cross_entropy(found.logits, labels))
    found.loss.backward()
    for name, weight in model.named_parameters():
        assert weight.grad is not None, name
        assert torch.isfinite(weight.grad).all(), name
    assert model.classifier.weight.grad.any()
    assert model.get_input_embeddings().weight.grad.any()


def test_the_head_is_new_and_the_encoder_is_not(folders, family):
    model, other = (load_classifier(str(folders / family), LABELS, pooling="mean")[0] for _ in range(2))
    assert not torch.equal(model.classifier.weight, other.classifier.weight)
    assert model.classifier.weight.std().item() == pytest.approx(0.02, rel=0.5)
    assert not model.classifier.bias.any()
    before = AutoModel.from_pretrained(folders / family).state_dict()
    for name, weight in model.encoder.state_dict().items():
        assert torch.equal(weight, before[name]), name


def test_layers_are_cut_from_the_top(folders, family):
    model, whole = (pooled(folders / family, "mean", layers=layers) for layers in (1, None))
    assert model.config.num_hidden_layers == 1
    assert whole.config.num_hidden_layers == 2
    if family != "albert":  # whose layers share their weights
        assert sum(w.numel() for w in model.parameters()) < sum(w.numel() for w in whole.parameters())
    SplitModel(model).verify()


@pytest.mark.parametrize("family", ["t5", "textcnn"])
def test_those_with_a_head_of_their_own_keep_it(folders, family):
    assert type(pooled(folders / family, "mean")) is type(tiny(family))


# what an earlier run has left


@pytest.fixture
def earlier(folders, tmp_path):
    """The directory of a model as a run keeps it."""
    model = pooled(folders / "bert", "first+mean")
    torch.nn.init.ones_(model.classifier.weight)  # as no new head begins
    model.save_pretrained(tmp_path / "run")
    tiny_tokenizer().save_pretrained(tmp_path / "run")
    return model, tmp_path / "run"


@pytest.mark.parametrize(
    ("asked", "expected"),
    [("mean", "mean"), ("first+mean", "first+mean"), ("declared", "first+mean"), ("native", "first+mean")],
)
@pytest.mark.parametrize("labels", [LABELS, ("x", "y")], ids=["as many classes", "fewer"])
def test_the_encoder_of_an_earlier_run_gets_a_new_head(earlier, asked, expected, labels):
    before, folder = earlier
    model = pooled(folder, asked, labels)
    assert model.config.pooling == expected
    assert model.config.id2label == dict(enumerate(labels))
    assert model.classifier.out_features == len(labels)
    for name, weight in model.encoder.state_dict().items():
        assert torch.equal(weight, before.encoder.state_dict()[name]), name
    same = model.classifier.weight.shape == before.classifier.weight.shape
    assert not (same and torch.equal(model.classifier.weight, before.classifier.weight))
    SplitModel(model).verify()


@pytest.mark.parametrize("asked", ["mean", "native"])
def test_an_earlier_run_can_be_cut_too(earlier, asked):
    model = pooled(earlier[1], asked, layers=1)
    assert len(model.encoder.encoder.layer) == model.config.num_hidden_layers == 1


# what an encoder was made for


def declaring(folder, **says):
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(says))


@pytest.mark.parametrize(
    ("says", "expected"),
    [
        ({"pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True}, "mean"),
        ({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}, "first"),
        ({"pooling_mode": "mean"}, "mean"),
        ({"pooling_mode": "cls"}, "first"),
    ],
)
def test_its_pooling_file_is_read(tmp_path, says, expected):
    declaring(tmp_path, **says)
    # The file counts for more than the config.
    for config in (BertConfig(), BertConfig(classifier_pooling="mean"), BertConfig(classifier_pooling="cls")):
        assert declared_pooling(str(tmp_path), config) == expected


def test_else_its_config_and_else_it_is_the_first_token(tmp_path):
    assert declared_pooling(str(tmp_path), BertConfig(classifier_pooling="mean")) == "mean"
    assert declared_pooling(str(tmp_path), BertConfig(classifier_pooling="cls")) == "first"
    assert declared_pooling(str(tmp_path), DistilBertConfig()) == "first"
    assert declared_pooling("org/a-model-of-the-hub", BertConfig()) == "first"


def test_declared_is_what_the_files_say(model_dir, tmp_path):
    tiny("bert").save_pretrained(tmp_path)
    tiny_tokenizer().save_pretrained(tmp_path)
    assert pooled(tmp_path, "declared").config.pooling == "first"
    declaring(tmp_path, pooling_mode_mean_tokens=True)
    assert pooled(tmp_path, "declared").config.pooling == "mean"
