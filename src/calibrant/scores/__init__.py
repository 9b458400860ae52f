"""How unfamiliar a text is, larger meaning less familiar: one file each."""

from calibrant.registry import discover
from calibrant.scores.base import FeatureScore, Score

__all__ = ["FeatureScore", "Score", "scores"]


def scores() -> dict[str, type[Score]]:
    """Every score by name."""
    return dict(discover("calibrant.scores", Score))
