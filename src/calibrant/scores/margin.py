"""How close the second class comes to the first."""

from typing import ClassVar

import numpy as np

from calibrant.scores.base import Floats, Score
from calibrant.types import Outputs


class Margin(Score):
    """s = 1 − (p₍₁₎ − p₍₂₎), of the two largest probabilities."""

    name: ClassVar[str] = "margin"
    about: ClassVar[str] = "High where the two best classes are close."
    citation: ClassVar[str] = "Scheffer et al. (2001), Active Hidden Markov Models for Information Extraction"

    def __call__(self, outputs: Outputs) -> Floats:
        """(n,) in [0, 1]."""
        second, first = np.partition(outputs.probabilities, -2, axis=1)[:, -2:].T
        return np.asarray(1 - (first - second))
