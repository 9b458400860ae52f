"""What training minimises: one file each."""

from collections.abc import Mapping

from calibrant.objectives.base import Loss, Objective
from calibrant.objectives.class_weights import ClassWeights
from calibrant.objectives.cross_entropy import CrossEntropy
from calibrant.objectives.entropy_regularized import EntropyRegularized
from calibrant.objectives.label_smoothing import LabelSmoothing
from calibrant.objectives.manifold_mixup import ManifoldMixup
from calibrant.objectives.manifold_smoothing import ManifoldSmoothing
from calibrant.objectives.mixup import Mixup
from calibrant.objectives.mmce import MMCE
from calibrant.objectives.vat import VAT
from calibrant.registry import discover

__all__ = [
    "MMCE",
    "VAT",
    "ClassWeights",
    "CrossEntropy",
    "EntropyRegularized",
    "LabelSmoothing",
    "Loss",
    "ManifoldMixup",
    "ManifoldSmoothing",
    "Mixup",
    "Objective",
    "objectives",
]


def objectives() -> Mapping[str, type[Objective]]:
    """Every objective by name."""
    return discover("calibrant.objectives", Objective, plugins="calibrant.objectives")
