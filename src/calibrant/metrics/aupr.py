"""Area under the precision–recall curve."""

import math

import numpy as np
from numpy.typing import ArrayLike

from calibrant.metrics.base import Metric, check_detection
from calibrant.metrics.ordering import tally


def aupr(confidence: ArrayLike, positive: ArrayLike) -> float:
    """AUPR = Σ_j (R_j − R_{j−1})·P_j over the distinct confidences, from the lowest up (average precision).

    Positive is what should be found (misclassified, OOD); low confidence is the evidence for it. The
    paper's worked example prints 0.417 for two models that separate perfectly: that takes HIGH
    confidence as the evidence. The right way up gives 1.

    Args:
        confidence: (n,), any real number.
        positive: (n,) bool.

    Returns:
        NaN without positives or without negatives.

    >>> aupr([0.9, 0.95, 0.8, 0.85], [False, False, True, True])
    1.0
    """
    c, flags = check_detection(confidence, positive, probability=False)
    if flags.all() or not flags.any():
        return math.nan
    positives, negatives = tally(c, flags)
    precision = np.cumsum(positives) / np.cumsum(positives + negatives)
    return float((positives * precision).sum() / positives.sum())


AUPR = Metric(
    "aupr",
    "AUPR",
    "detection",
    higher_is_better=True,
    function=aupr,
    ranks=True,
    about="How many of the least sure are what should be found.",
)
