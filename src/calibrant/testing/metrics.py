"""What a metric must keep to."""

import numpy as np

from calibrant.metrics.base import Metric
from calibrant.testing.expect import expect


def check_metric(metric: Metric) -> None:
    """It has names, gives one number whatever the order of the texts, and its direction is true.

    >>> from calibrant.metrics import metrics
    >>> check_metric(metrics()["ece"])
    """
    expect(isinstance(metric, Metric), f"{metric!r} is no Metric")
    expect(metric.name and metric.title, f"{metric!r}: name and title must not be empty")
    expect(isinstance(metric.higher_is_better, bool), f"{metric.name}: higher_is_better must be a bool")
    known = ("classification", "detection")
    expect(metric.kind in known, f"{metric.name}: kind must be one of {known}, got {metric.kind!r}")
    expect(not (metric.ranks and metric.kind != "detection"), f"{metric.name}: only detection ranks")

    classification = metric.kind == "classification"
    good, bad, truth = _classification() if classification else _detection()
    value = metric.function(good, truth)
    expect(isinstance(value, float) and np.isfinite(value), f"{metric.name}: not a finite float: {value!r}")
    order = np.random.default_rng(1).permutation(len(truth))
    again = metric.function(good[order], truth[order])
    expect(np.isclose(value, again, atol=1e-9), f"{metric.name} depends on the order: {value}, {again}")
    worse = metric.function(bad, truth)
    better = value > worse if metric.higher_is_better else value < worse
    way = "higher" if metric.higher_is_better else "lower"
    expect(better, f"{metric.name}: {way} should be better, but good answers give {value}, bad ones {worse}")


def _classification() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Nearly all right and sure of it; nearly all wrong and as sure."""
    rng = np.random.default_rng(0)
    truth = np.arange(60) % 3
    sure = np.linspace(0.9, 0.99, 60)[rng.permutation(60)]
    said = truth.copy()
    said[sure < 0.905] = (said[sure < 0.905] + 1) % 3  # the least sure are wrong
    return _rows(said, sure), _rows((said + 1) % 3, sure), truth


def _rows(said: np.ndarray, sure: np.ndarray) -> np.ndarray:
    return np.where(np.eye(3)[said] == 1, sure[:, None], (1 - sure[:, None]) / 2)


def _detection() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Positives are those of low confidence; those of high."""
    confidence = np.linspace(0.01, 0.99, 60)
    return confidence, 1 - confidence, np.arange(60) < 20
