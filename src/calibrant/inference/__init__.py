"""How many passes a prediction takes: one file each."""

from calibrant.inference.base import Inference
from calibrant.registry import discover

__all__ = ["Inference", "inferences"]


def inferences() -> dict[str, type[Inference]]:
    """Every way to predict, by name."""
    return dict(discover("calibrant.inference", Inference))
