"""Several passes with dropout on, averaged."""

import copy
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.nn.modules.dropout import _DropoutNd

from calibrant.errors import UserError
from calibrant.inference.base import Inference, log_mean_probability, told
from calibrant.inference.single import SinglePass
from calibrant.models.fast.first_token import first_token_only
from calibrant.types import Needs

_TURN = threading.Lock()
"""torch has one source of random numbers, so threads that draw from it take turns. Others need not."""

_DROPPING: WeakKeyDictionary[nn.Module, nn.Module] = WeakKeyDictionary()

TEXTS_AT_ONCE = 32  # copies included: as many as memory is sure to hold, since prediction takes 32 texts


@dataclass(frozen=True)
class MCDropout(Inference):
    """p = 1/S · Σ_s softmax(g∘f_s(x)), where each pass s drops other units.

    The passes of a few texts go through the model side by side. Nothing is shared between them: dropout
    follows the embeddings at once, and a look-up of word embeddings costs next to nothing.

    A batch's answer depends on the seed and on the batch, not on what ran before it; torch's own random
    numbers go on as if nothing had been drawn.
    """

    name: ClassVar[str] = "mc-dropout"
    about: ClassVar[str] = "The mean of several passes that drop random units."
    citation: ClassVar[str] = "Gal and Ghahramani (2016), Dropout as a Bayesian Approximation"
    averages: ClassVar[bool] = True

    passes: int = 10
    seed: int = 0

    def __post_init__(self) -> None:
        if self.passes < 1:
            raise UserError(f"`passes` must be at least 1, got {self.passes}.")

    def check(self, model: Any) -> None:
        """Without dropout every pass would be the same."""
        if not any(isinstance(module, _DropoutNd) and module.p > 0 for module in model.modules()):
            raise UserError(
                f"MC dropout needs dropout, and {type(model).__name__} ({model.config.name_or_path}) has "
                "none (all its rates are 0). Use another method, or a model trained with dropout."
            )

    def outputs(
        self,
        models: Sequence[Any],
        input_ids: Tensor,
        attention_mask: Tensor,
        needs: Needs,
        token_type_ids: Tensor | None = None,
    ) -> dict[str, Tensor]:
        """log of the mean probability. Features come of one pass more: chance has no part in them."""
        (model,) = models
        self.check(model)
        inputs = told(input_ids, attention_mask, token_type_ids)
        found = SinglePass().outputs(models, needs=needs, **inputs) if needs else {}
        with _TURN:
            return found | {"logits": self._logits(model, inputs)}

    def _logits(self, model: Any, inputs: dict[str, Tensor]) -> Tensor:
        texts = len(inputs["input_ids"])
        side_by_side = max(1, TEXTS_AT_ONCE // texts)
        passes = []
        dropping = _dropping(model)
        with (
            first_token_only(),
            torch.random.fork_rng(devices=range(torch.cuda.device_count())),
        ):
            torch.manual_seed(self.seed)
            for done in range(0, self.passes, side_by_side):
                copies = min(side_by_side, self.passes - done)
                z = dropping(**{name: part.repeat(copies, 1) for name, part in inputs.items()}).logits
                passes.append(z.view(copies, texts, -1))
        return log_mean_probability(torch.cat(passes))


def _dropping(model: nn.Module) -> nn.Module:
    """The model with dropout on, beside the model itself: modules of its own, and the same weights.

    Attention asks its own mode whether to drop weights.
    """
    if model not in _DROPPING:
        tensors = [*model.parameters(), *model.buffers()]
        twin = copy.deepcopy(model, memo={id(tensor): tensor for tensor in tensors}).eval()
        for module in twin.modules():
            if isinstance(module, _DropoutNd) or "Attention" in type(module).__name__:
                module.training = True
        _DROPPING[model] = twin
    return _DROPPING[model]
