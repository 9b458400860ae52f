"""What a metric refuses, and with which words; one helper checks for all of them."""

import subprocess
import sys

import numpy as np
import pytest

from calibrant.errors import UserError
from calibrant.metrics import (
    Metric,
    accuracy,
    auroc,
    expected_calibration_error,
    metrics,
    nbaucc,
    reliability,
)

CLASSIFICATION = [m for m in metrics().values() if m.kind == "classification"]
DETECTION = [m for m in metrics().values() if m.kind == "detection"]
OK = [[0.9, 0.1], [0.2, 0.8]]

BAD_CLASSIFICATION = {
    "one dimension": (
        [0.5, 0.5],
        [0, 1],
        r"probabilities must have shape \(n, K\) with n ≥ 1 .* got \(2,\)\.",
    ),
    "no texts": (np.zeros((0, 3)), [], r"probabilities must have shape \(n, K\) .* got \(0, 3\)\."),
    "ragged": (
        [[0.5, 0.5], [1.0]],
        [0, 1],
        r"probabilities must be an array of numbers, got one numpy cannot read",
    ),
    "words": (
        [["a", "b"]],
        [0],
        r"probabilities must be an array of numbers, got dtype <U1; convert it to float\.",
    ),
    "nan": ([[0.5, np.nan]], [0], r"probabilities must be finite, got 1 NaN or infinite values; look for"),
    "infinite": (
        [[np.inf, 0.0]],
        [0],
        r"probabilities must be finite, got 1 NaN or infinite values; look for",
    ),
    "logits": (
        [[3.0, -2.0]],
        [0],
        r"probabilities must lie in \[0, 1\], got values in \[-2, 3\]; apply a softmax",
    ),
    "sum": (
        [[0.9, 0.1], [0.5, 0.4]],
        [0, 1],
        r"must sum to 1 within 0\.001, one is off by 0\.1; apply a softmax",
    ),
    "labels' shape": (OK, [0], r"labels must have shape \(2,\), one per row of probabilities, got \(1,\)\."),
    "one-hot labels": (OK, [[1, 0], [0, 1]], r"labels must have shape \(2,\), one per row .* got \(2, 2\)\."),
    "float labels": (
        OK,
        [0.0, 1.0],
        r"labels must be integer class ids, got dtype float64; map names to ids",
    ),
    "named labels": (
        OK,
        ["a", "b"],
        r"labels must be integer class ids, got dtype <U1; map names to ids first\.",
    ),
    "label too large": (OK, [0, 2], r"labels must lie in 0\.\.1 for 2 classes, got 0\.\.2; give one column"),
    "negative label": (OK, [-1, 0], r"labels must lie in 0\.\.1 for 2 classes, got -1\.\.0; give one column"),
}
BAD_DETECTION = {
    "no texts": ([], [], r"confidence must have shape \(n,\) with n ≥ 1, got \(0,\); one value per text\."),
    "two dimensions": ([[0.1, 0.9]], [True], r"confidence must have shape \(n,\) with n ≥ 1, got \(1, 2\)"),
    "nan": (
        [0.1, np.nan],
        [True, False],
        r"confidence must be finite, got 1 NaN or infinite values; look for",
    ),
    "positive's shape": (
        [0.1, 0.9],
        [True],
        r"positive must have shape \(2,\), one per confidence, got \(1,\)\.",
    ),
    "positive's values": (
        [0.1, 0.9],
        [1, 2],
        r"positive must be booleans \(or 0 and 1\), got dtype int64; compare",
    ),
    "positive's type": (
        [0.1, 0.9],
        [0.0, 1.0],
        r"positive must be booleans \(or 0 and 1\), got dtype float64",
    ),
}


@pytest.mark.parametrize("case", BAD_CLASSIFICATION)
@pytest.mark.parametrize("metric", CLASSIFICATION, ids=lambda m: m.name)
def test_classification_metrics_refuse(metric: Metric, case: str):
    probabilities, labels, message = BAD_CLASSIFICATION[case]
    with pytest.raises(UserError, match=message):
        metric.function(probabilities, labels)


@pytest.mark.parametrize("case", BAD_DETECTION)
@pytest.mark.parametrize("metric", DETECTION, ids=lambda m: m.name)
def test_detection_metrics_refuse(metric: Metric, case: str):
    confidence, positive, message = BAD_DETECTION[case]
    with pytest.raises(UserError, match=message):
        metric.function(confidence, positive)


def test_options_are_checked():
    with pytest.raises(UserError, match=r"bins must be at least 1, got 0\."):
        expected_calibration_error(OK, [0, 1], bins=0)
    with pytest.raises(UserError, match=r'strategy must be "width" or "mass", got \'size\'\.'):
        expected_calibration_error(OK, [0, 1], strategy="size")
    with pytest.raises(UserError, match=r"correct must have shape \(2,\), one per confidence, got \(1,\)\."):
        reliability([0.5, 0.6], [True])
    for tau in (0, -0.5, 1.5, float("nan")):
        with pytest.raises(UserError, match=rf"tau must lie in \(0, 1\], got {tau}\."):
            nbaucc([0.5], [True], tau=tau)
    with pytest.raises(UserError, match=r"steps must be at least 1, got 0\."):
        nbaucc([0.5], [True], steps=0)


def test_a_ranking_needs_no_scale_but_a_threshold_does():
    energy, positive = [-3.0, 12.0], [True, False]
    assert auroc(energy, positive) == 1.0
    with pytest.raises(
        UserError, match=r"confidence must lie in \[0, 1\], got values in \[-3, 12\]; give the"
    ):
        nbaucc(energy, positive)


def test_float32_noise_passes():
    logits = np.random.default_rng(0).normal(size=(200, 134)).astype(np.float32) * 5
    p = np.exp(logits)
    p /= p.sum(axis=1, keepdims=True)
    assert 0 <= accuracy(p, np.zeros(200, dtype=int)) <= 1
    just_above_one = [[1 + 1e-9, 0.0]]
    assert expected_calibration_error(just_above_one, [0]) == 0.0


def test_registry_holds_what_the_design_lists():
    assert {m.name for m in CLASSIFICATION} == {"accuracy", "ece", "nll", "brier", "aurc"}
    assert {m.name for m in DETECTION} == {
        "nbaucc_0.5",
        "nbaucc_0.7",
        "nbaucc_1.0",
        "auroc",
        "aupr",
        "fpr95",
    }
    lower = {m.name for m in metrics().values() if not m.higher_is_better}
    assert lower == {"ece", "nll", "brier", "aurc", "fpr95"}


def test_the_import_is_light():
    code = (
        "import sys, calibrant.metrics; calibrant.metrics.metrics(); "
        "print([name for name in ('torch', 'sklearn', 'matplotlib') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
