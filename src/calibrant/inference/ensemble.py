"""Several models trained from different seeds, averaged."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from calibrant.errors import UserError
from calibrant.inference.base import Inference, log_mean_probability
from calibrant.inference.single import SinglePass
from calibrant.types import Needs


@dataclass(frozen=True)
class DeepEnsemble(Inference):
    """p = 1/M · Σ_m softmax(g_m∘f_m(x)) over M models that differ in their seed."""

    name: ClassVar[str] = "ensemble"
    about: ClassVar[str] = "The mean of several models with different seeds."
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

    def outputs(
        self,
        models: Sequence[Any],
        input_ids: Tensor,
        attention_mask: Tensor,
        needs: Needs,
        token_type_ids: Tensor | None = None,
    ) -> dict[str, Tensor]:
        """log of the mean probability, and each member's features side by side, (B, M·h)."""
        one = SinglePass()
        members = [one.outputs([model], input_ids, attention_mask, needs, token_type_ids) for model in models]
        logits = log_mean_probability(torch.stack([member.pop("logits") for member in members]))
        return {"logits": logits} | {
            name: torch.cat([member[name] for member in members], dim=-1) for name in members[0]
        }
