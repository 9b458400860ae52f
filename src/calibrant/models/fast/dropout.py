"""Cheaper dropout on a CPU.

torch draws one random number for each element, and its attention leaves the fast path when dropout
is on. Here four elements share the 64 bits of one draw, and attention with dropout works on a few
texts at a time, so that the T × T weights are used while they are in the cache. The result is dropout
all the same: with q = round(p·2¹⁶)/2¹⁶, which is within 10⁻⁵ of p, an element is 0 with probability q
and divided by 1 − q otherwise, so that its expectation is exact.
"""

from collections.abc import Iterator
from functools import cache
from inspect import signature
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

LEVELS = 1 << 16
IN_CACHE = 1 << 18  # attention weights held at a time: 1 MiB of them
ATTENTION = "calibrant_cheap_dropout"


def keep(shape: torch.Size, p: float) -> Tensor:
    """False with probability q, drawn from torch's own generator."""
    n = shape.numel()
    bits = torch.empty(-(-n // 4), dtype=torch.int64).random_(torch.iinfo(torch.int64).min, None)
    return bits.view(torch.int16)[:n].view(shape) >= round(p * LEVELS) - LEVELS // 2


def rescale(p: float) -> float:
    """1 / (1 − q)."""
    return LEVELS / (LEVELS - round(p * LEVELS))


def cheap_dropout(x: Tensor, p: float) -> Tensor:
    """x with each element dropped with probability q."""
    return x * keep(x.shape, p).to(x.dtype).mul_(rescale(p))


class CheapDropout(nn.Dropout):
    """``nn.Dropout`` with cheap random numbers on the CPU, and as ever on other devices."""

    def forward(self, input: Tensor) -> Tensor:
        """Any shape to the same shape."""
        if self.training and 0 < self.p < 1 and input.device.type == "cpu":
            return cheap_dropout(input, self.p)
        return super().forward(input)


class _Attention(torch.autograd.Function):
    """dropout(A)·v / (1 − q), A = softmax(q·kᵀ·scale + bias), a few texts at a time.

    With D the zeros and ones of the dropout and g the gradient of the output over 1 − q:

        dv = (A ⊙ D)ᵀ·g      dA = (g·vᵀ) ⊙ D      dS = A ⊙ (dA − Σ A ⊙ dA)
        dq = dS·k·scale      dk = dSᵀ·q·scale
    """

    @staticmethod
    def forward(
        ctx: Any, q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None, p: float, scale: float
    ) -> Tensor:
        batch, heads, length, width = q.shape
        weights = q.new_empty(batch, heads, length, k.shape[2])
        kept = torch.empty(weights.shape, dtype=torch.bool)
        output = q.new_empty(batch, length, heads, width)
        for part in _parts(weights):
            scores = (q[part] @ k[part].transpose(2, 3)).mul_(scale)
            if bias is not None:
                scores += bias[part]
            torch.softmax(scores, dim=-1, out=weights[part])
            kept[part] = keep(scores.shape, p)
            mixed = (weights[part] * kept[part]) @ v[part]
            torch.mul(mixed.transpose(1, 2), rescale(p), out=output[part])
        ctx.save_for_backward(q, k, v, weights, kept)
        ctx.p, ctx.scale = p, scale
        return output

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, weights, kept = ctx.saved_tensors
        dq, dk, dv = (torch.empty_like(x) for x in (q, k, v))
        for part in _parts(weights):
            g = gradients[0][part].transpose(1, 2) * rescale(ctx.p)
            a, keeps = weights[part], kept[part]
            dv[part] = (a * keeps).transpose(2, 3) @ g
            da = (g @ v[part].transpose(2, 3)).mul_(keeps)
            ds = torch.ops.aten._softmax_backward_data(da, a, -1, a.dtype).mul_(ctx.scale)
            dq[part] = ds @ k[part]
            dk[part] = ds.transpose(2, 3) @ q[part]
        return dq, dk, dv, None, None, None


def _parts(weights: Tensor) -> Iterator[slice]:
    """Slices of the batch whose attention weights fit into the cache."""
    texts = max(1, IN_CACHE // weights[0].numel())
    return (slice(start, start + texts) for start in range(0, len(weights), texts))


def cheap_attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    **kwargs: Any,
) -> tuple[Tensor, Tensor | None]:
    """Attention with cheap dropout of its weights; torch's own where there is none, or another kind of it."""
    from transformers.integrations.sdpa_attention import sdpa_attention_forward

    plain = (
        query.device.type == "cpu"
        and query.shape[1] == key.shape[1]
        and not getattr(module, "is_causal", False)
        and (attention_mask is None or attention_mask.dtype == torch.bool)
        and kwargs.get("position_bias") is None
    )
    if dropout == 0 or not plain:
        output: tuple[Tensor, None] = sdpa_attention_forward(
            module, query, key, value, attention_mask, dropout=dropout, scaling=scaling, **kwargs
        )
        return output
    bias = None
    if attention_mask is not None:
        bias = torch.zeros(attention_mask.shape, dtype=query.dtype)
        bias.masked_fill_(~attention_mask, torch.finfo(query.dtype).min)
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    attended: Tensor = _Attention.apply(query, key, value, bias, dropout, scale)  # type: ignore[no-untyped-call]
    return attended, None


@cache
def _register() -> None:
    """Make it known to transformers, if that calls attention as it did."""
    from transformers import AttentionInterface
    from transformers.integrations.sdpa_attention import sdpa_attention_forward
    from transformers.masking_utils import AttentionMaskInterface, sdpa_mask

    known = list(signature(cheap_attention).parameters)[:-1]
    if list(signature(sdpa_attention_forward).parameters)[: len(known)] != known:
        raise TypeError("its attention takes other arguments")
    AttentionInterface.register(ATTENTION, cheap_attention)
    AttentionMaskInterface.register(ATTENTION, sdpa_mask)


def apply(model: PreTrainedModel) -> None:
    """Switch a model over, in place."""
    _register()
    for module in model.modules():
        if type(module) is nn.Dropout:
            module.__class__ = CheapDropout
    if model.config._attn_implementation == "sdpa":
        model.set_attn_implementation(ATTENTION)


def remove(model: PreTrainedModel) -> None:
    """Switch it back."""
    for module in model.modules():
        if type(module) is CheapDropout:
            module.__class__ = nn.Dropout  # type: ignore[assignment]
    if model.config._attn_implementation == ATTENTION:
        model.set_attn_implementation("sdpa")
