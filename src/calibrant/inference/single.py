"""One pass, dropout off."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor

from calibrant.inference.base import Inference
from calibrant.models.first_token import first_token_only
from calibrant.models.split import SplitModel


@dataclass(frozen=True)
class SinglePass(Inference):
    """The model as it is."""

    name: ClassVar[str] = "single"
    citation: ClassVar[str] = "Devlin et al. (2019), BERT: Pre-training of Deep Bidirectional Transformers"
    averages: ClassVar[bool] = False

    def check(self, model: Any) -> None:
        """Any model will do."""

    def logits(self, models: Sequence[Any], input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """The head's output."""
        (model,) = models
        model.eval()
        with first_token_only(model):
            logits: Tensor = model(input_ids=input_ids, attention_mask=attention_mask).logits
        return logits

    def logits_and_features(
        self, models: Sequence[Any], input_ids: Tensor, attention_mask: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Both of one pass over the encoder."""
        (model,) = models
        model.eval()
        split = SplitModel(model)
        hidden, logits = split.encode_and_classify(split.embed(input_ids), attention_mask)
        return logits, split.features(hidden, attention_mask)
