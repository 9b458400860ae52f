"""The last layer, for the one token that the head reads.

BERT's classifiers look at the first token of the last layer and at nothing else. There the query, the
attention's output and the feed-forward block of every other token are computed for nobody. With a
single query q the keys and values need not be computed either: for hidden states H, per head,

    q·(W_k·Hᵀ + b_k) = (qᵀ·W_k)·Hᵀ + q·b_k        a·(H·W_vᵀ + b_v) = (a·H)·W_vᵀ + (Σ a)·b_v

so that next to nothing is left of the layer, a sixth of a six-layer encoder, and the result is the same.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from calibrant.models.fast.dropout import ATTENTION
from calibrant.models.fast.linear import ConvolvedLinear

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


_FOUND: ContextVar[list[Tensor]] = ContextVar("first tokens found by this pass")
_ONLY: ContextVar[bool] = ContextVar("whether this pass needs no other token", default=False)
"""Of the pass that is under way. They belong to its thread, so that a server's threads can share a model."""


class _LastLayer:
    """Mixed into the class of the last layer: it does what the pass that is under way asks for."""

    def forward(self, hidden: Tensor, mask: Tensor | None = None, *rest: Any, **named: Any) -> Tensor:
        """(B, T, h) → (B, T, h), or (B, 1, h) for a pass that needs no more."""
        layer: Any = self
        found = _FOUND.get(None)
        # Checkpointing runs layers again, after the pass.
        asked = _ONLY.get() or found is not None
        known = mask is None or mask.dtype == torch.bool  # not where somebody changed the attention since
        if not asked or not known or (layer.training and layer.gradient_checkpointing):
            everything: Tensor = super().forward(hidden, mask, *rest, **named)  # type: ignore[misc]
            return everything
        first = first_token(layer, hidden, mask)
        if found is None:
            return first
        found.append(first)
        everything = super().forward(hidden, mask, *rest, **named)  # type: ignore[misc]
        return everything


@cache
def _quick(layer: Any) -> Any:
    return type(layer.__name__, (_LastLayer, layer), {"__module__": __name__})


@contextmanager
def first_token_only() -> Iterator[None]:
    """Within, the last hidden states of a switched model are (B, 1, h) where its head reads no more."""
    token = _ONLY.set(True)
    try:
        yield
    finally:
        _ONLY.reset(token)


@contextmanager
def first_token_too() -> Iterator[list[Tensor]]:
    """Within, a pass gives all hidden states, and puts those that the head reads into the list.

    The two have graphs of their own, so that a gradient of the logits does not go by way of the
    other tokens. The list stays empty where the head may read all.
    """
    found: list[Tensor] = []
    token = _FOUND.set(found)
    try:
        yield found
    finally:
        _FOUND.reset(token)


def apply(model: PreTrainedModel) -> None:
    """Switch the last layer over, in place, where the head reads the first token only."""
    if type(model).__name__ not in HEADS or model.config._attn_implementation not in ("sdpa", ATTENTION):
        return
    layer: Any = model.base_model.encoder.layer[-1]
    attention = layer.attention.self
    if isinstance(layer, _LastLayer) or attention.is_causal:
        return  # the first token of a decoder sees itself only
    if not {type(attention.key), type(attention.value)} <= {nn.Linear, ConvolvedLinear}:
        return  # an adapter (LoRA) is more than a weight
    layer.__class__ = _quick(type(layer))  # type: ignore[arg-type]


def remove(model: PreTrainedModel) -> None:
    """Switch it back."""
    for module in model.modules():
        if isinstance(module, _LastLayer):
            module.__class__ = type(module).__bases__[1]
