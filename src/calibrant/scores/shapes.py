"""Arrays that fit together: what a fitted score or calibrator holds, and what it is then shown."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from calibrant.errors import UserError

Shapes = Mapping[str, tuple[str, ...]]
"""Of each array a letter, or a number, for each axis; a letter means the same length wherever it stands."""


def check_shapes(values: Mapping[str, Any], shapes: Shapes, known: Mapping[str, int]) -> None:
    """Refuse arrays of other shapes; those that are None, not fitted yet, are left out.

    >>> check_shapes({"w": [1.0, 2.0], "b": [0.0]}, {"w": ("K",), "b": ("K",)}, {})
    Traceback (most recent call last):
    calibrant.errors.UserError: `b` has shape (1), expected (K) with K = 2.
    """
    lengths = {"1": 1, "2": 2} | dict(known)
    for name, letters in shapes.items():
        if values[name] is None:
            continue
        shape = np.shape(values[name])
        fits = len(shape) == len(letters)
        fits = fits and all(lengths.setdefault(k, n) == n for k, n in zip(letters, shape, strict=True))
        if not fits or 0 in shape:
            told = ", ".join(
                f"{letter} = {lengths[letter]}" for letter in letters if letter in lengths.keys() - {"1", "2"}
            )
            raise UserError(
                f"`{name}` has shape ({', '.join(map(str, shape))}), expected ({', '.join(letters)})"
                f"{told and f' with {told}'}."
            )


def check_finite(values: Mapping[str, Any], shapes: Shapes) -> None:
    """Refuse what is not a number; those that are None are left out."""
    for name in shapes:
        if values[name] is None:
            continue
        array = np.asarray(values[name])
        if array.dtype.kind not in "fiu" or not np.isfinite(array).all():
            raise UserError(f"`{name}` must hold finite numbers.")
