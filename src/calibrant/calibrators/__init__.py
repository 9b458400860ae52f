"""From what a model says to probabilities, by a map fitted on dev: one file each. Numpy only, no torch."""

from collections.abc import Mapping
from typing import Any

from calibrant.calibrators.base import Calibrator, calibrated
from calibrant.calibrators.histogram_binning import HistogramBinning
from calibrant.calibrators.isotonic import Isotonic
from calibrant.calibrators.matrix_scaling import MatrixScaling
from calibrant.calibrators.temperature import Temperature
from calibrant.calibrators.vector_scaling import VectorScaling
from calibrant.errors import UserError
from calibrant.registry import discover, pick

__all__ = [
    "Calibrator",
    "HistogramBinning",
    "Isotonic",
    "MatrixScaling",
    "Temperature",
    "VectorScaling",
    "calibrated",
    "calibrators",
    "from_state",
]


def calibrators() -> Mapping[str, type[Calibrator]]:
    """Every calibrator by name."""
    return discover("calibrant.calibrators", Calibrator)


def from_state(state: dict[str, Any], arrays: Mapping[str, Any] | None = None) -> Calibrator:
    """The calibrator whose ``state()`` and ``arrays()`` these are."""
    try:
        return pick("calibrator", state["name"], calibrators())(**state["parameters"], **arrays or {})
    except (KeyError, TypeError) as error:
        raise UserError(f"The calibrator's state is damaged ({error}); fit it again.") from error
