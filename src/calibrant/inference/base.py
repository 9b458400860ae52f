"""How many passes a prediction takes."""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from torch import Tensor

from calibrant.types import Needs


class Inference(ABC):
    """From a padded batch to the logarithms, up to a constant, of the class probabilities.

    A subclass is a frozen dataclass of its hyper-parameters, all with defaults, as an objective is.
    """

    name: ClassVar[str]
    about: ClassVar[str] = ""  # what it does, in one line of plain words
    citation: ClassVar[str]

    members: int = 1  # how many models, trained from different seeds, it asks
    averages: ClassVar[bool]  # whether its logits are log p̄, the exponentials of which sum to 1

    @abstractmethod
    def check(self, model: Any) -> None:
        """Refuse a model that it cannot work with; asked before training, too."""

    @abstractmethod
    def outputs(
        self,
        models: Sequence[Any],
        input_ids: Tensor,
        attention_mask: Tensor,
        needs: Needs,
        token_type_ids: Tensor | None = None,
    ) -> dict[str, Tensor]:
        """By the names of ``Outputs``: ``logits`` (B, K) and what is needed, with dropout off, of (B, T) ids.

        ``features`` and ``middle`` are (B, h), ``layers`` (B, L + 1, h), ``head`` (B, w). Members' features
        stand side by side: each has learnt a space of its own, and a mean of theirs would lie in none.
        ``token_type_ids`` are (B, T), of pairs of texts.
        """


def told(input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor | None) -> dict[str, Tensor]:
    """What a model is called with; many know no types of tokens."""
    inputs = {"input_ids": input_ids, "attention_mask": attention_mask}
    return inputs if token_type_ids is None else inputs | {"token_type_ids": token_type_ids}


def log_mean_probability(logits: Tensor) -> Tensor:
    """log(1/S · Σ_s softmax(z_s)), (S, B, K) → (B, K); by logarithms, so that it is finite."""
    return logits.log_softmax(dim=-1).logsumexp(dim=0) - math.log(len(logits))
