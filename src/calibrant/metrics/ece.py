"""Expected calibration error, and the binning that it shares with the reliability diagram."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from calibrant.errors import UserError
from calibrant.metrics.base import (
    Floats,
    Integers,
    Metric,
    check_classification,
    check_confidence,
    check_flags,
)
from calibrant.metrics.ordering import count_passed

Strategy = Literal["width", "mass"]


@dataclass(frozen=True)
class Reliability:
    """What a reliability diagram shows; bin b holds the confidences in (edges[b], edges[b + 1]]."""

    count: Integers  # (bins,) texts in the bin
    confidence: Floats  # (bins,) their mean confidence, NaN in an empty bin
    accuracy: Floats  # (bins,) their accuracy, NaN in an empty bin
    edges: Floats  # (bins + 1,)

    @property
    def ece(self) -> float:
        """Σ_b |B_b| / n · |accuracy(B_b) − confidence(B_b)|."""
        share = self.count / self.count.sum()
        return float(total_gap(np.nan_to_num(share * (self.accuracy - self.confidence))))


def bin_gaps(index: Integers, residual: Floats, bins: int) -> Floats:
    """S_b = 1/n · Σ r_i over the texts of bin b, (bins,), with r = right − confidence, (n,)."""
    return np.asarray(np.bincount(index, weights=residual, minlength=bins) / len(index))


def total_gap(gaps: Floats) -> Any:
    """ECE = Σ_b |S_b|, of gaps (…, bins)."""
    return np.abs(gaps).sum(axis=-1)


def assign_bins(
    confidence: ArrayLike, bins: int = 15, strategy: Strategy = "width"
) -> tuple[Floats, Integers]:
    """Edges (bins + 1,), and the bin 0 ≤ b < bins of each confidence (n,).

    ``"width"``: bins of equal width. ``"mass"``: bins of equal count, up to ties, which stay together in
    the lower bin so that the order of the texts does not matter.
    """
    c = check_confidence(confidence)
    if bins < 1:
        raise UserError(f"bins must be at least 1, got {bins}.")
    if strategy == "width":
        # From integers, since widths multiplied or added up miss: 3 · 0.1 > 0.3, and fifteen fifteenths add
        # up to less than 1. In the confidence's own precision, since 1/15 in float32 is larger than 1/15.
        edges = np.arange(bins + 1, dtype=c.dtype) / c.dtype.type(bins)
    elif strategy == "mass":
        last = -(-np.arange(1, bins + 1) * len(c) // bins) - 1  # ceil(i·n/bins) − 1: the last text of bin i
        ordered = np.sort(c)
        edges = ordered[np.concatenate([[0], last])]
    else:
        raise UserError(f'strategy must be "width" or "mass", got {strategy!r}.')
    # side="left" makes the bins (lo, hi]; by the inner edges alone, confidence 0 falls into the first bin.
    return edges, count_passed(edges[1:-1], c, side="left")


def reliability(
    confidence: ArrayLike, correct: ArrayLike, bins: int = 15, strategy: Strategy = "width"
) -> Reliability:
    """Count, mean confidence and accuracy of each bin, from confidence (n,) and correct (n,) bool.

    >>> reliability([0.6, 0.8, 1.0], [True, False, True], bins=2).count.tolist()
    [0, 3]
    """
    edges, index = assign_bins(confidence, bins, strategy)
    flags = check_flags("correct", correct, n=len(index))
    count = np.bincount(index, minlength=bins)
    share = np.where(count > 0, count, np.nan)  # NaN, not 0: an empty bin has no accuracy
    return Reliability(
        count=count,
        confidence=np.bincount(index, weights=check_confidence(confidence), minlength=bins) / share,
        accuracy=np.bincount(index[flags], minlength=bins) / share,
        edges=edges,
    )


def expected_calibration_error(
    probabilities: ArrayLike, labels: ArrayLike, bins: int = 15, strategy: Strategy = "width"
) -> float:
    """ECE = Σ_b |B_b| / n · |accuracy(B_b) − confidence(B_b)|, over bins B_b of the confidence.

    Args:
        probabilities: (n, K), rows sum to 1.
        labels: (n,) true class ids.
        bins: how many bins.
        strategy: "width" for the bins (i/bins, (i + 1)/bins], "mass" for bins of equal count.

    >>> round(expected_calibration_error([[0.9, 0.1], [0.9, 0.1]], [0, 1]), 6)
    0.4
    """
    p, y = check_classification(probabilities, labels)
    predicted = p.argmax(axis=1)
    return reliability(p[np.arange(len(p)), predicted], predicted == y, bins, strategy).ece


ECE = Metric(
    "ece",
    "ECE",
    "classification",
    higher_is_better=False,
    function=expected_calibration_error,
    about="Mean distance between confidence and accuracy.",
)
