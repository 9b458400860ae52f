"""Ways to solve the two inner problems of manifold smoothing for a batch of text.

A solver gives x′ and x″ and, because the clean pass can be part of the work, the cross-entropy term.
Passes over the encoder for one inner step, with F a forward, B an input gradient and W a weight
gradient; each perturbed pass that follows costs F + B + W:

    pgd      generate F + B (on) + B (off), clean F+B+W         12 in all; a random start costs an F more
    shared   clean F+B+W, and B for the other direction          10 in all

Samples are generated with dropout off: with dropout on, the direction is noise.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from calibrant.models.split import SplitModel
from calibrant.objectives.differentiated import differentiate
from calibrant.objectives.manifold import cosine_distance, off_manifold, off_step, on_manifold, on_step
from calibrant.types import Batch

if TYPE_CHECKING:
    from calibrant.objectives.manifold_smoothing import ManifoldSmoothing


@dataclass(frozen=True)
class Solution:
    """What the regularisers are computed from. A sample is None where its weight λ is 0."""

    ce: Tensor  # scalar, with gradients to the weights
    on: Tensor | None  # x′, (B, T, e), constant
    off: Tensor | None  # x″, (B, T, e), constant


Solver = Callable[["ManifoldSmoothing", SplitModel, Batch, Tensor], Solution]


def pgd(objective: "ManifoldSmoothing", model: SplitModel, batch: Batch, partners: Tensor) -> Solution:
    """Projected signed gradient steps, as the paper prints them, with nothing computed twice.

    Where both start at x, one forward pass serves both, and the partners' features too.
    """
    mask = batch.attention_mask
    on = off = None
    with model.dropout_off():
        x = model.embed(batch.input_ids).detach().requires_grad_()
        if objective.lambda_on:
            hidden, logits = model.encode_and_classify(x, mask)
            on = _on(objective, model, mask, x, hidden, partners)
        elif objective.lambda_off and not objective.random_start_off:
            logits = model(x, mask)
        if objective.lambda_off:
            gradient = None
            if not objective.random_start_off:
                (gradient,) = torch.autograd.grad(cross_entropy(logits, batch.labels, reduction="sum"), x)
            off = _off(objective, model, batch, x, gradient)
    ce = cross_entropy(model(model.embed(batch.input_ids), mask), batch.labels)
    return Solution(ce, on, off)


def shared(objective: "ManifoldSmoothing", model: SplitModel, batch: Batch, partners: Tensor) -> Solution:
    """One clean pass, dropout off, for the cross-entropy term and for both directions.

    ∇ℓ at x is what the backward pass of the cross-entropy computes on its way to the embeddings;
    ∇D_x takes one more backward pass through the same graph.
    """
    mask = batch.attention_mask
    on = off = None
    with model.dropout_off():
        x = model.embed(batch.input_ids)
        if not x.requires_grad:  # frozen embeddings
            x.requires_grad_()
        if objective.lambda_on:
            hidden, logits = model.encode_and_classify(x, mask)
            on = _on(objective, model, mask, x, hidden, partners)
        else:
            logits = model(x, mask)
        ce, gradient = differentiate(cross_entropy(logits, batch.labels), x, model.model.parameters())
        if objective.lambda_off:
            off = _off(objective, model, batch, x, gradient)
    return Solution(ce, on, off)


def _on(
    objective: "ManifoldSmoothing",
    model: SplitModel,
    mask: Tensor,
    x: Tensor,
    hidden: Tensor,
    partners: Tensor,
) -> Tensor:
    """x′, from the graph of a pass over x; that graph is kept."""
    delta, steps, constant = objective.delta_on, objective.steps, x.detach()
    features = model.features(hidden, mask)
    target = features.detach()[partners]
    if objective.random_start_on:
        start = _noise(constant, mask, delta)
    else:
        (gradient,) = torch.autograd.grad(cosine_distance(features, target).sum(), x, retain_graph=True)
        start, steps = on_step(constant, constant, gradient, delta) - constant, steps - 1
    return on_manifold(
        lambda z: model.features(model.encode(z, mask), mask), constant, target, delta, start, steps
    )


def _off(
    objective: "ManifoldSmoothing", model: SplitModel, batch: Batch, x: Tensor, gradient: Tensor | None
) -> Tensor:
    """x″, from the gradient ∇ℓ at x, or from a random start where there is none."""
    mask, delta, steps, constant = batch.attention_mask, objective.delta_off, objective.steps, x.detach()
    if gradient is None:
        start = _noise(constant, mask, delta)
    else:
        start, steps = off_step(constant, constant, gradient, delta) - constant, steps - 1
    return off_manifold(
        lambda z: cross_entropy(model(z, mask), batch.labels, reduction="none"), constant, delta, start, steps
    )


def _noise(x: Tensor, mask: Tensor, delta: float) -> Tensor:
    """v ~ U[−δ, δ] on each text's own tokens; padding stays as it is."""
    return torch.empty_like(x).uniform_(-delta, delta) * mask.unsqueeze(-1)
