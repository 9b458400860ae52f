"""A calibrator that reads more than logits: what it is given, and what is kept of it."""

import json
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest
from scipy.special import softmax

from calibrant.calibrators import Calibrator, calibrated, from_state
from calibrant.errors import UserError
from calibrant.types import Outputs


@dataclass(frozen=True, eq=False)
class ByDistance(Calibrator):
    """Divides the logits by how far a text lies from the middle of the training texts."""

    name: ClassVar[str] = "by-distance"
    citation: ClassVar[str] = "nobody (2000)"
    needs: ClassVar[frozenset[str]] = frozenset({"features"})

    least: float = 1.0
    middle: np.ndarray | None = None

    def _fit(self, outputs, y, train):
        return replace(self, middle=train[0].features.mean(axis=0))

    def _probabilities(self, outputs):
        distance = np.linalg.norm(outputs.features - self.middle, axis=1, keepdims=True)
        return softmax(outputs.logits / np.maximum(distance, self.least), axis=1)


def said(n, seed):
    rng = np.random.default_rng(seed)
    return Outputs(rng.normal(size=(n, 3)), rng.normal(size=(n, 4)).astype(np.float32)), np.arange(n) % 3


DEV, TRAIN = said(9, seed=0), said(30, seed=1)


def test_it_sees_the_training_texts_and_its_own_features():
    fitted = ByDistance(least=0.5).fit(*DEV, TRAIN)
    np.testing.assert_array_equal(fitted.middle, TRAIN[0].features.mean(axis=0))
    outputs = calibrated(DEV[0], fitted)
    np.testing.assert_array_equal(outputs.probabilities, fitted.probabilities(DEV[0]))
    assert not np.allclose(outputs.probabilities, DEV[0].probabilities)
    np.testing.assert_array_equal(outputs.logits, DEV[0].logits)
    np.testing.assert_array_equal(calibrated(outputs, None).probabilities, DEV[0].probabilities)


def test_arrays_are_kept_beside_the_state(monkeypatch):
    monkeypatch.setattr("calibrant.calibrators.calibrators", lambda: {"by-distance": ByDistance})
    fitted = ByDistance(least=0.5).fit(*DEV, TRAIN)
    state = json.loads(json.dumps(fitted.state()))
    assert state == {"name": "by-distance", "parameters": {"least": 0.5}}
    assert fitted.arrays().keys() == {"middle"}
    again = from_state(state, {name: array.copy() for name, array in fitted.arrays().items()})
    np.testing.assert_array_equal(again.probabilities(DEV[0]), fitted.probabilities(DEV[0]))
    with pytest.raises(UserError, match="has not been fitted"):
        from_state(state).probabilities(DEV[0])
    with pytest.raises(UserError, match="state is damaged"):
        from_state(state, {"centre": fitted.middle})


def test_what_it_refuses():
    without = Outputs(DEV[0].logits)
    needs = (
        "The calibrator 'by-distance' needs features; ask for classifier.outputs(texts, needs={'features'})."
    )
    for ask in (
        lambda: ByDistance().fit(without, DEV[1], TRAIN),
        lambda: ByDistance(middle=np.zeros(4)).probabilities(without),
    ):
        with pytest.raises(UserError) as refused:
            ask()
        assert str(refused.value) == needs
    with pytest.raises(UserError) as refused:
        ByDistance().fit(*DEV)
    assert str(refused.value) == (
        "The calibrator 'by-distance' compares texts with those of training; give fit(…, train=…)."
    )
