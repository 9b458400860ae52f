import numpy as np
import pytest

from calibrant.errors import UserError
from calibrant.metrics.per_class import per_class
from calibrant.types import Prediction

P = np.array(
    [
        [0.8, 0.1, 0.1, 0.0],  # answered 0, truly 0
        [0.6, 0.2, 0.2, 0.0],  # answered 0, truly 1
        [0.6, 0.2, 0.2, 0.0],  # answered 0, truly 2
        [0.6, 0.2, 0.2, 0.0],  # answered 0, truly 2
        [0.2, 0.7, 0.1, 0.0],  # answered 1, truly 1
    ]
)


def test_hand_computed():
    first, second, third, fourth = per_class(Prediction(P, np.array([0, 1, 2, 2, 1])))
    assert (first.texts, first.found, first.answers, first.accuracy) == (1, 1.0, 4, 0.25)
    assert first.confidence == pytest.approx(0.65)
    # The bins of 0.6 (three wrong) and 0.8 (one right): 3/4 · 0.6 + 1/4 · 0.2.
    assert first.ece == pytest.approx(0.5)
    assert (first.confused_with, first.confusions) == (2, 2)
    assert (second.texts, second.found, second.answers, second.accuracy) == (2, 0.5, 1, 1.0)
    assert (second.confused_with, second.confusions) == (None, 0)
    assert (third.texts, third.found, third.answers) == (2, 0.0, 0)
    assert (third.accuracy, third.confidence, third.ece) == (None, None, None)
    assert (fourth.texts, fourth.found, fourth.answers) == (0, None, 0)


def test_labels_are_needed():
    with pytest.raises(UserError, match=r"Numbers of each class need the true labels, got none; add a label"):
        per_class(Prediction(P))
