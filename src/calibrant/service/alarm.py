"""Has the text become less familiar? The evidence of ``decide.follow``, of all texts that one model answers.

It may be looked at after every text: text like dev's raises the alarm with a probability of at most the
level, ever. What orders the texts is familiarity; of a run without it, the confidence beside that on dev.
"""

import itertools
import math
from collections.abc import Iterable

import numpy as np

from calibrant.decide.follow import count, log_evidence, place
from calibrant.service.model import Model, Said

LEVEL = 0.01  # as `calibrant monitor` has it


class Alarm:
    """Of the texts that one model answers."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._by_familiarity = model.unfamiliar_below is not None
        self._then = model.dev_familiarity() if self._by_familiarity else model.dev_confidence()
        self._counts = None if self._then is None else count(np.array([], dtype=int), len(self._then))
        self._seeds = itertools.count()
        self._most = 0.0  # log E, at its highest

    def observe(self, said: Iterable[Said]) -> None:
        """Take note of what this model answered; the one before it may still be at a batch."""
        own = [each.decision for each in said if each.model.digest == self._model.digest]
        if self._then is None or self._counts is None or not own:
            return
        now = [each.familiarity if self._by_familiarity else each.confidence for each in own]
        n = len(self._then)
        groups = place(self._then, np.array(now, dtype=float), seed=next(self._seeds))
        self._counts = self._counts + count(groups, n)
        self._most = max(self._most, float(log_evidence(self._counts, n)))

    @property
    def p(self) -> float:
        """The chance that text like dev's would ever look as strange, at most; NaN where dev is not known."""
        return math.nan if self._then is None else math.exp(-self._most)

    @property
    def rings(self) -> float:
        """1 or 0; NaN where dev is not known."""
        return math.nan if self._then is None else float(self.p <= LEVEL)
