"""Assertions that say what was expected, under any test runner and under ``python -O``."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from calibrant.errors import UserError
from calibrant.types import Needs, Outputs

CAN_BE_NEEDED = frozenset({"features", "middle", "layers"})


def expect(holds: object, sentence: str) -> None:
    """Raise with the sentence unless it holds."""
    if not holds:
        raise AssertionError(sentence)


def expect_same(found: Any, expected: Any, sentence: str, rtol: float = 0.0, atol: float = 0.0) -> None:
    """Arrays that are equal, or close."""
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=atol, err_msg=sentence)


@contextmanager
def refused(who: str, words: str) -> Iterator[None]:
    """Expect a ``UserError`` whose sentence has these words."""
    try:
        yield
    except Exception as error:
        if not isinstance(error, UserError) or words not in str(error):
            got = f"{type(error).__name__}: {error}"
            raise AssertionError(f"{who}: expected a UserError with {words!r}, got {got}") from error
        return
    raise AssertionError(f"{who}: expected a UserError with {words!r}, and nothing was raised")


def expect_named_and_cited(entry: Any) -> None:
    """A name, and a citation with its year."""
    expect(isinstance(getattr(entry, "name", None), str) and entry.name, f"{entry!r} has no name")
    citation = getattr(entry, "citation", "")
    expect(any(char.isdigit() for char in citation), f"{entry.name} has no year in its citation")


def expect_possible_needs(entry: Any) -> None:
    """What a model can be asked for."""
    expect(
        isinstance(entry.needs, frozenset) and entry.needs <= CAN_BE_NEEDED,
        f"{entry.name}: needs must be a frozenset of some of {sorted(CAN_BE_NEEDED)}, got {entry.needs!r}",
    )


def only(outputs: Outputs, needs: Needs) -> Outputs:
    """The outputs without what is not declared to be read."""
    return without(outputs, *(CAN_BE_NEEDED - needs))


def without(outputs: Outputs, *parts: str) -> Outputs:
    """As of a model that was not asked for them."""
    gone: dict[str, Any] = dict.fromkeys(parts)
    return replace(outputs, **gone)
