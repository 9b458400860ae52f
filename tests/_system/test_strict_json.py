import json

import pytest

from calibrant._system.strict_json import dumps, loads
from calibrant.errors import UserError


@pytest.mark.parametrize(
    "text", ["NaN", "[Infinity]", "1e999", "[" * 100_000, '{"a": -Infinity}', "9" * 5000]
)
def test_what_is_no_json_is_a_value_error(text):
    with pytest.raises(ValueError):  # noqa: PT011  the words are the library's
        loads(text)


def test_nothing_is_lost_and_nothing_is_obeyed():
    value = {"a\x9b\n": ["\u202e", "é", "\ud800", 1.5]}
    text = dumps(value)
    assert text == '{"a\\u009b\\n": ["\\u202e", "é", "\\ud800", 1.5]}'
    assert json.loads(text) == value


def test_nan_is_not_printed():
    with pytest.raises(UserError, match="not a number"):
        dumps({"ece": float("nan")})
