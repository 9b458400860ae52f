"""Mixup on last-layer features."""

import math
from dataclasses import dataclass
from typing import ClassVar

import torch

from calibrant.errors import UserError
from calibrant.models.split import SplitModel
from calibrant.objectives.base import Loss, Objective
from calibrant.objectives.cross_entropy import CrossEntropy
from calibrant.objectives.mixup import mixed_cross_entropy, mixing_weight
from calibrant.types import Batch


@dataclass(frozen=True)
class ManifoldMixup(Objective):
    """ℓ(g(λ·f(x) + (1 − λ)·f(x̃)), λ·y + (1 − λ)·ỹ) with λ ~ Beta(α, α), one λ for a batch.

    Verma et al. mix at a random layer; here, as in the comparison of Kong et al., always at the last.
    """

    name: ClassVar[str] = "manifold-mixup"
    about: ClassVar[str] = "Trains on mixtures of the features of two texts."
    citation: ClassVar[str] = (
        "Verma et al. (2019), Manifold Mixup: Better Representations by Interpolating Hidden States"
    )

    alpha: float = 2.0

    def __post_init__(self) -> None:
        if not 0 <= self.alpha < math.inf:
            raise UserError(f"`alpha` must lie in [0, ∞), got {self.alpha}.")

    def loss(self, model: SplitModel, batch: Batch) -> Loss:
        """The cross-entropy of the mixed batch; a text's partner is another text of the batch."""
        weight = mixing_weight(self.alpha)
        if weight == 1:
            return CrossEntropy().loss(model, batch)
        mask = batch.attention_mask
        partners = torch.randperm(len(batch), device=batch.labels.device)
        hidden = model.encode(model.embed(batch.input_ids, batch.token_type_ids), mask)
        # A head may pool over the tokens of both texts. With its own mean at the padding, each text has
        # there what it has alone: its mean (and its first token and its maximum) stay what they were.
        own = mask.unsqueeze(-1).bool()
        hidden = torch.where(own, hidden, model.features(hidden, mask).unsqueeze(1))
        mixed = weight * hidden + (1 - weight) * hidden[partners]
        logits = model.head(mixed, mask | mask[partners])
        ce = mixed_cross_entropy(logits, batch.labels, batch.labels[partners], weight)
        return Loss(ce, {"ce": ce.detach()})
