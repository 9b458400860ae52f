"""Normalized bounded area under the calibration curve: can a threshold on the confidence find the errors?"""

from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from calibrant.errors import UserError
from calibrant.metrics.base import Floats, Metric, check_detection
from calibrant.metrics.ordering import count_passed


def f1_curve(confidence: ArrayLike, positive: ArrayLike, thresholds: ArrayLike) -> Floats:
    """F1(t) = 2·TP / (detected + positives) of detecting the positives by confidence < t.

    0 where no positive is detected, and where there is none.

    Args:
        confidence: (n,) in [0, 1].
        positive: (n,) bool, True for misclassified or OOD texts.
        thresholds: (m,).

    Returns:
        (m,), one F1 per threshold.

    >>> f1_curve([0.2, 0.4, 0.9], [True, False, False], [0.2, 0.3, 1.0]).tolist()
    [0.0, 1.0, 0.5]
    """
    c, flags = check_detection(confidence, positive)
    # Compared in the confidence's own precision, else 0.9 in float32 would be below a threshold of 0.9.
    t, position = np.unique(np.asarray(thresholds, dtype=c.dtype), return_inverse=True)
    # Only the thresholds are sorted: a text is detected by those above the number t ≤ c that it passed.
    passed = count_passed(t, c, side="right")
    detected = np.cumsum(np.bincount(passed, minlength=len(t)))[position]
    true_positives = np.cumsum(np.bincount(passed[flags], minlength=len(t)))[position]
    # Nothing detected and nothing to detect is 0/0; F1 is 0 there, as wherever TP is.
    return np.asarray(2 * true_positives / np.maximum(detected + np.count_nonzero(flags), 1))


def thresholds(tau: float = 1.0, steps: int = 50) -> Floats:
    """The M = ``steps`` thresholds τ·i/M of NBAUCC_τ: on them it is the mean of the curve.

    >>> thresholds(0.5, steps=5).tolist()
    [0.1, 0.2, 0.3, 0.4, 0.5]
    """
    if not 0 < tau <= 1:
        raise UserError(f"tau must lie in (0, 1], got {tau}.")
    if steps < 1:
        raise UserError(f"steps must be at least 1, got {steps}.")
    # From integers: the threshold 0.15 of τ = 0.5 then equals a confidence of 0.15, and does not detect it.
    return tau * np.arange(1, steps + 1) / steps


def nbaucc(confidence: ArrayLike, positive: ArrayLike, tau: float = 0.5, steps: int = 50) -> float:
    """NBAUCC_τ = 1/M · Σ_{i=1..M} F1(τ·i/M), with M = ``steps``.

    The values of the paper's worked example (appendix, "NBAUCC vs. AUROC/AUPR") are not those of this
    definition. All four come from the one grid 0, 0.02, …, 0.98 as 0.02/τ · Σ_{t ≤ τ} F1(t): at τ = 1 the
    last threshold, 1 itself, is missing (0.845 and 0.145 instead of 0.859 and 0.159); at τ = 0.5 there
    are 25 steps instead of 50 (0.773 instead of 0.767). The authors' released script has the same grid
    with 1 included, so its NBAUCC_0.5 is ``steps=25`` here and its NBAUCC_1 is the default.

    Args:
        confidence: (n,) in [0, 1].
        positive: (n,) bool, True for misclassified or OOD texts; detected when confidence < threshold.
        tau: the largest threshold that still makes sense, in (0, 1].
        steps: M.

    >>> round(nbaucc([0.9, 0.95, 0.1, 0.15], [False, False, True, True], tau=0.5), 4)
    0.7667
    """
    return float(f1_curve(confidence, positive, thresholds(tau, steps)).mean())


def _bounded_by(tau: float) -> Metric:
    function = partial(nbaucc, tau=tau)
    about = f"How well a confidence below {tau} finds what it should."
    name, title = f"nbaucc_{tau}", f"NBAUCC {tau}"
    return Metric(name, title, "detection", higher_is_better=True, function=function, about=about)


NBAUCC_05 = _bounded_by(0.5)
NBAUCC_07 = _bounded_by(0.7)
NBAUCC_10 = _bounded_by(1.0)
