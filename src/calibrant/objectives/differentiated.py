"""A loss term whose gradients are already known."""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor


class _Differentiated(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, value: Tensor, gradients: list[Tensor | None], *inputs: Tensor) -> Tensor:
        ctx.gradients = gradients
        return value.detach().clone()

    @staticmethod
    def backward(ctx: Any, *outer: Tensor) -> tuple[Tensor | None, ...]:
        # In place: these tensors are ours alone, and with an encoder's weights copies would be felt.
        scaled = [None if gradient is None else gradient.mul_(outer[0]) for gradient in ctx.gradients]
        return None, None, *scaled


def differentiate(value: Tensor, x: Tensor, weights: Iterable[Tensor]) -> tuple[Tensor, Tensor]:
    """Run the backward pass of ``value`` now, and learn ∂value/∂x on its way.

    Args:
        value: a scalar.
        x: what it depends on in between.
        weights: what it depends on in the end; the frozen ones are left out.

    Returns:
        ``value`` as a term whose own ``backward`` hands out the gradients found, scaled as the chain
        rule asks (so that sums and gradient accumulation work as ever), and ∂value/∂x.
    """
    inputs = [weight for weight in weights if weight.requires_grad]
    dx, *gradients = torch.autograd.grad(value, [x, *inputs], allow_unused=True)
    term: Tensor = _Differentiated.apply(value.detach(), gradients, *inputs)  # type: ignore[no-untyped-call]
    return term, dx
