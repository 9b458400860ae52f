"""Discovery: one new file adds an objective, a calibrator, a score, a metric or a dataset.

Each of those packages holds one module per entry. An entry is a concrete class or an instance of the
package's base type that carries a ``name``; walking the package finds it, so no list exists that
could drift from the files.

Installed packages add theirs by an entry point, such as ``calibrant.scores`` (docs/plugins.md). These are
read when a registry is first asked, so that ``import calibrant`` pays nothing for them.
"""

import importlib
import inspect
import logging
import pkgutil
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from functools import cache
from types import MappingProxyType, ModuleType
from typing import Any, TypeVar

from calibrant.errors import UserError, visible

logger = logging.getLogger(__name__)
T = TypeVar("T")


@cache
def discover(package_name: str, base: Any, plugins: str | None = None) -> Mapping[str, Any]:
    """Every entry of a package by name, in the order of the file names; then those of the entry points that
    are called ``plugins``."""
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
    for package_of, entry in () if plugins is None else _plugins(plugins, base):
        if entries.setdefault(entry.name, entry) is not entry:
            raise UserError(
                f"The plug-in {entry.name!r} of the package {package_of} has a name that another entry of "
                f"{plugins} has, {entries[entry.name]!r}; rename it, or uninstall one of them."
            )
    return MappingProxyType(entries)  # cached, so it must not change


def _plugins(group: str, base: type) -> Iterator[tuple[str, Any]]:
    """Package and entry, of all that is installed; what cannot be loaded is told and left out."""
    from importlib.metadata import entry_points

    for point in sorted(entry_points(group=group), key=lambda point: point.name):
        package = "unknown" if point.dist is None else point.dist.name
        try:
            entry = point.load()
        except Exception as error:  # of somebody else's code; the rest of calibrant does not depend on it
            why = f"{type(error).__name__}: {error}"
        else:
            # What a user configures is a class, what is complete as it stands an instance.
            kind = "class" if inspect.isabstract(base) else "instance"
            if _is_class_of(entry, base) if kind == "class" else isinstance(entry, base):
                yield package, entry
                continue
            why = f"it is no {kind} of {base.__name__} with all that this asks for"
        logger.warning(
            visible(f"The plug-in {point.value} of the package {package} ({group}) is left out: {why}")
        )


def _entries_of(module: ModuleType, base: type) -> list[Any]:
    """Concrete subclasses of ``base`` defined in ``module``, and instances of it."""
    return [
        value
        for value in vars(module).values()
        if (_is_class_of(value, base) and value.__module__ == module.__name__) or isinstance(value, base)
    ]


def _is_class_of(value: Any, base: type) -> bool:
    """A concrete subclass that has a name."""
    return (
        inspect.isclass(value)
        and issubclass(value, base)
        and not inspect.isabstract(value)
        and isinstance(getattr(value, "name", None), str)
    )


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
