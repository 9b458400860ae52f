"""The free energy of the logits."""

from typing import ClassVar

import numpy as np
from scipy.special import logsumexp

from calibrant.scores.base import Floats, Score
from calibrant.types import Outputs


class Energy(Score):
    """s = −log Σ_k exp z_k, at temperature 1. A calibrator does not change it.

    It is the part of the logits that the softmax divides away, so it says nothing of log p̄, where it is 0.
    """

    name: ClassVar[str] = "energy"
    about: ClassVar[str] = "High where all logits are low."
    citation: ClassVar[str] = "Liu et al. (2020), Energy-based Out-of-distribution Detection"
    needs_own_logits: ClassVar[bool] = True

    def __call__(self, outputs: Outputs) -> Floats:
        """(n,), any real number."""
        return np.asarray(-logsumexp(outputs.logits, axis=1))
