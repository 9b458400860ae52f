"""Plain fine-tuning."""

from dataclasses import dataclass
from typing import ClassVar

from torch.nn.functional import cross_entropy

from calibrant.models.split import SplitModel
from calibrant.objectives.base import Loss, Objective
from calibrant.types import Batch


@dataclass(frozen=True)
class CrossEntropy(Objective):
    """ℓ(g∘f(x), y) = −log p_y."""

    name: ClassVar[str] = "cross-entropy"
    about: ClassVar[str] = "Plain fine-tuning; its confidence is often too high."
    citation: ClassVar[str] = "Devlin et al. (2019), BERT: Pre-training of Deep Bidirectional Transformers"

    def loss(self, model: SplitModel, batch: Batch) -> Loss:
        """−log p_y, averaged over the batch."""
        x = model.embed(batch.input_ids, batch.token_type_ids)
        ce = cross_entropy(model(x, batch.attention_mask), batch.labels)
        return Loss(ce, {"ce": ce.detach()})
