"""False alarms when 95 % of what should be found is found."""

import math

import numpy as np
from numpy.typing import ArrayLike

from calibrant.metrics.base import Metric, check_detection


def fpr95(confidence: ArrayLike, positive: ArrayLike) -> float:
    """FPR95 = share of negatives with c ≤ t, for the smallest t with at least 95 % of the positives at c ≤ t.

    Positive is what should be found (misclassified, OOD); low confidence is the evidence for it.

    Args:
        confidence: (n,), any real number.
        positive: (n,) bool.

    Returns:
        NaN without positives or without negatives.

    >>> fpr95([0.1, 0.2, 0.15, 0.9], [True, True, False, False])
    0.5
    """
    c, flags = check_detection(confidence, positive, probability=False)
    if flags.all() or not flags.any():
        return math.nan
    found = np.sort(c[flags])
    needed = -(-95 * len(found) // 100)  # ceil in integers: 0.95 · n in floats can land above a whole number
    return float((c[~flags] <= found[needed - 1]).mean())


FPR95 = Metric(
    "fpr95",
    "FPR95",
    "detection",
    higher_is_better=False,
    function=fpr95,
    ranks=True,
    about="False alarms when 95 % of what should be found is found.",
)
