"""The entropy-regularised loss (ERL), a penalty on confidence."""

import math
from dataclasses import dataclass
from typing import ClassVar

from torch.nn.functional import cross_entropy

from calibrant.errors import UserError
from calibrant.models.split import SplitModel
from calibrant.objectives.base import Loss, Objective
from calibrant.objectives.functional import negative_entropy
from calibrant.types import Batch


@dataclass(frozen=True)
class EntropyRegularized(Objective):
    """CE − β·H(p)."""

    name: ClassVar[str] = "entropy-regularized"
    about: ClassVar[str] = "Adds a penalty on confident answers."
    citation: ClassVar[str] = (
        "Pereyra et al. (2017), Regularizing Neural Networks by Penalizing Confident Output Distributions"
    )
    terms: ClassVar[dict[str, str]] = Objective.terms | {"entropy": "uncertainty of the answers"}

    beta: float = 0.1

    def __post_init__(self) -> None:
        if not 0 <= self.beta < math.inf:
            raise UserError(f"`beta` must lie in [0, ∞), got {self.beta}.")

    def loss(self, model: SplitModel, batch: Batch) -> Loss:
        """Both terms averaged over the batch."""
        logits = model(model.embed(batch.input_ids, batch.token_type_ids), batch.attention_mask)
        ce = cross_entropy(logits, batch.labels)
        entropy = -negative_entropy(logits).mean()
        return Loss(ce - self.beta * entropy, {"ce": ce.detach(), "entropy": entropy.detach()})
