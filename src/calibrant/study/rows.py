"""The rows of a study: the methods, one of them twice, and two that put the metrics in their place."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from calibrant.methods import METHODS, NO_CALIBRATOR, TEMPERATURE_THEN_FAMILIARITY
from calibrant.types import Prediction

ANSWERS = (NO_CALIBRATOR, "temperature", TEMPERATURE_THEN_FAMILIARITY)
"""The calibrators that every trained model is asked with: none is the model as it is."""

NEARLY = 1e-9
"""By how much the label is ahead of the other classes, where all should be equal."""


def constant(said: Prediction) -> Prediction:
    """p = 1/K for every class of every text. The labels stay.

    It knows nothing, and doubts everything. With π the share of positives

        NBAUCC_0.5 = (1 − 2/K) · 2π / (1 + π)

    since every threshold above 1/K finds all texts. What a method has beyond that, it has earned.
    """
    return _sure_of(said, np.zeros(len(said), dtype=bool))


def oracle(said: Prediction) -> Prediction:
    """Confidence 1 where the label is right, 1/K where it is wrong and on unfamiliar text. The labels stay.

    The most that confidence can do for these labels: it finds every mistake. Unfamiliar text and mistakes
    look the same to it, as they should. Its ECE is (1 − accuracy) / K and not 0: no label has less than 1/K.
    """
    return _sure_of(said, np.zeros(len(said), dtype=bool) if said.labels is None else said.correct)


def _sure_of(said: Prediction, sure: np.ndarray) -> Prediction:
    n, classes = said.probabilities.shape
    confidence = np.where(sure, 1.0, 1 / classes + NEARLY)
    p = np.repeat((1 - confidence) / (classes - 1), classes).reshape(n, classes)
    p[np.arange(n), said.predicted] = confidence
    return Prediction(p, said.labels)


@dataclass(frozen=True)
class Row:
    """One row."""

    name: str
    method: str  # of methods.METHODS: what is trained, and how it is asked
    instead: Callable[[Prediction], Prediction] | None = None
    """What is answered instead of the model's own confidence; None in every row that is a method."""

    @property
    def calibrator(self) -> str:
        """Its own: one of ``ANSWERS``."""
        return METHODS[self.method].calibrator or NO_CALIBRATOR


ROWS: dict[str, Row] = {name: Row(name, name) for name in METHODS} | {
    row.name: row
    for row in (
        Row("manifold-smoothing-searched", "manifold-smoothing"),  # the paper takes fixed values
        Row("constant", "bert", constant),
        Row("oracle", "bert", oracle),
    )
}
