"""Learning to learn (Jiang et al. 2018): a small network proposes the perturbation, and is trained along.

With g the gradient of the inner problem at x, and ĝ and x̂ the two scaled to a root mean square of 1 over a
text's tokens,

    v = δ · tanh(c·sign(g) + w·tanh(A·[ĝ, x̂] + a)),   coordinate by coordinate

It begins with w = 0, which is nearly the signed step of ``shared``. In every fourth batch one more pass tells
how good the proposal was, J(x + v), and the network takes a step up the gradient of that. Such a batch costs
F + B more for each sample, so that the mean of all is 11 where ``shared`` has 10.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import torch
from torch import Tensor, distributed, nn
from torch.nn.functional import cross_entropy

from calibrant.models.split import SplitModel
from calibrant.objectives.differentiated import differentiate
from calibrant.objectives.functional import cosine_distance
from calibrant.objectives.manifold import project_to_ball, project_to_sphere
from calibrant.objectives.solvers.base import Solution, Solver, embedded
from calibrant.types import Batch

EVERY = 4  # batches
WIDTH = 16
STEP = 0.05  # the length of a step, of parameters that are about 1
SHARPNESS = 2.0  # c at the start: tanh(2) = 0.96, and not yet flat


class Proposal(nn.Module):
    """v of a gradient and x, each (B, T, e)."""

    def __init__(self) -> None:
        super().__init__()
        inside = torch.linspace(-1, 1, 2 * WIDTH).view(WIDTH, 2).roll(1, 0)  # no draw: the seed is training's
        self.sharpness = nn.Parameter(torch.tensor(SHARPNESS))
        self.inner = nn.Parameter(inside)
        self.shift = nn.Parameter(torch.zeros(WIDTH))
        self.outer = nn.Parameter(torch.zeros(WIDTH))
        self.seen = 0

    def forward(self, gradient: Tensor, x: Tensor, mask: Tensor, delta: float) -> Tensor:
        """The perturbation, with a gradient to the parameters; 0 at padding."""
        own = mask.unsqueeze(-1).to(x.dtype)
        g, x = _scaled(gradient, own), _scaled(x, own)
        # The parameters stay where they are, since models come and go on other devices.
        sharpness, inner, shift, outer = (weight.to(x) for weight in self.parameters())
        hidden = (g.unsqueeze(-1) * inner[:, 0] + x.unsqueeze(-1) * inner[:, 1] + shift).tanh()
        return delta * (sharpness * gradient.sign() + hidden @ outer).tanh() * own

    def learn(self, v: Tensor, gradient: Tensor) -> None:
        """A step of fixed length up J, of which ``gradient`` is the derivative at v."""
        if v.is_meta:  # shapes without values
            return
        weights = list(self.parameters())
        found = _of_all_processes(torch.autograd.grad(v, weights, gradient), v.device)
        norm = torch.stack([part.norm() for part in found]).norm().clamp_min(torch.finfo(torch.float32).tiny)
        with torch.no_grad():
            for weight, part in zip(weights, found, strict=True):
                weight.add_(STEP * part / norm)


@dataclass(frozen=True)
class Learned(Solver):
    """One clean pass, dropout off, as in ``shared``; then a network for each sample proposes where to go."""

    name: ClassVar[str] = "learned"
    about: ClassVar[str] = "A small network proposes the step, and learns along."
    citation: ClassVar[str] = "Jiang et al. (2018), Learning to Defend by Learning to Attack"

    @cached_property
    def proposals(self) -> dict[str, Proposal]:
        """Of the two samples; what they have learnt belongs to one training."""
        return {"on": Proposal(), "off": Proposal()}

    def state(self) -> dict[str, Any]:
        """The parameters as numbers, and how many batches were seen."""
        return {
            name: {
                "seen": proposal.seen,
                **{key: value.tolist() for key, value in proposal.state_dict().items()},
            }
            for name, proposal in self.proposals.items()
        }

    def resume(self, state: dict[str, Any]) -> None:
        """As they were; without a state, as they begin."""
        for name, proposal in self.proposals.items():
            stored = dict(state.get(name) or {"seen": 0, **Proposal().state_dict()})
            proposal.seen = stored.pop("seen")
            proposal.load_state_dict({key: torch.as_tensor(value) for key, value in stored.items()})

    def solve(self, model: SplitModel, batch: Batch, partners: Tensor) -> Solution:
        """The samples of both networks; each may learn of what it reached."""
        mask, y = batch.attention_mask, batch.labels
        on = off = None
        with model.dropout_off():
            x = embedded(model, batch)
            hidden, logits = model.encode_and_classify(x, mask)
            constant = x.detach()
            if self.delta_on is not None:
                features = model.features(hidden, mask)
                target = features.detach()[partners]
                (slope,) = torch.autograd.grad(-cosine_distance(features, target).sum(), x, retain_graph=True)

                def nearness(z: Tensor) -> Tensor:
                    return -cosine_distance(model.features(model.encode(z, mask), mask), target)

                on = self._sample("on", nearness, constant, slope, mask, self.delta_on, project_to_ball)
            ce, slope = differentiate(cross_entropy(logits, y), x, model.model.parameters())
            if self.delta_off is not None:

                def loss(z: Tensor) -> Tensor:
                    return cross_entropy(model(z, mask), y, reduction="none")

                off = self._sample("off", loss, constant, slope, mask, self.delta_off, project_to_sphere)
        return Solution(ce, on, off)

    def _sample(
        self,
        name: str,
        reached: Callable[[Tensor], Tensor],
        x: Tensor,
        slope: Tensor,
        mask: Tensor,
        delta: float,
        project: Callable[[Tensor, float], Tensor],
    ) -> Tensor:
        """x + v; with more than one step the network sees the gradient there, and proposes from x again."""
        proposal = self.proposals[name]
        for step in range(self.steps):
            v = proposal(slope, x, mask, delta)
            z = (x + project(v.detach(), delta)).requires_grad_()
            proposal.seen += 1
            learns = proposal.seen % EVERY == 0
            if learns or step + 1 < self.steps:
                (slope,) = torch.autograd.grad(reached(z).sum(), z)
            if learns:
                proposal.learn(v, slope)
        return z.detach()


def _of_all_processes(parts: Sequence[Tensor], device: torch.device) -> Sequence[Tensor]:
    """The sum over the texts of all processes that train together, so that all learn the same."""
    if not (distributed.is_available() and distributed.is_initialized()):
        return parts
    flat = torch.cat([part.flatten() for part in parts]).to(device)
    distributed.all_reduce(flat)
    sums = torch.split(flat, [part.numel() for part in parts])
    return [each.view_as(part).to(part) for each, part in zip(sums, parts, strict=True)]


def _scaled(values: Tensor, own: Tensor) -> Tensor:
    """Divided by the root mean square over each text's own tokens, (B, T, e)."""
    values = values * own
    mean = values.square().sum(dim=(1, 2), keepdim=True) / (
        own.sum(dim=(1, 2), keepdim=True) * values.shape[-1]
    )
    return values / mean.sqrt().clamp_min(torch.finfo(values.dtype).tiny)
