"""Discovery: one new file adds an objective, a calibrator, a score, a metric or a dataset.

Each of those packages holds one module per entry. An entry is a concrete class or an instance of the
package's base type that carries a ``name``; walking the package finds it, so no list exists that
could drift from the files.
"""

import importlib
import inspect
import pkgutil
from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache
from types import MappingProxyType, ModuleType
from typing import Any, TypeVar

from calibrant.errors import UserError

T = TypeVar("T")


@cache
def discover(package_name: str, base: Any) -> Mapping[str, Any]:
    """Every entry of a package by name, in the order of the file names."""
    package = importlib.import_module(package_name)
    entries: dict[str, Any] = {}
    for info in sorted(pkgutil.iter_modules(package.__path__), key=lambda info: info.name):
        module = importlib.import_module(f"{package_name}.{info.name}")
        for entry in _entries_of(module, base):
            if entries.setdefault(entry.name, entry) is not entry:
                raise TypeError(
                    f"Two entries of {package_name} are called {entry.name!r}: "
                    f"{entries[entry.name]!r} and {entry!r}. Rename one."
                )
    return MappingProxyType(entries)  # cached, so it must not change


def _entries_of(module: ModuleType, base: type) -> list[Any]:
    """Concrete subclasses of ``base`` defined in ``module``, and instances of it."""
    return [
        value
        for value in vars(module).values()
        if (
            inspect.isclass(value)
            and issubclass(value, base)
            and not inspect.isabstract(value)
            and value.__module__ == module.__name__
            and isinstance(getattr(value, "name", None), str)
        )
        or isinstance(value, base)
    ]


def pick(kind: str, name: str, entries: Mapping[str, T]) -> T:
    """The entry called ``name``; an unknown name raises with the nearest match.

    >>> pick("method", "manifold-smothing", {"bert": 1, "manifold-smoothing": 2})
    Traceback (most recent call last):
    calibrant.errors.UserError: Unknown method 'manifold-smothing'; did you mean 'manifold-smoothing'? \
Known: bert, manifold-smoothing.
    """
    if name in entries:
        return entries[name]
    close = get_close_matches(name, entries, n=1)
    hint = f"; did you mean {close[0]!r}?" if close else "."
    raise UserError(f"Unknown {kind} {name!r}{hint} Known: {', '.join(entries) or 'none'}.")
