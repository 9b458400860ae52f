"""From predictions to numbers: what ``calibrant evaluate`` prints."""

import math
from typing import Any

import numpy as np

from calibrant.errors import UserError
from calibrant.metrics import metrics
from calibrant.metrics.base import check_classification, check_probabilities
from calibrant.types import Prediction


def evaluate(test: Prediction, ood: Prediction | None = None) -> dict[str, Any]:
    """Every metric of the registry, as a JSON object.

    Args:
        test: predictions on familiar text, with labels.
        ood: predictions on unfamiliar text, if there is any; its labels are not looked at.

    Returns:
        Classification metrics by name; under ``misclassification`` and ``ood`` the detection metrics of
        finding the misclassified among ``test`` and the unfamiliar among ``test`` and ``ood``; counts and
        mean confidences. What is undefined (no error to find, no OOD text) is None.

    >>> test = Prediction(np.array([[0.9, 0.1], [0.6, 0.4]]), labels=np.array([0, 1]))
    >>> numbers = evaluate(test)
    >>> numbers["accuracy"], numbers["misclassification"]["auroc"], numbers["ood"]
    (0.5, 1.0, None)
    """
    if test.labels is None:
        raise UserError("Evaluation needs the true labels of the test texts, got none; add a label column.")
    check_classification(test.probabilities, test.labels)
    numbers: dict[str, Any] = {
        metric.name: _number(metric.function(test.probabilities, test.labels))
        for metric in metrics().values()
        if metric.kind == "classification"
    }
    numbers["misclassification"] = _detection(test.confidence, test.predicted != test.labels)
    numbers["ood"] = None
    numbers["n_test"], numbers["n_ood"] = len(test), 0
    numbers["mean_confidence_test"] = _mean(test.confidence)
    numbers["mean_confidence_ood"] = None
    if ood is not None:
        check_probabilities(ood.probabilities)
        confidence = np.concatenate([test.confidence, ood.confidence])
        unfamiliar = np.arange(len(confidence)) >= len(test)
        numbers["ood"] = _detection(confidence, unfamiliar)
        numbers["n_ood"] = len(ood)
        numbers["mean_confidence_ood"] = _mean(ood.confidence)
    return numbers


def _detection(confidence: Any, positive: Any) -> dict[str, float | None]:
    return {
        metric.name: _number(metric.function(confidence, positive))
        for metric in metrics().values()
        if metric.kind == "detection"
    }


def _mean(confidence: Any) -> float:
    return float(confidence.mean(dtype=np.float64))


def _number(value: float) -> float | None:
    """JSON has no NaN."""
    return None if math.isnan(value) else float(value)
