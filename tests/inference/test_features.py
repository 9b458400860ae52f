"""Logits, features and inner layers of one pass, by every way to predict and of every family."""

import numpy as np
import pytest
import torch

from calibrant.classifier import outputs_of
from calibrant.inference import inferences
from calibrant.inference.ensemble import DeepEnsemble
from calibrant.inference.mc_dropout import MCDropout
from calibrant.inference.single import SinglePass
from calibrant.models import fast
from support.encoders import FAMILIES, tiny
from support.tiny import tiny_bert

ROWS = [[2, 7, 8, 9, 3], [2, 9, 3], [2, 5, 6, 7, 8, 9, 10, 3]]
OF_ANY = [[token + 10 for token in row] for row in ROWS]  # without ids that some family pads with
WITH_LAYERS = [family for family in FAMILIES if family != "textcnn"]


def asked(inference, models, *needs, rows=ROWS):
    return outputs_of(inference, models, rows, models[0].config.pad_token_id or 0, frozenset(needs))


def own_features(model, row):
    """The mean over the tokens of a text by itself, where nothing is padded."""
    with torch.no_grad():
        return model.base_model(torch.tensor([row])).last_hidden_state[0].mean(dim=0).numpy()


def own_layers(model, row):
    """The same of the embeddings and of every layer, (L + 1, h)."""
    with torch.no_grad():
        states = model.base_model(torch.tensor([row]), output_hidden_states=True).hidden_states
    return np.stack([state[0].mean(dim=0).numpy() for state in states])


def passes(model):
    """One entry for each pass over its encoder from now on."""
    seen = []
    model.base_model.register_forward_pre_hook(lambda *_: seen.append(1))
    return seen


@pytest.mark.parametrize("quick", [False, True], ids=["as it came", "quick"])
@pytest.mark.parametrize("family", FAMILIES)
def test_both_of_one_pass(family, quick):
    model = tiny(family).eval()
    with torch.no_grad():
        expected = np.concatenate([model(torch.tensor([row])).logits.numpy() for row in OF_ANY])
    features = [own_features(model, row) for row in OF_ANY]
    if quick:
        fast.apply(model)
    seen = passes(model)
    logits_alone = asked(SinglePass(), [model], rows=OF_ANY)
    assert len(seen) == 1
    assert logits_alone.features is logits_alone.layers is None
    both = asked(SinglePass(), [model], "features", rows=OF_ANY)
    assert len(seen) == 2
    assert both.layers is None
    np.testing.assert_allclose(logits_alone.logits, expected, atol=1e-5)
    np.testing.assert_allclose(both.logits, expected, atol=1e-5)
    np.testing.assert_allclose(both.features, features, atol=1e-5)
    assert not any(module.training for module in model.modules())


@pytest.mark.parametrize("quick", [False, True], ids=["as it came", "quick"])
@pytest.mark.parametrize("family", WITH_LAYERS)
def test_layers_of_the_same_pass(family, quick):
    """Those of a padded batch are the means of what the model itself says of each text alone."""
    model = tiny(family).eval()
    expected = np.stack([own_layers(model, row) for row in OF_ANY])
    without = asked(SinglePass(), [model], "features", rows=OF_ANY)
    if quick:
        fast.apply(model)
    seen = passes(model)
    outputs = asked(SinglePass(), [model], "layers", rows=OF_ANY)
    assert len(seen) == 1
    assert outputs.layers.shape == (len(OF_ANY), model.config.num_hidden_layers + 1, 32)
    assert outputs.layers.dtype == np.float32
    np.testing.assert_allclose(outputs.layers, expected, atol=1e-5)
    np.testing.assert_allclose(outputs.features, without.features, atol=1e-5)
    np.testing.assert_allclose(outputs.logits, without.logits, atol=1e-5)
    between = np.diff(outputs.layers, axis=1)
    assert (np.abs(between).max(axis=(0, 2)) > 1e-3).all()  # no layer is there twice


@pytest.mark.parametrize("family", ["bert", "deberta-v2", "t5"])
def test_layers_are_the_masked_mean_of_what_a_padded_batch_gives(family):
    model = tiny(family).eval()
    ids = torch.tensor([[7, 8, 9, 10, 11], [12, 13, 14, 0, 0]])
    mask = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]])
    with torch.inference_mode():
        got = SinglePass().outputs([model], ids, mask, frozenset({"layers"}))
        states = model.base_model(ids, attention_mask=mask, output_hidden_states=True).hidden_states
    assert got["layers"].shape == (2, 3, 32)
    for i, length in enumerate((5, 3)):
        own = torch.stack([state[i, :length].mean(dim=0) for state in states])
        torch.testing.assert_close(got["layers"][i], own, rtol=1e-5, atol=1e-6)


def members():
    models = [tiny_bert() for _ in range(2)]
    torch.manual_seed(1)
    for weight in models[1].parameters():
        torch.nn.init.normal_(weight, std=0.1)
    return [model.eval() for model in models]


def test_members_stand_side_by_side():
    models = members()
    outputs = asked(DeepEnsemble(members=2), models, "features", "layers")
    logits = asked(DeepEnsemble(members=2), models).logits
    np.testing.assert_allclose(outputs.logits, logits, atol=1e-5)
    features = [np.concatenate([own_features(model, row) for model in models]) for row in ROWS]
    np.testing.assert_allclose(outputs.features, features, atol=1e-5)
    layers = [np.concatenate([own_layers(model, row) for model in models], axis=1) for row in ROWS]
    np.testing.assert_allclose(outputs.layers, layers, atol=1e-5)


def test_dropout_is_off_for_features_and_on_for_logits():
    model = tiny_bert(dropout=0.2).eval()
    outputs = asked(MCDropout(passes=3), [model], "features", "layers")
    np.testing.assert_array_equal(outputs.logits, asked(MCDropout(passes=3), [model]).logits)
    np.testing.assert_allclose(outputs.features, [own_features(model, row) for row in ROWS], atol=1e-5)
    np.testing.assert_allclose(outputs.layers, [own_layers(model, row) for row in ROWS], atol=1e-5)


def test_what_averages_says_so():
    """``averages`` is true just where the exponentials of the logits sum to 1."""
    for name, inference in inferences().items():
        models = members() if name == "ensemble" else [tiny_bert().eval()]
        total = np.exp(asked(inference(), models).logits).sum(axis=1)
        assert np.allclose(total, 1, atol=1e-5) == inference.averages


def test_no_text_gives_no_row():
    outputs = asked(SinglePass(), [tiny_bert()], "features", rows=[])
    assert (outputs.logits.shape, len(outputs), outputs.features) == ((0, 3), 0, None)
