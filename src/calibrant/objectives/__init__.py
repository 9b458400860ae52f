"""What training minimises: one file each."""

from calibrant.objectives.base import Loss, Objective
from calibrant.objectives.cross_entropy import CrossEntropy
from calibrant.objectives.manifold_smoothing import ManifoldSmoothing
from calibrant.registry import discover

__all__ = ["CrossEntropy", "Loss", "ManifoldSmoothing", "Objective", "objectives"]


def objectives() -> dict[str, type[Objective]]:
    """Every objective by name."""
    return dict(discover("calibrant.objectives", Objective))
