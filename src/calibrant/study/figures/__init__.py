"""The study's figures: one file each, drawn from measured cells. A new file is a new figure."""

from collections.abc import Mapping

from calibrant.registry import discover
from calibrant.study.figures.base import StudyFigure

__all__ = ["StudyFigure", "figures"]


def figures() -> Mapping[str, StudyFigure]:
    """Every figure by name."""
    return discover("calibrant.study.figures", StudyFigure)
