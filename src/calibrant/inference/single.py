"""One pass, dropout off."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor

from calibrant.inference.base import Inference
from calibrant.models.first_token import first_token_only


@dataclass(frozen=True)
class SinglePass(Inference):
    """The model as it is."""

    name: ClassVar[str] = "single"
    citation: ClassVar[str] = "Devlin et al. (2019), BERT: Pre-training of Deep Bidirectional Transformers"

    def check(self, model: Any) -> None:
        """Any model will do."""

    def logits(self, models: Sequence[Any], input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """The head's output."""
        (model,) = models
        model.eval()
        with first_token_only(model):
            logits: Tensor = model(input_ids=input_ids, attention_mask=attention_mask).logits
        return logits
