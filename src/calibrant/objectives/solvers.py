"""Ways to solve the two inner problems of manifold smoothing for a batch of text.

A solver gives x′ and x″ and, because the clean pass can be part of the work, the cross-entropy term.
Passes over the encoder for one inner step, with F a forward, B an input gradient and W a weight
gradient; each perturbed pass that follows costs F + B + W:

    pgd      generate F+B (off) + F+B (on), clean F+B+W       13 in all, 14 when x″ starts at random
    shared   clean F+B+W, and B for the second direction       10 in all

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
    """Projected signed gradient steps, as the paper prints them, with nothing computed twice."""
    mask, steps = batch.attention_mask, objective.steps
    on = off = None
    hidden_at_x: Tensor | None = None

    def loss(z: Tensor) -> Tensor:
        nonlocal hidden_at_x
        hidden = model.encode(z, mask)
        if hidden_at_x is None and not objective.random_start_off:
            hidden_at_x = hidden.detach()  # the first step starts at x: its forward pass serves f(x̃) too
        return cross_entropy(model.head(hidden, mask), batch.labels, reduction="none")

    def features(z: Tensor) -> Tensor:
        return model.features(model.encode(z, mask), mask)

    with model.dropout_off():
        x = model.embed(batch.input_ids).detach()
        if objective.lambda_off:
            noise = _noise(x, mask, objective.delta_off) if objective.random_start_off else None
            off = off_manifold(loss, x, objective.delta_off, noise, steps)
        if objective.lambda_on:
            if hidden_at_x is None:
                with torch.no_grad():
                    hidden_at_x = model.encode(x, mask)
            target = model.features(hidden_at_x, mask)[partners]
            noise = _noise(x, mask, objective.delta_on) if objective.random_start_on else None
            on = on_manifold(features, x, target, objective.delta_on, noise, steps)

    ce = cross_entropy(model(model.embed(batch.input_ids), mask), batch.labels)
    return Solution(ce, on, off)


def shared(objective: "ManifoldSmoothing", model: SplitModel, batch: Batch, partners: Tensor) -> Solution:
    """One clean pass, dropout off, for the cross-entropy term and for both directions.

    ∇ℓ at x is what the backward pass of the cross-entropy computes on its way to the embeddings;
    ∇D_x takes one more backward pass through the same graph.
    """
    mask, more = batch.attention_mask, objective.steps - 1
    on = off = None
    weights = [weight for weight in model.model.parameters() if weight.requires_grad]
    with model.dropout_off():
        x = model.embed(batch.input_ids)
        if not x.requires_grad:  # frozen embeddings
            x.requires_grad_()
        constant = x.detach()
        hidden = model.encode(x, mask)
        ce = cross_entropy(model.head(hidden, mask), batch.labels)
        if objective.lambda_on:
            features = model.features(hidden, mask)
            target = features.detach()[partners]
            (d_on,) = torch.autograd.grad(cosine_distance(features, target).sum(), x, retain_graph=True)
            on = on_step(constant, constant, d_on, objective.delta_on)
            if more:
                on = on_manifold(
                    lambda z: model.features(model.encode(z, mask), mask),
                    constant,
                    target,
                    objective.delta_on,
                    on - constant,
                    more,
                )
        ce, d_off = differentiate(ce, x, weights)
        if objective.lambda_off:
            off = off_step(constant, constant, d_off, objective.delta_off)
            if more:
                off = off_manifold(
                    lambda z: cross_entropy(model(z, mask), batch.labels, reduction="none"),
                    constant,
                    objective.delta_off,
                    off - constant,
                    more,
                )
    return Solution(ce, on, off)


def _noise(x: Tensor, mask: Tensor, delta: float) -> Tensor:
    """v ~ U[−δ, δ] on each text's own tokens; padding stays as it is."""
    return torch.empty_like(x).uniform_(-delta, delta) * mask.unsqueeze(-1)
