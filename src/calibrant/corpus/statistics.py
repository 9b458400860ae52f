"""What is kept of the answers on many texts, so that ``monitor`` reads a few numbers and no text again.

These are sufficient: of them ``decide.drift`` and ``decide.follow`` make the same figures as of all answers.
They add up, so that parts are looked at wherever they are answered, in any order.
"""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, NonNegativeInt
from scipy.special import softmax

from calibrant.calibrators import Calibrator
from calibrant.decide.drift import Seen, look
from calibrant.decide.follow import count, place
from calibrant.types import Outputs

Floats = NDArray[np.floating]


class Statistics(BaseModel):
    """Of the answers on some texts, beside those on n dev texts."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    texts: NonNegativeInt
    abstained: NonNegativeInt
    confidence: float  # the sum
    fallen: list[NonNegativeInt]  # where confidences fell among dev's, (2n + 1,): see ``decide.drift.Seen``
    followed: dict[str, list[NonNegativeInt]]  # by what orders texts: ``decide.follow.count``

    def __add__(self, other: Self) -> Self:
        return type(self)(
            texts=self.texts + other.texts,
            abstained=self.abstained + other.abstained,
            confidence=self.confidence + other.confidence,
            fallen=np.add(self.fallen, other.fallen).tolist(),
            followed={
                name: np.add(counts, other.followed[name]).tolist() for name, counts in self.followed.items()
            },
        )

    @property
    def seen(self) -> Seen:
        """What is asked of the confidences."""
        return Seen(self.texts, self.confidence, np.array(self.fallen))


@dataclass(frozen=True, eq=False)
class Then:
    """The answers on dev, which others are compared with."""

    confidence: Floats  # (n,)
    orders: dict[str, Floats]  # (n,) each

    def look(
        self, calibrator: Calibrator | None, outputs: Outputs, answered: NDArray[np.bool_], seed: int
    ) -> Statistics:
        """At new answers. Equal values are put in an order by a lot that is drawn with the seed."""
        n, now = len(self.confidence), orders(calibrator, outputs)
        seen = look(self.confidence, outputs.probabilities.max(axis=1))
        return Statistics(
            texts=seen.m,
            abstained=int((~answered).sum()),
            confidence=seen.total,
            fallen=seen.fallen.tolist(),
            followed={
                name: count(place(then, now[name], seed), n).tolist() for name, then in self.orders.items()
            },
        )


def then(calibrator: Calibrator | None, said: Outputs) -> Then:
    """Of what the run says on dev, with its calibrator."""
    return Then(said.probabilities.max(axis=1), orders(calibrator, said))


def orders(calibrator: Calibrator | None, outputs: Outputs) -> dict[str, NDArray[Any]]:
    """By what texts are ordered, the more familiar the larger.

    The confidence is that before the calibrator, which may know the dev texts.
    """
    found = {"confidence": softmax(outputs.logits, axis=1).max(axis=1)}
    distance = None if calibrator is None else calibrator.distance(outputs)
    return found if distance is None else {"familiarity": -distance, **found}
