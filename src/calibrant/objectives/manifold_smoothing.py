"""Manifold smoothing: the method of Kong et al. (2020)."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from calibrant.errors import UserError
from calibrant.models.split import SplitModel
from calibrant.objectives.base import Loss, Objective
from calibrant.objectives.functional import negative_entropy
from calibrant.objectives.manifold import interpolate_labels
from calibrant.objectives.solvers import Solver, solvers
from calibrant.registry import pick
from calibrant.types import Batch


@dataclass(frozen=True)
class ManifoldSmoothing(Objective):
    """CE + λ_on·R_on + λ_off·R_off (equation 4 of the paper).

        R_on  = KL(y′ ‖ g∘f(x′))     smooth between a text and its partner: calibration in-distribution
        R_off = −H(g∘f(x″))          no confidence off the manifold: calibration out-of-distribution

    A term whose weight is 0 costs nothing. ``solver`` says how x′ and x″ are found (``shared`` is the
    cheaper, ``pgd`` the one printed in the paper, ``yopo`` the cheapest for several ``steps``, ``learned`` a
    network that is trained along);
    ``random_start_on`` and ``random_start_off``, with ``pgd`` only, start the inner problem at a random
    point of the ball instead of at x.

    ``share`` is the part of each batch that is regularised, drawn at random. R_on and R_off are then means
    over fewer texts, with the same expectation, and the other texts cost a plain step only.
    """

    name: ClassVar[str] = "manifold-smoothing"
    about: ClassVar[str] = "The paper's: smooth between texts, unsure beside them."
    citation: ClassVar[str] = (
        "Kong et al. (2020), Calibrated Language Model Fine-Tuning for In- and Out-of-Distribution Data"
    )
    terms: ClassVar[dict[str, str]] = Objective.terms | {
        "r_on": "error between two texts, for confidence on familiar text",
        "r_off": "confidence beside the texts, for confidence on unfamiliar text",
    }

    lambda_on: float = 1.0
    lambda_off: float = 1.0
    delta_on: float = 1e-4
    delta_off: float = 1e-3
    delta_y: float = 0.1
    solver: str = "shared"
    steps: int = 1
    share: float = 1.0
    random_start_on: bool = False
    random_start_off: bool = False

    def __post_init__(self) -> None:
        for name in ("lambda_on", "lambda_off", "delta_on", "delta_off"):
            if not getattr(self, name) >= 0:
                raise UserError(f"`{name}` must not be negative, got {getattr(self, name)}.")
        if not 0 <= self.delta_y <= 1:
            raise UserError(f"`delta_y` must lie in [0, 1], got {self.delta_y}.")
        if not 0 < self.share <= 1:
            raise UserError(f"`share` must lie in (0, 1], got {self.share}.")
        if self.steps < 1:
            raise UserError(f"`steps` must be at least 1, got {self.steps}.")
        _ = self._solver

    @cached_property
    def _solver(self) -> Solver:
        """A sample whose weight is 0 is not asked for."""
        return pick("solver", self.solver, solvers())(
            delta_on=self.delta_on if self.lambda_on else None,
            delta_off=self.delta_off if self.lambda_off else None,
            steps=self.steps,
            random_start_on=self.random_start_on,
            random_start_off=self.random_start_off,
        )

    def state(self) -> dict[str, Any]:
        """The solver's."""
        return self._solver.state()

    def resume(self, state: dict[str, Any]) -> None:
        """The solver does."""
        self._solver.resume(state)

    def loss(self, model: SplitModel, batch: Batch) -> Loss:
        """The three terms of one batch; a text's partner is another of its regularised texts."""
        n, m = len(batch), math.ceil(self.share * len(batch))
        chosen, rest = batch, None
        if m < n:
            order = torch.randperm(n, device=batch.labels.device)
            chosen, rest = batch[order[:m]], batch[order[m:]]
        mask = chosen.attention_mask
        partners = torch.randperm(m, device=batch.labels.device)
        solution = self._solver.solve(model, chosen, partners)
        passes = {"on": (solution.on, mask), "off": (solution.off, mask)}
        if rest is not None:
            passes["rest"] = (model.embed(rest.input_ids, rest.token_type_ids), rest.attention_mask)
        logits = _classify(model, passes)
        total = solution.ce
        if rest is not None:
            total = (m * total + (n - m) * cross_entropy(logits["rest"], rest.labels)) / n
        terms = {"ce": total.detach()}
        if "on" in logits:
            y = interpolate_labels(
                chosen.labels, chosen.labels[partners], logits["on"].shape[-1], float(self.delta_y)
            )
            # KL(y′ ‖ p) = ℓ(p, y′) − H(y′), by way of the cross-entropy, which class weights reach.
            r_on = cross_entropy(logits["on"], y) + torch.xlogy(y, y).sum(dim=-1).mean()
            total = total + self.lambda_on * r_on
            terms["r_on"] = r_on.detach()
        if "off" in logits:
            r_off = negative_entropy(logits["off"]).mean()
            total = total + self.lambda_off * r_off
            terms["r_off"] = r_off.detach()
        return Loss(total, terms)


def _classify(model: SplitModel, passes: dict[str, tuple[Tensor | None, Tensor]]) -> dict[str, Tensor]:
    """Logits of the samples that are there, (embeddings, mask) → (B, K).

    They go through the model together: matrix products like that size, those of short texts above all.
    """
    there = {name: (x, mask) for name, (x, mask) in passes.items() if x is not None}
    if not there:
        return {}
    x, mask = (torch.cat(parts) for parts in zip(*there.values(), strict=True))
    parts = torch.split(model(x, mask), [len(x) for x, _ in there.values()])
    return dict(zip(there, parts, strict=True))
