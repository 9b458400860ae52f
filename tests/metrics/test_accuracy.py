import numpy as np
import pytest

from calibrant.metrics import accuracy


def test_hand_computed():
    p = [[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4], [0.2, 0.5, 0.3]]
    assert accuracy(p, [0, 1, 2, 0]) == 0.75


def test_of_equally_probable_classes_the_first_is_predicted():
    assert accuracy([[0.5, 0.5]], [0]) == 1.0
    assert accuracy([[0.5, 0.5]], [1]) == 0.0


@pytest.mark.parametrize(("label", "expected"), [(0, 1.0), (1, 0.0)])
def test_one_text(label, expected):
    assert accuracy(np.array([[1.0, 0.0]]), np.array([label])) == expected
