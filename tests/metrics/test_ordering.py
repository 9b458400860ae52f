import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrant.metrics.ordering import CELLS, count_passed

numbers = st.one_of(
    st.floats(0, 1, width=32),
    st.integers(0, CELLS).map(lambda k: k / CELLS),  # on the edge of a cell
    st.integers(0, 50).map(lambda k: k / 50),
)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("side", ["left", "right"])
@given(
    thresholds=st.lists(st.one_of(numbers, st.floats(-2, 3, width=32)), max_size=20),
    c=st.lists(numbers, max_size=50),
)
def test_as_searchsorted_says(dtype, side, thresholds, c):
    t, c = np.sort(np.array(thresholds, dtype)), np.array(thresholds + c, dtype)
    c = np.concatenate([c, np.nextafter(c, dtype(0)), np.nextafter(c, dtype(1))]).clip(0, 1)
    np.testing.assert_array_equal(count_passed(t, c, side), np.searchsorted(t, c, side))
