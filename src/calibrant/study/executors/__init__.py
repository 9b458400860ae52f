"""Where the trainings of a study run: one file each."""

from calibrant.registry import discover
from calibrant.study.executors.base import Executor

__all__ = ["Executor", "executors"]


def executors() -> dict[str, type[Executor]]:
    """Every executor by name."""
    return dict(discover("calibrant.study.executors", Executor))
