"""Where the parts of a corpus are answered: one file each."""

from collections.abc import Mapping

from calibrant.corpus.engines.base import Engine
from calibrant.registry import discover

__all__ = ["Engine", "engines"]


def engines() -> Mapping[str, type[Engine]]:
    """Every engine by name."""
    return discover("calibrant.corpus.engines", Engine)
