"""From what a model says to probabilities, by a map fitted on dev: one file each. Numpy only, no torch."""

from collections.abc import Mapping
from typing import Any

from calibrant.calibrators.base import Calibrator, calibrated
from calibrant.calibrators.chain import Chain
from calibrant.calibrators.familiarity import Familiarity
from calibrant.calibrators.histogram_binning import HistogramBinning
from calibrant.calibrators.isotonic import Isotonic
from calibrant.calibrators.matrix_scaling import MatrixScaling
from calibrant.calibrators.temperature import Temperature
from calibrant.calibrators.vector_scaling import VectorScaling
from calibrant.errors import UserError
from calibrant.registry import discover, pick

__all__ = [
    "Calibrator",
    "Chain",
    "Familiarity",
    "HistogramBinning",
    "Isotonic",
    "MatrixScaling",
    "Temperature",
    "VectorScaling",
    "calibrated",
    "calibrators",
    "from_state",
    "new_calibrator",
]


def calibrators() -> Mapping[str, type[Calibrator]]:
    """Every calibrator by name."""
    return discover("calibrant.calibrators", Calibrator, plugins="calibrant.calibrators")


def new_calibrator(name: str) -> Calibrator:
    """An unfitted one; ``a+b`` is b after a."""
    names = name.split("+")
    parts = [pick("calibrator", part, calibrators())() for part in names]
    for part in names:
        if names.count(part) > 1:  # values are stored by the part's name
            raise UserError(f"The calibrator {name!r} names {part} {names.count(part)} times; name it once.")
    return parts[0] if len(parts) == 1 else Chain(tuple(parts))


def from_state(
    state: dict[str, Any], arrays: Mapping[str, Any] | None = None, classes: int | None = None
) -> Calibrator:
    """The calibrator whose ``state()`` and ``arrays()`` these are; refused where they fit no model of so many
    classes."""
    try:
        names, values = state["name"].split("+"), {**state["parameters"], **(arrays or {})}
        if len(names) == 1:
            calibrator: Calibrator = pick("calibrator", names[0], calibrators())(**values)
            calibrator.check(classes)
            return calibrator
        split = [(*name.split(".", 1), value) for name, value in values.items()]
        return Chain(
            tuple(
                from_state(
                    {"name": part, "parameters": {name: value for of, name, value in split if of == part}},
                    classes=classes,
                )
                for part in names
            )
        )
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise UserError(f"The calibrator's state is damaged ({error}); fit it again.") from error
