"""Ways to solve the two inner problems of manifold smoothing for a batch of text: one file each."""

from collections.abc import Mapping

from calibrant.objectives.solvers.base import Solution, Solver
from calibrant.registry import discover

__all__ = ["Solution", "Solver", "solvers"]


def solvers() -> Mapping[str, type[Solver]]:
    """Every solver by name."""
    return discover("calibrant.objectives.solvers", Solver)
