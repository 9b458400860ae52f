"""Calibrators one after another: each is fitted to what those before it have made of the outputs.

One that cannot be fitted (too few texts, say) is left out with a warning, unless no other is left.
"""

import warnings
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from calibrant.calibrators.base import Calibrator, Floats, Integers, Labelled
from calibrant.errors import UserError
from calibrant.types import Outputs


@dataclass(frozen=True, eq=False, repr=False)
class Chain(Calibrator):
    """``temperature+familiarity`` and the like; a value of a part has the part's name before its own."""

    parts: tuple[Calibrator, ...]

    def __post_init__(self) -> None:
        of_the_parts = {
            "name": "+".join(part.name for part in self.parts),
            "citation": "; ".join(part.citation for part in self.parts),
            "needs": frozenset[str]().union(*(part.needs for part in self.parts)),
            "learns_by_heart": any(part.learns_by_heart for part in self.parts),
        }
        for name, value in of_the_parts.items():
            object.__setattr__(self, name, value)

    def familiarity(self, outputs: Outputs) -> Floats | None:
        """That of the part that tells it."""
        told = (part.familiarity(outputs) for part in self.parts)
        return next((familiarity for familiarity in told if familiarity is not None), None)

    @property
    def unfamiliar_below(self) -> float | None:
        """That of the part that tells familiarity."""
        told = (part.unfamiliar_below for part in self.parts)
        return next((below for below in told if below is not None), None)

    def distance(self, outputs: Outputs) -> Floats | None:
        """Likewise."""
        told = (part.distance(outputs) for part in self.parts)
        return next((distance for distance in told if distance is not None), None)

    def _fit(self, outputs: Outputs, y: Integers, train: Labelled | None) -> Self:
        fitted: list[Calibrator] = []
        for number, part in enumerate(self.parts, start=1):
            try:
                fitted.append(part.fit(outputs, y, train))
            except UserError as error:
                if number == len(self.parts) and not fitted:
                    raise
                warnings.warn(f"{error} It is left out of {self.name}.", stacklevel=3)
                continue
            outputs, train = _handed_on(outputs, fitted[-1]), _train_handed_on(train, fitted[-1])
        if len(fitted) == 1:  # what is stored has the name of this one alone
            return fitted[0]  # type: ignore[return-value]
        return type(self)(tuple(fitted))

    def _probabilities(self, outputs: Outputs) -> Floats:
        for part in self.parts[:-1]:
            outputs = _handed_on(outputs, part)
        return self.parts[-1].probabilities(outputs)

    def _values(self) -> dict[str, Any]:
        return {f"{part.name}.{name}": value for part in self.parts for name, value in part._values().items()}


def _handed_on(outputs: Outputs, part: Calibrator) -> Outputs:
    """The outputs as the next part sees them: its logits are the logarithms of what this one says."""
    p = part.probabilities(outputs)
    return replace(outputs, logits=np.log(np.maximum(p, np.finfo(np.float64).tiny)))


def _train_handed_on(train: Labelled | None, part: Calibrator) -> Labelled | None:
    """Likewise for unseen logits, if the part can read them."""
    if train is None or train.unseen is None:
        return train
    if part.needs:
        return train._replace(unseen=None)
    unseen = train.unseen
    return train._replace(unseen=unseen._replace(outputs=_handed_on(unseen.outputs, part)))
