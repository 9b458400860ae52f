"""How many passes a prediction takes: one file each."""

from collections.abc import Mapping

from calibrant.inference.base import Inference
from calibrant.inference.ensemble import DeepEnsemble
from calibrant.inference.mc_dropout import MCDropout
from calibrant.inference.single import SinglePass
from calibrant.registry import discover

__all__ = ["DeepEnsemble", "Inference", "MCDropout", "SinglePass", "inferences"]


def inferences() -> Mapping[str, type[Inference]]:
    """Every way to predict, by name."""
    return discover("calibrant.inference", Inference)
