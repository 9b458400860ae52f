"""One pass, dropout off."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from calibrant.inference.base import Inference, told
from calibrant.models.fast.first_token import first_token_only
from calibrant.models.last_linear import watched
from calibrant.models.split import SplitModel
from calibrant.types import Needs


@dataclass(frozen=True)
class SinglePass(Inference):
    """The model as it is."""

    name: ClassVar[str] = "single"
    about: ClassVar[str] = "One pass: the model as it is."
    citation: ClassVar[str] = "Devlin et al. (2019), BERT: Pre-training of Deep Bidirectional Transformers"
    averages: ClassVar[bool] = False

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
        """All of one pass over the encoder; for the logits alone a part of the last layer is enough."""
        (model,) = models
        if "head" in needs:
            with watched(model) as ran:
                found = self.outputs(models, input_ids, attention_mask, needs - {"head"}, token_type_ids)
            return found | {"head": ran[-1][1]}
        if not needs:
            with first_token_only():
                return {"logits": model(**told(input_ids, attention_mask, token_type_ids)).logits}
        split = SplitModel(model)
        x = split.embed(input_ids, token_type_ids)
        if needs <= {"features"}:
            hidden, logits = split.encode_and_classify(x, attention_mask)
            return {"logits": logits, "features": split.features(hidden, attention_mask)}
        hidden, layers, logits = split.encode_layers_and_classify(x, attention_mask)
        found = {"logits": logits, "features": split.features(hidden, attention_mask)}
        if "middle" in needs:
            found["middle"] = split.features(layers[len(layers) // 2], attention_mask)
        if "layers" in needs:
            found["layers"] = torch.stack([split.features(each, attention_mask) for each in layers], dim=1)
        return found
