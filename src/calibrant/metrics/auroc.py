"""Area under the ROC curve."""

import math

from numpy.typing import ArrayLike

from calibrant.metrics.base import Metric, check_detection


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
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(flags, -c))


AUROC = Metric("auroc", "AUROC", "detection", higher_is_better=True, function=auroc, ranks=True)
