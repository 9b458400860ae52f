"""From predictions to numbers: what ``calibrant evaluate`` prints."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import UserError
from calibrant.metrics import metrics
from calibrant.metrics.base import check_classification, check_probabilities, unfamiliar_among_all
from calibrant.types import Prediction


def measure(test: Prediction, ood: Prediction | None = None) -> dict[str, Any]:
    """Every metric of the registry, as a JSON object.

    Args:
        test: predictions on familiar text, with labels.
        ood: predictions on unfamiliar text, if there is any; its labels are not looked at.

    Returns:
        Classification metrics by name; under ``misclassification`` and ``ood`` the detection metrics of
        finding the misclassified among ``test`` and the unfamiliar among ``test`` and ``ood``; counts and
        mean confidences; ``abstention`` where a rule says what is answered. What is undefined (AUROC without
        an error to find, ``ood`` without such text) is None; NBAUCC is 0 where there is nothing to find.

    >>> test = Prediction(np.array([[0.9, 0.1], [0.6, 0.4]]), labels=np.array([0, 1]))
    >>> numbers = measure(test)
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
    wrong = test.predicted != test.labels
    numbers["misclassification"] = _detection(test.confidence, wrong)
    numbers["ood"] = None
    numbers["n_test"], numbers["n_ood"] = len(test), 0
    numbers["mean_confidence_test"] = _mean(test.confidence)
    numbers["mean_confidence_ood"] = None
    if ood is not None:
        check_probabilities(ood.probabilities)
        numbers["ood"] = _detection(*unfamiliar_among_all(test.confidence, ood.confidence))
        numbers["n_ood"] = len(ood)
        numbers["mean_confidence_ood"] = _mean(ood.confidence)
    if test.answered is not None:
        numbers["abstention"] = measure_rule(test.answered, wrong, None if ood is None else ood.answered)
    return numbers


def measure_scores(
    test: Mapping[str, NDArray[np.floating]],
    wrong: NDArray[np.bool_],
    ood: Mapping[str, NDArray[np.floating]] | None = None,
) -> dict[str, Any]:
    """How well scores of unfamiliarity, by name, rank what should be found.

    Args:
        test: of each score, its values (n,) on familiar text; larger means less familiar.
        wrong: (n,), which of those texts are misclassified.
        ood: the same scores on unfamiliar text, if there is any.

    Returns:
        Of each score ``misclassification`` and ``ood``, each with the metrics that need an order only.

    >>> measure_scores({"energy": np.array([-9.0, -2.0])}, np.array([False, True]))["energy"]["ood"]
    """
    ranked: dict[str, Any] = {}
    for name, score in test.items():
        ranked[name] = {"misclassification": _ranking(score, wrong), "ood": None}
        if ood is not None:
            ranked[name]["ood"] = _ranking(*unfamiliar_among_all(score, ood[name]))
    return ranked


def measure_rule(
    answered: NDArray[np.bool_], wrong: NDArray[np.bool_], ood_answered: NDArray[np.bool_] | None = None
) -> dict[str, float | None]:
    """What a rule of abstention does: the share of familiar text answered, the error rate there, and the
    share of unfamiliar text answered.

    >>> measure_rule(np.array([True, True, False, False]), np.array([False, True, True, False]))
    {'coverage': 0.5, 'risk': 0.5, 'ood_answered': None}
    """
    return {
        "coverage": float(answered.mean()),
        "risk": float(wrong[answered].mean()) if answered.any() else None,
        "ood_answered": None if ood_answered is None else float(ood_answered.mean()),
    }


def _ranking(score: NDArray[np.floating], positive: NDArray[np.bool_]) -> dict[str, float | None]:
    # A metric takes the confidence, which is high where the score is low.
    return {
        metric.name: _number(metric.function(-score, positive))
        for metric in metrics().values()
        if metric.ranks
    }


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
