"""How unfamiliar a text is; larger means less familiar. One file each; numpy only, no torch."""

from collections.abc import Mapping

from calibrant.registry import discover
from calibrant.scores.base import FittedScore, Score
from calibrant.scores.energy import Energy
from calibrant.scores.entropy import Entropy
from calibrant.scores.knn import NearestNeighbours
from calibrant.scores.layer_mahalanobis import LayerMahalanobis, MeanMahalanobis
from calibrant.scores.mahalanobis import Mahalanobis
from calibrant.scores.margin import Margin
from calibrant.scores.max_logit import MaxLogit
from calibrant.scores.max_probability import MaxProbability
from calibrant.scores.relative_mahalanobis import RelativeMahalanobis
from calibrant.scores.two_layer_mahalanobis import TwoLayerMahalanobis

__all__ = [
    "Energy",
    "Entropy",
    "FittedScore",
    "LayerMahalanobis",
    "Mahalanobis",
    "Margin",
    "MaxLogit",
    "MaxProbability",
    "MeanMahalanobis",
    "NearestNeighbours",
    "RelativeMahalanobis",
    "Score",
    "TwoLayerMahalanobis",
    "scores",
]


def scores() -> Mapping[str, type[Score]]:
    """Every score by name."""
    return discover("calibrant.scores", Score, plugins="calibrant.scores")
