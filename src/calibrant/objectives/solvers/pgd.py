"""Projected signed gradient steps, as the paper prints them, with nothing computed twice."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from calibrant.models.split import SplitModel
from calibrant.objectives.solvers.base import Solution, Solver
from calibrant.types import Batch


@dataclass(frozen=True)
class PGD(Solver):
    """Where both samples start at x, one forward pass serves both, and the partners' features too."""

    name: ClassVar[str] = "pgd"
    about: ClassVar[str] = "As the paper prints it: signed gradient steps."
    citation: ClassVar[str] = (
        "Madry et al. (2018), Towards Deep Learning Models Resistant to Adversarial Attacks"
    )
    random_starts: ClassVar[bool] = True

    def solve(self, model: SplitModel, batch: Batch, partners: Tensor) -> Solution:
        """The samples first, then a clean pass of its own."""
        mask = batch.attention_mask
        on = off = None
        with model.dropout_off():
            x = model.embed(batch.input_ids, batch.token_type_ids).detach().requires_grad_()
            if self.delta_on is not None:
                hidden, logits = model.encode_and_classify(x, mask)
                on = self._on(model, mask, x, hidden, partners, self.delta_on)
            elif self.delta_off is not None and not self.random_start_off:
                logits = model(x, mask)
            if self.delta_off is not None:
                gradient = None
                if not self.random_start_off:
                    (gradient,) = torch.autograd.grad(cross_entropy(logits, batch.labels, reduction="sum"), x)
                off = self._off(model, batch, x, gradient, self.delta_off)
        ce = cross_entropy(model(model.embed(batch.input_ids, batch.token_type_ids), mask), batch.labels)
        return Solution(ce, on, off)
