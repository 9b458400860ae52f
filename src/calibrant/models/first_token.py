"""The last layer, for the one token that the head reads.

BERT's classifiers look at the first token of the last layer and at nothing else. There the query, the
attention's output and the feed-forward block of every other token are computed for nobody. With a
single query q the keys and values need not be computed either: for hidden states H, per head,

    q·(W_k·Hᵀ + b_k) = (qᵀ·W_k)·Hᵀ + q·b_k        a·(H·W_vᵀ + b_v) = (a·H)·W_vᵀ + (Σ a)·b_v

so that next to nothing is left of the layer, a sixth of a six-layer encoder, and the result is the same.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, cast

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from calibrant.models.dropout import ATTENTION
from calibrant.models.linear import ConvolvedLinear

# By name, so that a subclass, whose head may read more, is left alone.
HEADS = (
    "BertForSequenceClassification",
    "RobertaForSequenceClassification",
    "XLMRobertaForSequenceClassification",
    "ElectraForSequenceClassification",
)


def first_token(layer: Any, hidden: Tensor, mask: Tensor | None) -> Tensor:
    """What a BERT layer makes of the first token, (B, T, h) → (B, 1, h).

    ``mask`` is (B, 1, T or 1, T), True where a token is seen.
    """
    attention, first = layer.attention.self, hidden[:, 0]

    def by_head(weight: Tensor) -> Tensor:
        return weight.view(-1, attention.attention_head_size, *weight.shape[1:])

    w_k, b_k, w_v, b_v = (
        by_head(weight)  # (H, d, h) and (H, d)
        for part in (attention.key, attention.value)
        for weight in (part.weight, part.bias)
    )
    q = by_head(attention.query(first).T).permute(0, 2, 1)  # (H, B, d)
    scores = (q @ w_k).transpose(0, 1) @ hidden.transpose(1, 2)  # (B, H, T)
    scores = (scores + (q * b_k.unsqueeze(1)).sum(dim=-1).T.unsqueeze(-1)) * attention.scaling
    if mask is not None:
        scores = scores.masked_fill(~mask[:, :, 0], torch.finfo(scores.dtype).min)
    a = attention.dropout(scores.softmax(dim=-1))
    mixed = (a @ hidden).transpose(0, 1) @ w_v.transpose(1, 2)  # (H, B, d)
    context = mixed.transpose(0, 1) + a.sum(dim=-1, keepdim=True) * b_v  # (B, H, d)
    output: Tensor = layer.feed_forward_chunk(layer.attention.output(context.flatten(1), first))
    return output.unsqueeze(1)


@contextmanager
def first_token_only(model: PreTrainedModel) -> Iterator[None]:
    """Within, the encoder's last hidden states are (B, 1, h) where the head reads no more."""

    def forward(layer: Any, hidden: Tensor, mask: Tensor | None = None, *_: Any, **__: Any) -> Tensor:
        return first_token(layer, hidden, mask)

    with _last_layer_runs(model, forward):
        yield


@contextmanager
def first_token_too(model: PreTrainedModel) -> Iterator[list[Tensor]]:
    """Within, a pass gives all hidden states, and puts those that the head reads into the list.

    The two have graphs of their own, so that a gradient of the logits does not go by way of the
    other tokens. The list stays empty where the head may read all.
    """
    found: list[Tensor] = []

    def forward(layer: Any, hidden: Tensor, mask: Tensor | None = None, *rest: Any, **named: Any) -> Tensor:
        found.append(first_token(layer, hidden, mask))
        everything: Tensor = type(layer).forward(layer, hidden, mask, *rest, **named)
        return everything

    with _last_layer_runs(model, forward):
        yield found


@contextmanager
def _last_layer_runs(model: PreTrainedModel, forward: Callable[..., Tensor]) -> Iterator[None]:
    layer = _last_layer(model)
    if layer is None:
        yield
        return
    layer.forward = forward.__get__(layer)
    try:
        yield
    finally:
        layer.__dict__.pop("forward", None)


def _last_layer(model: PreTrainedModel) -> nn.Module | None:
    if type(model).__name__ not in HEADS or model.config._attn_implementation not in ("sdpa", ATTENTION):
        return None
    if model.training and model.is_gradient_checkpointing:  # it runs layers again, after the context
        return None
    layer: Any = model.base_model.encoder.layer[-1]
    attention = layer.attention.self
    if attention.is_causal:
        return None  # the first token of a decoder sees itself only
    if not {type(attention.key), type(attention.value)} <= {nn.Linear, ConvolvedLinear}:
        return None  # an adapter (LoRA) is more than a weight
    return cast(nn.Module, layer)
