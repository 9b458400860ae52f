"""What a solver is. It gives x′ and x″ and, since the clean pass can be part of the work, the cross-entropy.

Passes over the encoder for one inner step, with F a forward, B an input gradient and W a weight
gradient; each perturbed pass that follows costs F + B + W:

    pgd      generate F + B (on) + B (off), clean F+B+W         12 in all; a random start costs an F more
    shared   clean F+B+W, and B for the other direction          10 in all
    learned  as shared, and F + B each in every fourth batch     11 in all

Samples are generated with dropout off: with dropout on, the direction is noise.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from calibrant.errors import UserError
from calibrant.models.split import SplitModel
from calibrant.objectives.functional import cosine_distance
from calibrant.objectives.manifold import climb, descend, off_step, on_step
from calibrant.types import Batch


@dataclass(frozen=True)
class Solution:
    """What the regularisers are computed from. A sample is None where it was not asked for."""

    ce: Tensor  # the cross-entropy term, with gradients to the weights
    on: Tensor | None  # x′, (B, T, e), constant
    off: Tensor | None  # x″, (B, T, e), constant


@dataclass(frozen=True)
class Solver(ABC):
    """Finds both samples of a batch; a δ of None leaves that sample out."""

    name: ClassVar[str]
    about: ClassVar[str] = ""  # what it does, in one line of plain words
    citation: ClassVar[str]
    random_starts: ClassVar[bool] = False  # whether it can start elsewhere than at x

    delta_on: float | None
    delta_off: float | None
    steps: int = 1
    random_start_on: bool = False
    random_start_off: bool = False

    def __post_init__(self) -> None:
        if not self.random_starts and (self.random_start_on or self.random_start_off):
            raise UserError(f"The solver {self.name!r} starts at x; take solver='pgd' for random starts.")

    @abstractmethod
    def solve(self, model: SplitModel, batch: Batch, partners: Tensor) -> Solution:
        """Both samples of one batch; text i has partner ``partners[i]``, (B,)."""

    def state(self) -> dict[str, Any]:
        """What it has learnt so far, as JSON, so that a checkpoint can hold it."""
        return {}

    def resume(self, state: dict[str, Any]) -> None:
        """Go on from a ``state``; an empty one is a beginning."""
        assert not state, f"{self.name} learns nothing"

    def _on(
        self, model: SplitModel, mask: Tensor, x: Tensor, hidden: Tensor, partners: Tensor, delta: float
    ) -> Tensor:
        """x′, from the graph of a pass over x; that graph is kept."""
        steps, constant = self.steps, x.detach()
        features = model.features(hidden, mask)
        target = features.detach()[partners]
        if self.random_start_on:
            start = noise(constant, mask, delta)
        else:
            (gradient,) = torch.autograd.grad(cosine_distance(features, target).sum(), x, retain_graph=True)
            start, steps = on_step(constant, constant, gradient, delta) - constant, steps - 1
        return descend(
            lambda z: model.features(model.encode(z, mask), mask), constant, start, target, delta, steps
        )

    def _off(
        self, model: SplitModel, batch: Batch, x: Tensor, gradient: Tensor | None, delta: float
    ) -> Tensor:
        """x″, from the gradient ∇ℓ at x, or from a random start where there is none."""
        mask, steps, constant = batch.attention_mask, self.steps, x.detach()
        if gradient is None:
            start = noise(constant, mask, delta)
        else:
            start, steps = off_step(constant, constant, gradient, delta) - constant, steps - 1
        return climb(
            lambda z: cross_entropy(model(z, mask), batch.labels, reduction="none"),
            constant,
            start,
            delta,
            steps,
        )


def noise(x: Tensor, mask: Tensor, delta: float) -> Tensor:
    """v ~ U[−δ, δ] on each text's own tokens; padding stays as it is."""
    return torch.empty_like(x).uniform_(-delta, delta) * mask.unsqueeze(-1)


def embedded(model: SplitModel, batch: Batch) -> Tensor:
    """x of a batch, with a gradient even where the embeddings are frozen."""
    x = model.embed(batch.input_ids, batch.token_type_ids)
    return x if x.requires_grad else x.requires_grad_()
