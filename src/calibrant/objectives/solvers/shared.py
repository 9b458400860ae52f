"""One clean pass, dropout off, for the cross-entropy term and for both directions.

∇ℓ at x is what the backward pass of the cross-entropy computes on its way to the embeddings;
∇D_x takes one more backward pass through the same graph.
"""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor
from torch.nn.functional import cross_entropy

from calibrant.models.split import SplitModel
from calibrant.objectives.differentiated import differentiate
from calibrant.objectives.solvers.base import Solution, Solver, embedded
from calibrant.types import Batch


@dataclass(frozen=True)
class Shared(Solver):
    """The samples of ``pgd`` started at x, for the price of one backward pass beside the clean step."""

    name: ClassVar[str] = "shared"
    about: ClassVar[str] = "Faster: one pass over the text serves both samples."
    citation: ClassVar[str] = "Shafahi et al. (2019), Adversarial Training for Free!"

    def solve(self, model: SplitModel, batch: Batch, partners: Tensor) -> Solution:
        """All of the one pass."""
        mask = batch.attention_mask
        on = off = None
        with model.dropout_off():
            x = embedded(model, batch)
            if self.delta_on is not None:
                hidden, logits = model.encode_and_classify(x, mask)
                on = self._on(model, mask, x, hidden, partners, self.delta_on)
            else:
                logits = model(x, mask)
            ce, gradient = differentiate(cross_entropy(logits, batch.labels), x, model.model.parameters())
            if self.delta_off is not None:
                off = self._off(model, batch, x, gradient, self.delta_off)
        return Solution(ce, on, off)
