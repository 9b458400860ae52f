"""What a metric is, and the one place where its inputs are checked.

n texts, K classes. Two kinds of metric exist: *classification* sees class probabilities (n, K) and true
classes (n,); *detection* sees a confidence (n,) and which texts are positive (n,), that is misclassified
or out of distribution, with LOW confidence as the evidence for positive.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibrant.errors import UserError

Floats = NDArray[np.floating]
Integers = NDArray[np.integer]
Flags = NDArray[np.bool_]

# How far a row may be from summing to 1. Ample for a softmax in float32, whatever the model runs in; one
# rounded to bfloat16 can be off by 3e-3, which is too coarse to measure calibration with.
SUM_TOLERANCE = 1e-3
ROUNDING = 1e-6  # how far averaging or rescaling may push a probability out of [0, 1]; it is clipped back


@dataclass(frozen=True)
class Metric:
    """One number about predictions, and which way it should go."""

    name: str  # "ece": the key in JSON
    title: str  # "ECE": the row of a table
    kind: Literal["classification", "detection"]
    higher_is_better: bool
    function: Callable[[Any, Any], float]  # (probabilities, labels) or (confidence, positive), by kind
    ranks: bool = False  # of detection: whether only the order counts, so that any real number may be ranked
    percent: bool = True  # False where a table should not show 100 times the value
    about: str = ""  # what it says, in one line of plain words

    @property
    def arrow(self) -> str:
        """To where it is better."""
        return "↑" if self.higher_is_better else "↓"


def check_classification(probabilities: ArrayLike, labels: ArrayLike) -> tuple[Floats, Integers]:
    """Probabilities (n, K) in their own float precision and labels (n,), or a ``UserError``."""
    p = check_probabilities(probabilities)
    y = _array("labels", labels)
    n, classes = p.shape
    if y.shape != (n,):
        raise UserError(f"labels must have shape ({n},), one per row of probabilities, got {y.shape}.")
    if y.dtype.kind not in "iu":
        raise UserError(f"labels must be integer class ids, got dtype {y.dtype}; map names to ids first.")
    if y.min() < 0 or y.max() >= classes:
        raise UserError(
            f"labels must lie in 0..{classes - 1} for {classes} classes, got {y.min()}..{y.max()}; "
            "give one column of probabilities per class."
        )
    return p, y


def check_probabilities(probabilities: ArrayLike) -> Floats:
    """Probabilities (n, K) in their own float precision, or a ``UserError``."""
    p = _floats("probabilities", probabilities)
    if p.ndim != 2 or p.size == 0:
        raise UserError(f"probabilities must have shape (n, K) with n ≥ 1 and K ≥ 1, got {p.shape}.")
    p = _in_unit_interval("probabilities", p, hint="apply a softmax to logits first")
    worst = float(np.abs(p @ np.ones(p.shape[1]) - 1).max())  # a product: sums over a short axis are slow
    if worst > SUM_TOLERANCE:
        raise UserError(
            f"Each row of probabilities must sum to 1 within {SUM_TOLERANCE}, one is off by {worst:.4g}; "
            "apply a softmax, in float32, over the classes first."
        )
    return p


def check_detection(
    confidence: ArrayLike, positive: ArrayLike, *, probability: bool = True
) -> tuple[Floats, Flags]:
    """Confidence (n,) and positive (n,) bool, or a ``UserError``.

    ``probability=False`` allows any real confidence: rankings need no scale, thresholds do.
    """
    c = check_confidence(confidence) if probability else _confidence(confidence)
    return c, check_flags("positive", positive, n=len(c))


def check_confidence(confidence: ArrayLike) -> Floats:
    """Confidence (n,) in [0, 1] in its own float precision, or a ``UserError``."""
    c = _confidence(confidence)
    return _in_unit_interval("confidence", c, hint="give the probability of the predicted class")


def check_flags(name: str, values: ArrayLike, n: int) -> Flags:
    """Booleans (n,), given as such or as 0 and 1, or a ``UserError``."""
    flags = _array(name, values)
    if flags.shape != (n,):
        raise UserError(f"{name} must have shape ({n},), one per confidence, got {flags.shape}.")
    if flags.dtype.kind == "b":
        return flags
    if flags.dtype.kind not in "iu" or not np.isin(flags, (0, 1)).all():
        raise UserError(f"{name} must be booleans (or 0 and 1), got dtype {flags.dtype}; compare first.")
    return flags.astype(np.bool_)


def _confidence(values: ArrayLike) -> Floats:
    c = _floats("confidence", values)
    if c.ndim != 1 or c.size == 0:
        raise UserError(f"confidence must have shape (n,) with n ≥ 1, got {c.shape}; one value per text.")
    return c


def _array(name: str, values: ArrayLike) -> NDArray[Any]:
    try:
        return np.asarray(values)
    except (ValueError, TypeError) as error:  # ragged lists; torch's bfloat16, which numpy does not know
        raise UserError(f"{name} must be an array of numbers, got one numpy cannot read: {error}.") from error


def _floats(name: str, values: ArrayLike) -> Floats:
    array = _array(name, values)
    if array.dtype.kind not in "fiub":
        raise UserError(f"{name} must be an array of numbers, got dtype {array.dtype}; convert it to float.")
    # A float keeps its precision: 0.9 in float32 is then equal to a threshold of 0.9, not below it.
    floats: Floats = array if array.dtype.kind == "f" else array.astype(np.float64)
    if not np.isfinite(floats).all():
        raise UserError(
            f"{name} must be finite, got {np.count_nonzero(~np.isfinite(floats))} NaN or infinite values; "
            "look for a diverged model or an overflow in half precision."
        )
    return floats


def _in_unit_interval(name: str, values: Floats, hint: str) -> Floats:
    low, high = float(values.min()), float(values.max())
    if low < -ROUNDING or high > 1 + ROUNDING:
        raise UserError(f"{name} must lie in [0, 1], got values in [{low:.4g}, {high:.4g}]; {hint}.")
    return values if low >= 0 and high <= 1 else np.clip(values, 0, 1)


def unfamiliar_among_all(test: Floats, ood: Floats) -> tuple[Floats, Flags]:
    """The confidences (or scores) of all texts, and which of them are to be found.

    >>> unfamiliar_among_all(np.array([0.9, 0.8]), np.array([0.3]))
    (array([0.9, 0.8, 0.3]), array([False, False,  True]))
    """
    both = np.concatenate([test, ood])
    return both, np.arange(len(both)) >= len(test)
