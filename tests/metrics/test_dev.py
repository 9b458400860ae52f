import numpy as np
import pytest

from calibrant import metrics as m
from calibrant.metrics.dev import dev_figures


def test_figures_are_those_of_the_metrics():
    rng = np.random.default_rng(0)
    p, y = rng.dirichlet(np.ones(3), size=50), rng.integers(3, size=50)
    assert dev_figures(p, y) == {
        "accuracy": m.accuracy(p, y),
        "confidence": pytest.approx(p.max(axis=1).mean()),
        "nll": m.negative_log_likelihood(p, y),
        "ece": m.expected_calibration_error(p, y),
    }
    assert {type(value) for value in dev_figures(p.astype(np.float32), y).values()} == {float}
