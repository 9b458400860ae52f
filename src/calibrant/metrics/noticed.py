"""Unfamiliar text that is noticed, at the price of a stated share of false alarms."""

import numpy as np
from numpy.typing import ArrayLike

FALSE_ALARMS = 0.05


def noticed(familiar: ArrayLike, unfamiliar: ArrayLike, false_alarms: float = FALSE_ALARMS) -> float:
    """Share of unfamiliar texts that lie below the ⌊α·n⌋ + 1 smallest of the n familiar ones.

    At most a share α of the familiar texts lies there, so this is the detection rate (TPR) at α.

    Args:
        familiar: (n,) familiarity, or confidence, of familiar texts.
        unfamiliar: (m,) the same of unfamiliar ones.
        false_alarms: α.

    >>> noticed([0.1, 0.5, 0.6, 0.9], [0.05, 0.2, 0.55, 0.7], false_alarms=0.25)
    0.5
    """
    ordered = np.sort(np.asarray(familiar))
    limit = ordered[min(int(false_alarms * len(ordered) + 1e-9), len(ordered) - 1)]  # 0.05 · 20 is below 1
    return float((np.asarray(unfamiliar) < limit).mean())
