import pytest
import torch

from calibrant.models import fast
from calibrant.models.fast import first_token
from calibrant.models.fast.first_token import HEADS, first_token_only, first_token_too
from calibrant.models.split import SplitModel
from support.encoders import FAMILIES, tiny

BATCH = {
    "input_ids": torch.tensor([[7, 8, 9, 10, 11], [12, 13, 14, 1, 1]]),
    "attention_mask": torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]]),
}
READS_ONE = [name for name, (cls, _) in FAMILIES.items() if cls.__name__ in HEADS]


def gradients(model, logits):
    return torch.autograd.grad(logits.square().sum(), list(model.parameters()), allow_unused=True)


@pytest.mark.parametrize("family", FAMILIES)
def test_logits_and_gradients_are_those_of_the_whole_layer(family):
    model = tiny(family).eval()
    whole = model(**BATCH).logits
    first_token.apply(model)
    assert torch.equal(model(**BATCH).logits, whole)  # outside of either
    with first_token_only():
        narrow = model(**BATCH).logits
    with first_token_too():
        beside = model(**BATCH).logits
    torch.testing.assert_close(narrow, whole, rtol=1e-5, atol=1e-6)
    assert torch.equal(beside, whole)
    for a, b in zip(gradients(model, narrow), gradients(model, whole), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("family", FAMILIES)
def test_hidden_states_and_logits_of_one_pass(family):
    model = tiny(family).eval()
    first_token.apply(model)
    split = SplitModel(model)
    x, mask = split.embed(BATCH["input_ids"]), BATCH["attention_mask"]
    hidden, logits = split.encode_and_classify(x, mask)
    torch.testing.assert_close(hidden, split.encode(x, mask), rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(logits, split.head(hidden, mask), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("family", READS_ONE)
@pytest.mark.parametrize("cheap", [False, True])
def test_only_the_first_token_is_computed_while_training_too(family, cheap):
    model = tiny(family).train()
    (fast if cheap else first_token).apply(model)
    seen = []
    layer = model.base_model.encoder.layer[-1]
    layer.intermediate.register_forward_hook(
        lambda module, args, output: seen.append(output.shape[:-1].numel())
    )
    with first_token_only():
        model(**BATCH)
    model(**BATCH)
    assert seen == [2, 10]  # of two texts of five


def test_every_family_that_is_named_is_tested():
    assert {FAMILIES[name][0].__name__ for name in READS_ONE} == set(HEADS)


@pytest.mark.parametrize("why", ["subclass", "eager", "checkpointing", "adapter", "decoder"])
def test_models_that_may_read_more_or_run_layers_again_are_left_alone(why):
    model = tiny("bert").train()
    if why == "subclass":
        model.__class__ = type("Mine", (type(model),), {})
    elif why == "eager":
        model.set_attn_implementation("eager")
    elif why == "checkpointing":
        model.gradient_checkpointing_enable()
    else:
        attention = model.base_model.encoder.layer[-1].attention.self
        if why == "decoder":
            attention.is_causal = True
        else:
            attention.value.__class__ = type("LoraLinear", (torch.nn.Linear,), {})
    first_token.apply(model)
    with first_token_only():
        assert model.base_model(**BATCH).last_hidden_state.shape[1] == 5
    with first_token_too() as found:
        model(**BATCH)
    assert not found


def test_the_layer_is_whole_again_after_an_error():
    model = tiny("bert").eval()
    first_token.apply(model)
    with first_token_only():
        assert model.base_model(**BATCH).last_hidden_state.shape[1] == 1
    with pytest.raises(ZeroDivisionError), first_token_only():
        raise ZeroDivisionError
    assert model.base_model(**BATCH).last_hidden_state.shape[1] == 5
