"""Risk–coverage: the error rate when only the most confident part is answered."""

import numpy as np
from numpy.typing import ArrayLike

from calibrant.metrics.base import Floats, Metric, check_classification


def risk_coverage(probabilities: ArrayLike, labels: ArrayLike) -> tuple[Floats, Floats]:
    """Coverages k/n (n,) and the error rate among the k most confident texts (n,).

    Texts of equal confidence come in no particular order; the risk is its mean over all their orders.

    >>> risk_coverage([[0.9, 0.1], [0.6, 0.4]], [0, 1])[1].tolist()
    [0.0, 0.5]
    """
    p, y = check_classification(probabilities, labels)
    confidence, wrong = p.max(axis=1), p.argmax(axis=1) != y
    _, group, size = np.unique(-confidence, return_inverse=True, return_counts=True)  # most confident first
    error_rate = np.bincount(group, weights=wrong) / size
    k = np.arange(1, len(y) + 1)
    return k / len(y), np.cumsum(np.repeat(error_rate, size)) / k


def aurc(probabilities: ArrayLike, labels: ArrayLike) -> float:
    """AURC = 1/n · Σ_{k=1..n} (error rate among the k most confident texts).

    Args:
        probabilities: (n, K), rows sum to 1.
        labels: (n,) true class ids.

    >>> aurc([[0.9, 0.1], [0.6, 0.4]], [0, 1])
    0.25
    """
    return float(risk_coverage(probabilities, labels)[1].mean())


AURC = Metric("aurc", "AURC", "classification", higher_is_better=False, function=aurc)
