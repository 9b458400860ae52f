"""What is stored of a calibrator is checked when it is read."""

import numpy as np
import pytest

from calibrant.calibrators import from_state
from calibrant.errors import UserError


@pytest.mark.parametrize(
    ("name", "parameters", "why"),
    [
        ("temperature", {"temperature": -1.0}, "`temperature` must be above 0, got -1.0."),
        ("temperature", {"temperature": float("nan")}, "`temperature` must be above 0, got nan."),
        ("temperature", {"temperature": float("inf")}, "`temperature` must hold finite numbers."),
        ("temperature", {"temperature": True}, "`temperature` must hold finite numbers."),
        ("vector-scaling", {"w": [1.0, 1.0], "b": [0.0, 0.0]}, "`w` has shape (2), expected (K) with K = 3."),
        (
            "matrix-scaling",
            {"strength": 1.0, "weights": [[1.0] * 3] * 2, "b": [0.0] * 3},
            "`weights` has shape",
        ),
        ("isotonic", {"points": [[0.1]], "values": [[0.2]]}, "a curve for each of 3 classes."),
        (
            "isotonic",
            {"points": [[0.1]] * 3, "values": [[0.2, 0.3]] * 3},
            "`values` has shape (2), expected (n)",
        ),
        ("histogram-binning", {"bins": 2, "values": [[0.1] * 3] * 3}, "`values` has shape (3, 3)"),
        ("histogram-binning", {"bins": 2.0}, "`bins` must be at least 1, got 2.0."),
    ],
)
def test_a_damaged_state_is_refused(name, parameters, why):
    with pytest.raises(UserError) as refused:
        from_state({"name": name, "parameters": parameters}, classes=3)
    assert why in str(refused.value)
    assert str(refused.value).startswith("The calibrator's state is damaged (")


def test_damaged_arrays_are_refused():
    arrays = {"means": np.zeros((3, 4)), "w": np.eye(4), "mean": np.zeros((1, 4)), "w_all": np.eye(4)}
    arrays |= {
        "inner_means": np.zeros((3, 5)),
        "inner_w": np.eye(5),
        "weights": np.ones(2),
        "distances": np.ones(9),
    }
    state = {"name": "familiarity", "parameters": {"alpha": 0.05}}
    assert from_state(state, arrays, classes=3).name == "familiarity"
    for name, array in arrays.items():
        for wrong in (np.full_like(array, np.nan), array[..., None], array[:0]):
            with pytest.raises(UserError, match=f"`{name}` (must hold finite numbers|has shape)"):
                from_state(state, arrays | {name: wrong}, classes=3)
