"""How much a text of each class counts in training."""

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from calibrant.registry import pick

BALANCED = "balanced"


def class_weights(
    chosen: str | Mapping[str, float], labels: Sequence[str], names: Sequence[str]
) -> NDArray[np.float64]:
    """A weight for each class, (K,), whose mean over the training texts is 1: only their ratios matter.

    Args:
        chosen: weights by label, 1 where there is none; or "balanced", with which each class counts alike as
            a whole: n / (K · n_k), as in scikit-learn.
        labels: of the training texts, (n,).
        names: of the classes, (K,).

    >>> class_weights("balanced", ["ham", "ham", "ham", "spam"], ["ham", "spam"])
    array([0.66666667, 2.        ])
    """
    counted = Counter(labels)
    weights: NDArray[np.float64]
    count = np.array([counted[name] for name in names])
    if chosen == BALANCED:
        weights = 1 / np.maximum(count, 1)
    else:
        assert not isinstance(chosen, str)
        for label in chosen:
            pick("label in --class-weights", label, dict.fromkeys(names))
        weights = np.array([chosen.get(name, 1.0) for name in names])
    weights *= count.sum() / (weights @ count)
    return weights
