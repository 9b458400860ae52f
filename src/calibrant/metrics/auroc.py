"""Area under the ROC curve."""

import math

import numpy as np
from numpy.typing import ArrayLike

from calibrant.metrics.base import Metric, check_detection
from calibrant.metrics.ordering import tally


def auroc(confidence: ArrayLike, positive: ArrayLike) -> float:
    """AUROC = P(c⁺ < c⁻) + ½·P(c⁺ = c⁻) for a random positive and a random negative text.

    Positive is what should be found (misclassified, OOD); low confidence is the evidence for it.

    Args:
        confidence: (n,), any real number.
        positive: (n,) bool.

    Returns:
        NaN without positives or without negatives.

    >>> auroc([0.9, 0.8, 0.3], [False, False, True])
    1.0
    """
    c, flags = check_detection(confidence, positive, probability=False)
    if flags.all() or not flags.any():
        return math.nan
    positives, negatives = tally(c, flags)
    below = np.cumsum(positives) - positives / 2  # positives below each value, half of those at it
    return float((negatives * below).sum() / (positives.sum() * negatives.sum()))


def auroc_error(area: float, positives: int, negatives: int) -> float:
    """The standard error of an AUROC over the draw of the texts (Hanley and McNeil, 1982).

    For m positives and n negatives; exact where −c is exponential, and close where it is not:

        SE² = [A·(1 − A) + (m − 1)·(Q₁ − A²) + (n − 1)·(Q₂ − A²)] / (m·n),  Q₁ = A/(2 − A),  Q₂ = 2A²/(1 + A)

    >>> round(auroc_error(0.893, 51, 58), 4)  # the example of the paper
    0.0325
    """
    q1, q2 = area / (2 - area), 2 * area**2 / (1 + area)
    pairs = area * (1 - area) + (positives - 1) * (q1 - area**2) + (negatives - 1) * (q2 - area**2)
    return math.sqrt(pairs / (positives * negatives))


AUROC = Metric(
    "auroc",
    "AUROC",
    "detection",
    higher_is_better=True,
    function=auroc,
    ranks=True,
    about="How often, of two texts, the less sure is the one to find.",
)
