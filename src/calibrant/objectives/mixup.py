"""Mixup on word embeddings."""

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.distributions import Gamma
from torch.nn.functional import cross_entropy

from calibrant.errors import UserError
from calibrant.models.split import SplitModel
from calibrant.objectives.base import Loss, Objective
from calibrant.objectives.cross_entropy import CrossEntropy
from calibrant.types import Batch


def mixing_weight(alpha: float) -> float:
    """max(λ, 1 − λ) with λ ~ Beta(α, α), from torch's generator; 1 where α = 0.

    The larger of the two may stand for λ, because the partners are drawn at random: mixing with 1 − λ
    is mixing with λ under the inverse permutation. So α → 0 gives 1, which is no mixing.
    """
    if alpha == 0:
        return 1.0
    # λ = G₁ / (G₁ + G₂) with G ~ Gamma(α) = Gamma(α + 1)·U^(1/α), in logarithms: for α under 0.01 both G
    # may be less than any float, and torch's own Beta then answers ½, where 0 or 1 is right.
    gamma = Gamma(torch.tensor(alpha + 1, dtype=torch.float64), 1).sample((2,))
    log_gamma = gamma.log() + torch.rand_like(gamma).log() / alpha
    return float((log_gamma[0] - log_gamma[1]).abs().sigmoid())


def mixed_cross_entropy(logits: Tensor, labels: Tensor, partners: Tensor, weight: float) -> Tensor:
    """λ·ℓ(p, y) + (1 − λ)·ℓ(p, ỹ), averaged; (B, K), (B,), (B,) → scalar."""
    return weight * cross_entropy(logits, labels) + (1 - weight) * cross_entropy(logits, partners)


@dataclass(frozen=True)
class Mixup(Objective):
    """ℓ(g∘f(λ·x + (1 − λ)·x̃), λ·y + (1 − λ)·ỹ) with λ ~ Beta(α, α).

    One λ is drawn for a batch, as in the algorithm that Zhang et al. print; a λ for each text has the
    same expectation. A mixed text is as long as the longer of the two: it attends to the tokens of
    both, and beyond its end the shorter one adds nothing.
    """

    name: ClassVar[str] = "mixup"
    about: ClassVar[str] = "Trains on mixtures of two texts."
    citation: ClassVar[str] = "Zhang et al. (2018), mixup: Beyond Empirical Risk Minimization"

    alpha: float = 0.2

    def __post_init__(self) -> None:
        if not 0 <= self.alpha < math.inf:
            raise UserError(f"`alpha` must lie in [0, ∞), got {self.alpha}.")

    def loss(self, model: SplitModel, batch: Batch) -> Loss:
        """The cross-entropy of the mixed batch; a text's partner is another text of the batch."""
        weight = mixing_weight(self.alpha)
        if weight == 1:  # under a joint mask even an unmixed text would attend to its padding
            return CrossEntropy().loss(model, batch)
        mask = batch.attention_mask
        partners = torch.randperm(len(batch), device=batch.labels.device)
        x = model.embed(batch.input_ids, batch.token_type_ids) * mask.unsqueeze(-1)
        logits = model(weight * x + (1 - weight) * x[partners], mask | mask[partners])
        ce = mixed_cross_entropy(logits, batch.labels, batch.labels[partners], weight)
        return Loss(ce, {"ce": ce.detach()})
