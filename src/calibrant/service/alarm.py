"""Has the text moved? The last confidences beside those on dev, by ``decide.drift``.

The test is made anew whenever Prometheus asks, on the last texts. So its level holds for one look and not
for all looks together: take the alarm as a reason to run ``calibrant monitor``.
"""

from collections import deque
from collections.abc import Iterable

import numpy as np

from calibrant.decide.drift import Shift, confidence_shift
from calibrant.service.model import Model, Said

LAST, ENOUGH = 1000, 100  # texts
LEVEL, TOLERANCE = 0.01, 0.1  # as `calibrant monitor` has them


class Alarm:
    """Of the texts that one model answers."""

    def __init__(self, model: Model) -> None:
        self._then = model.dev_confidence()
        self._now: deque[float] = deque(maxlen=LAST)

    def observe(self, said: Iterable[Said]) -> None:
        """Take note of what was answered."""
        self._now.extend(each.decision.confidence for each in said)

    def shift(self) -> Shift | None:
        """How far confidence has moved; None where dev's is not kept, or too few texts have come."""
        if self._then is None or len(self._now) < ENOUGH:
            return None
        return confidence_shift(self._then, np.array(self._now))

    @staticmethod
    def rings(shift: Shift) -> bool:
        """Whether that is worth an alarm."""
        return shift.beyond(TOLERANCE, LEVEL)
