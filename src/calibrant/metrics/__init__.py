"""One number each: numpy in, a float out. A new file with a ``Metric`` in it is a new metric everywhere."""

from collections.abc import Mapping

from calibrant.metrics.accuracy import accuracy
from calibrant.metrics.aupr import aupr
from calibrant.metrics.auroc import auroc
from calibrant.metrics.base import Metric
from calibrant.metrics.brier import brier_score
from calibrant.metrics.ece import Reliability, expected_calibration_error, reliability
from calibrant.metrics.fpr95 import fpr95
from calibrant.metrics.nbaucc import f1_curve, nbaucc, thresholds
from calibrant.metrics.nll import negative_log_likelihood
from calibrant.metrics.risk_coverage import aurc, risk_coverage
from calibrant.registry import discover

__all__ = [
    "Metric",
    "Reliability",
    "accuracy",
    "aupr",
    "aurc",
    "auroc",
    "brier_score",
    "expected_calibration_error",
    "f1_curve",
    "fpr95",
    "metrics",
    "nbaucc",
    "negative_log_likelihood",
    "reliability",
    "risk_coverage",
    "thresholds",
]


def metrics() -> Mapping[str, Metric]:
    """Every metric by name."""
    return discover("calibrant.metrics", Metric, plugins="calibrant.metrics")
