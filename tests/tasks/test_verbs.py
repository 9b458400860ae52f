"""One verb, one name: ``calibrant X`` is ``calibrant.X(...)`` of ``tasks/X.py``."""

import importlib
import inspect
from pkgutil import iter_modules

import pytest

import calibrant
from calibrant import cli, tasks

VERBS = [module.name for module in iter_modules(tasks.__path__)]


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_has_one_name(verb):
    assert verb in {module.name for module in iter_modules(cli.__path__)}
    function = getattr(importlib.import_module(f"calibrant.tasks.{verb}"), verb, None)
    if verb == "list":  # which Python has already
        assert verb not in calibrant.__all__
    else:
        assert getattr(calibrant, verb) is function


@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb != "list"])
def test_arguments_after_the_first_are_named(verb):
    _, *others = inspect.signature(getattr(calibrant, verb)).parameters.values()
    assert {parameter.kind for parameter in others} == {inspect.Parameter.KEYWORD_ONLY}
