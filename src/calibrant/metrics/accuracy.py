"""Accuracy."""

from numpy.typing import ArrayLike

from calibrant.metrics.base import Metric, check_classification


def accuracy(probabilities: ArrayLike, labels: ArrayLike) -> float:
    """Share of texts whose most probable class is the true one: 1/n · Σ_i 1[argmax_k p_ik = y_i].

    Args:
        probabilities: (n, K), rows sum to 1. Of equally probable classes the first is the prediction.
        labels: (n,) true class ids.

    >>> accuracy([[0.9, 0.1], [0.4, 0.6]], [0, 0])
    0.5
    """
    p, y = check_classification(probabilities, labels)
    return float((p.argmax(axis=1) == y).mean())


ACCURACY = Metric(
    "accuracy",
    "Accuracy",
    "classification",
    higher_is_better=True,
    function=accuracy,
    about="The share of texts whose label is right.",
)
