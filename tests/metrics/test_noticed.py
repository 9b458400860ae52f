import numpy as np
import pytest

from calibrant.metrics.noticed import noticed


@pytest.mark.parametrize("n", [20, 60, 100])
def test_at_most_one_familiar_text_in_twenty_lies_below_the_limit(n):
    familiar = np.arange(n) / n
    assert noticed(familiar, familiar) == 0.05


def test_hand_computed():
    familiar = [0.1, *([0.5] * 19)]  # one of twenty may be a false alarm: the limit is 0.5
    assert noticed(familiar, [0.05, 0.3, 0.5, 0.9]) == 0.5
    assert noticed(familiar[1:], [0.05, 0.3, 0.5, 0.9]) == 0.5  # of nineteen none may
    assert noticed([0.2], [0.1, 0.3]) == 0.5
