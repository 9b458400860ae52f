"""Linear layers by way of oneDNN: the same products, and left alone where nothing would be gained."""

import copy
import os

import pytest
import torch
from torch import nn

from calibrant.models.fast import linear
from calibrant.models.fast.linear import ConvolvedLinear
from support.encoders import FAMILIES, assert_says_the_same


@pytest.fixture(autouse=True)
def available(monkeypatch):
    """As on the machines it is made for, whatever this one is."""
    for library in (torch.backends.mkl, torch.backends.mkldnn):
        monkeypatch.setattr(library, "is_available", lambda: True)


def convolved(layer: nn.Linear) -> nn.Linear:
    layer = copy.deepcopy(layer)
    linear.apply(layer)
    assert type(layer) is ConvolvedLinear
    return layer


@pytest.fixture
def calls(monkeypatch):
    """How often a convolution was run."""
    found = []

    def counted(*arguments):
        found.append(arguments[0].shape)
        return torch.nn.functional.conv2d(*arguments)

    monkeypatch.setattr(linear, "conv2d", counted)
    return found


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shape", [(32, 64), (1, 1024), (64, 16), (7, 150)])
def test_products_and_gradients_are_those_of_a_linear_layer(shape, bias, calls):
    torch.manual_seed(0)
    layer = nn.Linear(24, 40, bias=bias)
    x = torch.randn(*shape, 24, requires_grad=True)
    g = torch.randn(*shape, 40)
    results = []
    for each in (layer, convolved(layer)):
        y = each(x)
        results.append([y, *torch.autograd.grad(y, [x, *each.parameters()], g)])
    for expected, got in zip(*results, strict=True):
        assert got.shape == expected.shape
        torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-4)
    assert results[1][0].is_contiguous()
    assert len(calls) == 1


def test_an_input_that_does_not_lie_in_order(calls):
    layer = nn.Linear(24, 40)
    x = torch.randn(24, 64, 32).permute(2, 1, 0)
    torch.testing.assert_close(convolved(layer)(x), layer(x), rtol=1e-4, atol=1e-4)
    assert len(calls) == 1


@pytest.mark.parametrize("shape", [(1024,), (2, 511), (128, 8), (2, 4, 256), ()])
def test_few_tokens_and_other_shapes_are_left_to_torch(shape, calls):
    layer = nn.Linear(4, 3)
    x = torch.randn(*shape, 4)
    assert torch.equal(convolved(layer)(x), layer(x))
    assert not calls


def test_other_precisions_are_left_to_torch(calls):
    layer = nn.Linear(4, 3).double()
    x = torch.randn(32, 64, 4, dtype=torch.float64)
    assert torch.equal(convolved(layer)(x), layer(x))
    assert not calls


def test_where_torch_multiplies_by_another_library_nothing_changes(monkeypatch):
    monkeypatch.setattr(torch.backends.mkl, "is_available", lambda: False)
    layer = nn.Linear(4, 3)
    linear.apply(layer)
    assert type(layer) is nn.Linear


@pytest.mark.parametrize("family", FAMILIES)
def test_a_model_switched_over_says_the_same_and_saves_the_same(family, calls, monkeypatch):
    monkeypatch.setattr(linear, "TOKENS", 1)
    monkeypatch.setattr(linear, "TOKENS_OF_A_TEXT", 1)
    model, switched = assert_says_the_same(family, linear.apply)
    assert calls or family == "textcnn"  # its one linear layer reads a vector a text
    assert switched.state_dict().keys() == model.state_dict().keys()


def test_adapters_are_left_alone():
    layer = nn.Linear(4, 3)
    layer.__class__ = type("LoraLinear", (nn.Linear,), {})
    linear.apply(layer)
    assert type(layer).__name__ == "LoraLinear"


@pytest.mark.parametrize(("before", "after"), [(None, "32"), ("7", "7")])
def test_kernels_of_shapes_that_were_met_once_are_not_all_kept(monkeypatch, before, after):
    """oneDNN by itself keeps a thousand; results/service has what that makes of a service's memory."""
    name = "ONEDNN_PRIMITIVE_CACHE_CAPACITY"
    monkeypatch.delenv(name, raising=False)
    if before is not None:
        monkeypatch.setenv(name, before)
    linear.apply(nn.Linear(2, 2))
    assert os.environ[name] == after
