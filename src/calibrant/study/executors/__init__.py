"""Where the trainings of a study run: one file each."""

from collections.abc import Mapping

from calibrant.registry import discover
from calibrant.study.executors.base import Executor

__all__ = ["Executor", "executors"]


def executors() -> Mapping[str, type[Executor]]:
    """Every executor by name."""
    return discover("calibrant.study.executors", Executor)
