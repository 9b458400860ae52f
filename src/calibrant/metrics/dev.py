"""What is looked at on dev: the same few figures wherever training, calibration or a search asks."""

import numpy as np
from numpy.typing import NDArray

from calibrant.metrics.accuracy import accuracy
from calibrant.metrics.ece import expected_calibration_error
from calibrant.metrics.nll import negative_log_likelihood


def dev_figures(probabilities: NDArray[np.floating], labels: NDArray[np.integer]) -> dict[str, float]:
    """Accuracy, mean confidence, NLL and ECE of probabilities (n, K) with the true classes (n,)."""
    return {
        "accuracy": accuracy(probabilities, labels),
        "confidence": float(probabilities.max(axis=1).mean(dtype=np.float64)),
        "nll": negative_log_likelihood(probabilities, labels),
        "ece": expected_calibration_error(probabilities, labels),
    }
