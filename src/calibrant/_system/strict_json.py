"""JSON as the standard has it: no NaN, no infinity; printed so that a terminal obeys none of it."""

import json
import math
from typing import Any

from calibrant.errors import UserError, visible


def loads(text: str | bytes) -> Any:
    """The value; ValueError for what is no JSON, holds a number that is none, or is nested too deeply.

    >>> loads('{"T": 1e999}')
    Traceback (most recent call last):
    ValueError: 1e999 is not a finite number
    """
    try:
        return json.loads(text, parse_constant=_refuse, parse_float=_finite)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def dumps(value: Any) -> str:
    r"""One line, and the same value when it is read again.

    >>> dumps({"label": "a\x9b2J"})
    '{"label": "a\\u009b2J"}'
    """
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    except ValueError as error:
        raise UserError("A figure is not a number (NaN or infinity), and nothing is printed.") from error
    if text.isprintable():
        return text
    # Outside of strings there is none of these, and inside of them JSON has this way to write each.
    return "".join(c if visible(c) == c else f"\\u{ord(c):04x}" for c in text)


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not a finite number")


def _finite(digits: str) -> float:
    if not math.isfinite(number := float(digits)):
        _refuse(digits)
    return number
