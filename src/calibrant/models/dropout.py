"""Cheaper dropout on a CPU.

torch draws one random number for each element, and its attention leaves the fast path when dropout
is on. Here four elements share the 64
bits of one draw. The result is dropout all the same: with q = round(p·2¹⁶)/2¹⁶, which is within 10⁻⁵ of
p, an element is 0 with probability q and divided by 1 − q otherwise, so that its expectation is exact.
"""

from typing import Any

import torch
from torch import Tensor, nn
from transformers import AttentionInterface, PreTrainedModel
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import AttentionMaskInterface, sdpa_mask

LEVELS = 1 << 16
ATTENTION = "calibrant_cheap_dropout"


def cheap_dropout(x: Tensor, p: float) -> Tensor:
    """x with each element dropped with probability p, drawn from torch's own generator."""
    dropped = round(p * LEVELS)
    bits = torch.empty(-(-x.numel() // 4), dtype=torch.int64).random_(torch.iinfo(torch.int64).min, None)
    kept = bits.view(torch.int16)[: x.numel()].view(x.shape) >= dropped - LEVELS // 2
    return x * kept.to(x.dtype).mul_(LEVELS / (LEVELS - dropped))


class CheapDropout(nn.Dropout):
    """``nn.Dropout`` with cheap random numbers on the CPU, and as ever on other devices."""

    def forward(self, input: Tensor) -> Tensor:
        """Any shape to the same shape."""
        if self.training and 0 < self.p < 1 and input.device.type == "cpu":
            return cheap_dropout(input, self.p)
        return super().forward(input)


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
    """softmax(q·kᵀ/√d)·v with cheap dropout of the weights; torch's own kernel where there is no dropout."""
    if dropout == 0 or query.device.type != "cpu" or kwargs.get("position_bias") is not None:
        output: tuple[Tensor, None] = sdpa_attention_forward(
            module, query, key, value, attention_mask, dropout=dropout, scaling=scaling, **kwargs
        )
        return output
    scores = query @ key.transpose(2, 3) * (query.shape[-1] ** -0.5 if scaling is None else scaling)
    if attention_mask is not None:
        scores = scores.masked_fill(~attention_mask, torch.finfo(scores.dtype).min)
    weights = cheap_dropout(scores.softmax(dim=-1), dropout)
    return (weights @ value).transpose(1, 2).contiguous(), None


AttentionInterface.register(ATTENTION, cheap_attention)
AttentionMaskInterface.register(ATTENTION, sdpa_mask)


def use_cheap_dropout(model: PreTrainedModel) -> None:
    """Switch a model over, in place; weights, names and saved files stay what they are."""
    for module in model.modules():
        if type(module) is nn.Dropout:
            module.__class__ = CheapDropout
    if model.config._attn_implementation == "sdpa":
        model.set_attn_implementation(ATTENTION)
