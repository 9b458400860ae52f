"""Risk–coverage: the error rate when only the most confident part is answered."""

import numpy as np
from numpy.typing import ArrayLike

from calibrant.metrics.base import Flags, Floats, Metric, check_classification


def risk_coverage(probabilities: ArrayLike, labels: ArrayLike) -> tuple[Floats, Floats]:
    """Coverages k/n (n,) and the error rate among the k most confident texts (n,).

    Texts of equal confidence come in no particular order; the risk is its mean over all their orders.

    >>> risk_coverage([[0.9, 0.1], [0.6, 0.4]], [0, 1])[1].tolist()
    [0.0, 0.5]
    """
    p, y = check_classification(probabilities, labels)
    return np.arange(1, len(y) + 1) / len(y), risk_by_coverage(p.max(axis=1), p.argmax(axis=1) != y)


def risk_by_coverage(confidence: Floats, wrong: Flags) -> Floats:
    """The same risks of confidence (n,) and which texts are misclassified (n,)."""
    _, group, size = np.unique(-confidence, return_inverse=True, return_counts=True)  # most confident first
    error_rate = np.bincount(group, weights=wrong) / size
    return np.asarray(np.cumsum(np.repeat(error_rate, size)) / np.arange(1, len(wrong) + 1))


def coverage_at(risk: float, probabilities: ArrayLike, labels: ArrayLike) -> float:
    """The largest share that could be answered, by a threshold on the confidence, with at most this risk.

    In hindsight: texts of equal confidence are answered together, and nothing is promised for other texts.

    >>> coverage_at(0.1, [[0.9, 0.1], [0.8, 0.2], [0.6, 0.4]], [0, 0, 1])
    0.6666666666666666
    """
    p, y = check_classification(probabilities, labels)
    confidence, wrong = p.max(axis=1), p.argmax(axis=1) != y
    _, group, size = np.unique(-confidence, return_inverse=True, return_counts=True)
    answered = np.cumsum(size)
    kept = np.cumsum(np.bincount(group, weights=wrong)) <= risk * answered
    return float(answered[kept].max(initial=0) / len(y))


def aurc(probabilities: ArrayLike, labels: ArrayLike) -> float:
    """AURC = 1/n · Σ_{k=1..n} (error rate among the k most confident texts).

    Args:
        probabilities: (n, K), rows sum to 1.
        labels: (n,) true class ids.

    >>> aurc([[0.9, 0.1], [0.6, 0.4]], [0, 1])
    0.25
    """
    return float(risk_coverage(probabilities, labels)[1].mean())


AURC = Metric(
    "aurc",
    "AURC",
    "classification",
    higher_is_better=False,
    function=aurc,
    about="Mean error of the answered texts, surest first.",
)
