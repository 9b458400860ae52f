"""Several models trained from different seeds, averaged."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from calibrant.errors import UserError
from calibrant.inference.base import Inference, log_mean_probability
from calibrant.inference.single import SinglePass


@dataclass(frozen=True)
class DeepEnsemble(Inference):
    """p = 1/M · Σ_m softmax(g_m∘f_m(x)) over M models that differ in their seed."""

    name: ClassVar[str] = "ensemble"
    citation: ClassVar[str] = (
        "Lakshminarayanan et al. (2017), Simple and Scalable Predictive Uncertainty Estimation using Deep "
        "Ensembles"
    )
    averages: ClassVar[bool] = True

    members: int = 5

    def __post_init__(self) -> None:
        if self.members < 2:
            raise UserError(f"`members` must be at least 2, got {self.members}.")

    def check(self, model: Any) -> None:
        """Any model will do."""

    def logits(self, models: Sequence[Any], input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """log of the mean probability."""
        one = SinglePass()
        return log_mean_probability(
            torch.stack([one.logits([model], input_ids, attention_mask) for model in models])
        )

    def logits_and_features(
        self, models: Sequence[Any], input_ids: Tensor, attention_mask: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Each member's features side by side, (B, M·h)."""
        one = SinglePass()
        logits, features = zip(
            *(one.logits_and_features([model], input_ids, attention_mask) for model in models), strict=True
        )
        return log_mean_probability(torch.stack(logits)), torch.cat(features, dim=-1)
