"""From logits to probabilities, by a map fitted on dev: one file each."""

from typing import Any

from calibrant.calibrators.base import Calibrator
from calibrant.errors import UserError
from calibrant.registry import discover, pick

__all__ = ["Calibrator", "calibrators", "from_state"]


def calibrators() -> dict[str, type[Calibrator]]:
    """Every calibrator by name."""
    return dict(discover("calibrant.calibrators", Calibrator))


def from_state(state: dict[str, Any]) -> Calibrator:
    """The calibrator whose ``state()`` this is."""
    try:
        return pick("calibrator", state["name"], calibrators())(**state["parameters"])
    except (KeyError, TypeError) as error:
        raise UserError(f"The calibrator's state is damaged ({error}); fit it again.") from error
