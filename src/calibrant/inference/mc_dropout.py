"""Several passes with dropout on, averaged."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn.modules.dropout import _DropoutNd

from calibrant.errors import UserError
from calibrant.inference.base import Inference, log_mean_probability
from calibrant.inference.single import SinglePass
from calibrant.models.dropout import use_cheap_dropout
from calibrant.models.first_token import first_token_only

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

    def logits(self, models: Sequence[Any], input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """log of the mean probability."""
        (model,) = models
        self.check(model)
        use_cheap_dropout(model)
        texts = len(input_ids)
        side_by_side = max(1, TEXTS_AT_ONCE // texts)
        passes = []
        with (
            first_token_only(model),
            _dropout_on(model),
            torch.random.fork_rng(devices=range(torch.cuda.device_count())),
        ):
            torch.manual_seed(self.seed)
            for done in range(0, self.passes, side_by_side):
                copies = min(side_by_side, self.passes - done)
                z = model(
                    input_ids=input_ids.repeat(copies, 1), attention_mask=attention_mask.repeat(copies, 1)
                ).logits
                passes.append(z.view(copies, texts, -1))
        return log_mean_probability(torch.cat(passes))

    def logits_and_features(
        self, models: Sequence[Any], input_ids: Tensor, attention_mask: Tensor
    ) -> tuple[Tensor, Tensor]:
        """One pass more, with dropout off: where a text lies should not be left to chance."""
        _, features = SinglePass().logits_and_features(models, input_ids, attention_mask)
        return self.logits(models, input_ids, attention_mask), features


@contextmanager
def _dropout_on(model: nn.Module) -> Iterator[None]:
    """Training mode for dropout, and for attention, which asks its own mode whether to drop weights."""
    model.eval()
    for module in model.modules():
        if isinstance(module, _DropoutNd) or "Attention" in type(module).__name__:
            module.training = True
    try:
        yield
    finally:
        model.eval()
