"""How many passes a prediction takes."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from torch import Tensor


class Inference(ABC):
    """From a padded batch to the logarithms, up to a constant, of the class probabilities."""

    name: ClassVar[str]
    citation: ClassVar[str]

    @abstractmethod
    def logits(self, model: Any, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """(B, T), (B, T) → (B, K)."""
