"""Brier score."""

import numpy as np
from numpy.typing import ArrayLike

from calibrant.metrics.base import Metric, check_classification


def brier_score(probabilities: ArrayLike, labels: ArrayLike) -> float:
    """Brier = 1/n · Σ_i Σ_k (p_ik − 1[y_i = k])², between 0 and 2.

    Args:
        probabilities: (n, K), rows sum to 1.
        labels: (n,) true class ids.

    >>> brier_score([[0.5, 0.5], [1.0, 0.0]], [0, 1])
    1.25
    """
    p, y = check_classification(probabilities, labels)
    one_hot = np.eye(p.shape[1])[y]
    return float(((p - one_hot) ** 2).sum(axis=1).mean())


BRIER = Metric(
    "brier",
    "Brier score",
    "classification",
    higher_is_better=False,
    function=brier_score,
    percent=False,
    about="Squared distance of the probabilities from the truth.",
)
