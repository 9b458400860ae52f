"""From logits to probabilities, by a map fitted on dev: one file each."""

from collections.abc import Mapping
from typing import Any

from calibrant.calibrators.base import Calibrator
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
    "by_heart",
    "calibrators",
    "from_state",
]


def calibrators() -> Mapping[str, type[Calibrator]]:
    """Every calibrator by name."""
    return discover("calibrant.calibrators", Calibrator)


def from_state(state: dict[str, Any]) -> Calibrator:
    """The calibrator whose ``state()`` this is."""
    try:
        return pick("calibrator", state["name"], calibrators())(**state["parameters"])
    except (KeyError, TypeError) as error:
        raise UserError(f"The calibrator's state is damaged ({error}); fit it again.") from error


def by_heart(stored: dict[str, Any] | None, texts: dict[str, Any]) -> str | None:
    """What is wrong with texts (their provenance) that the calibrator of a record was fitted on; or None.

    Their confidence flatters, unless it has but one number, so they cannot stand for new text.
    """
    if stored is None or stored["fitted_on"]["fingerprint"] != texts["fingerprint"]:
        return None
    if not pick("calibrator", stored["name"], calibrators()).learns_by_heart:
        return None
    return f"The calibrator {stored['name']!r} was fitted on these very texts ({texts['source']})"
