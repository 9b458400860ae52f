"""One minus the confidence."""

from typing import ClassVar

import numpy as np

from calibrant.scores.base import Floats, Score
from calibrant.types import Outputs


class MaxProbability(Score):
    """s = 1 − max_k p_k: what the classifier itself says, and what training for calibration improves."""

    name: ClassVar[str] = "max-probability"
    about: ClassVar[str] = "High where the confidence is low."
    citation: ClassVar[str] = (
        "Hendrycks and Gimpel (2017), A Baseline for Detecting Misclassified and Out-of-Distribution Examples"
    )

    def __call__(self, outputs: Outputs) -> Floats:
        """(n,) in [0, 1 − 1/K]."""
        return np.asarray(1 - outputs.probabilities.max(axis=1))
