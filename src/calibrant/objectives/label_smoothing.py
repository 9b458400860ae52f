"""Label smoothing."""

from dataclasses import dataclass
from typing import ClassVar

from torch.nn.functional import cross_entropy

from calibrant.errors import UserError
from calibrant.models.split import SplitModel
from calibrant.objectives.base import Loss, Objective
from calibrant.types import Batch


@dataclass(frozen=True)
class LabelSmoothing(Objective):
    """−Σ_k y′_k·log p_k with y′ = (1 − s)·y + s/K: a share s of each label spread over all K classes."""

    name: ClassVar[str] = "label-smoothing"
    about: ClassVar[str] = "Trains towards labels that are not quite certain."
    citation: ClassVar[str] = "Müller et al. (2019), When Does Label Smoothing Help?"

    smoothing: float = 0.1

    def __post_init__(self) -> None:
        if not 0 <= self.smoothing < 1:
            raise UserError(f"`smoothing` must lie in [0, 1), got {self.smoothing}.")

    def loss(self, model: SplitModel, batch: Batch) -> Loss:
        """Cross-entropy against the smoothed labels, averaged over the batch."""
        logits = model(model.embed(batch.input_ids, batch.token_type_ids), batch.attention_mask)
        total = cross_entropy(logits, batch.labels, label_smoothing=self.smoothing)
        # The log shows the term that every objective has, so that runs can be compared.
        return Loss(total, {"ce": cross_entropy(logits.detach(), batch.labels)})
