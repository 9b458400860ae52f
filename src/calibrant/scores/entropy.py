"""How spread out the probabilities are."""

from typing import ClassVar

import numpy as np
from scipy.special import entr

from calibrant.scores.base import Floats, Score
from calibrant.types import Outputs


class Entropy(Score):
    """s = −Σ_k p_k·log p_k, in nats; 0·log 0 is 0."""

    name: ClassVar[str] = "entropy"
    about: ClassVar[str] = "High where the model spreads over many classes."
    citation: ClassVar[str] = "Shannon (1948), A Mathematical Theory of Communication"

    def __call__(self, outputs: Outputs) -> Floats:
        """(n,) in [0, log K]."""
        return np.asarray(entr(outputs.probabilities).sum(axis=1))
