"""The largest logit, before a softmax sets it against the others."""

from typing import ClassVar

import numpy as np

from calibrant.scores.base import Floats, Score
from calibrant.types import Outputs


class MaxLogit(Score):
    """s = −max_k z_k. A calibrator does not change it."""

    name: ClassVar[str] = "max-logit"
    about: ClassVar[str] = "High where the best logit is low."
    citation: ClassVar[str] = (
        "Hendrycks et al. (2022), Scaling Out-of-Distribution Detection for Real-World Settings"
    )

    def __call__(self, outputs: Outputs) -> Floats:
        """(n,), any real number."""
        return np.asarray(-outputs.logits.max(axis=1))
