"""Negative log-likelihood."""

import numpy as np
from numpy.typing import ArrayLike

from calibrant.metrics.base import Metric, check_classification


def negative_log_likelihood(probabilities: ArrayLike, labels: ArrayLike) -> float:
    """NLL = −1/n · Σ_i log p_i[y_i], in nats.

    A probability of 0 counts as the smallest positive float of its precision, so that one text cannot
    make the mean infinite (103 nats in float32, 744 in float64).

    Args:
        probabilities: (n, K), rows sum to 1.
        labels: (n,) true class ids.

    >>> round(negative_log_likelihood([[0.5, 0.5], [1.0, 0.0]], [0, 0]), 4)
    0.3466
    """
    p, y = check_classification(probabilities, labels)
    smallest = np.nextafter(p.dtype.type(0), p.dtype.type(1))
    of_truth = np.maximum(p[np.arange(len(y)), y], smallest)
    return float(
        np.log(of_truth.astype(np.float64)).mean() * -1 + 0.0
    )  # + 0.0: no "-0.0" when all is certain


NLL = Metric(
    "nll",
    "NLL",
    "classification",
    higher_is_better=False,
    function=negative_log_likelihood,
    percent=False,
    about="How surprised the model is by the true labels.",
)
