"""Less confidence where a text is stranger than the texts that the model knows."""

from dataclasses import dataclass, fields, replace
from typing import ClassVar, Self

import numpy as np
from scipy.special import softmax

from calibrant.calibrators.base import Calibrator, Floats, Integers, Labelled
from calibrant.errors import UserError
from calibrant.scores.shapes import Shapes
from calibrant.scores.two_layer_mahalanobis import TwoLayerMahalanobis
from calibrant.types import Needs, Outputs

RHO = 0.1
FEWEST = 20  # dev texts: of 21 familiar texts one is the strangest


@dataclass(frozen=True, eq=False, repr=False)
class Familiarity(Calibrator):
    """p = a·q + (1 − a)/K, where q = softmax(z) and a(x) = min(1, (r(x) + ρ) / (α·(n + 1))).

    s(x) is a distance of the text's features from those of the training texts. With s_1 … s_n those of dev,
    r(x) = #{i : s_i ≥ s(x)} counts the familiar texts that are at least as strange, and

        π(x) = (1 + r(x)) / (n + 1)

    is a conformal p-value: if x is exchangeable with the dev texts, P(π(x) ≤ u) ≤ u. So of familiar text a
    share of about α loses some confidence, and unfamiliar text ends near 1/K. The label never changes, and no
    unfamiliar text is needed to fit it.

    With a = min(1, π/α), ρ would be 1, and a text that is stranger than all of 100 dev texts would keep a
    third of its confidence. ρ = 0 would leave it no label. In training sets with classes left out α = 0.03
    with ρ = 0.1 finds more far text than α = 0.05 with ρ = 1 and as much near text (results/left-out).
    """

    name: ClassVar[str] = "familiarity"
    about: ClassVar[str] = "Takes confidence from text unlike the training texts."
    citation: ClassVar[str] = "Bates et al. (2023), Testing for Outliers with Conformal p-values"
    needs: ClassVar[Needs] = TwoLayerMahalanobis.needs
    learns_by_heart: ClassVar[bool] = False  # a rank cannot

    shapes: ClassVar[Shapes] = {"alpha": (), **TwoLayerMahalanobis.shapes, "distances": ("n",)}

    alpha: float = 0.03
    means: Floats | None = None  # of the score, as ``scores/two_layer_mahalanobis`` has them
    w: Floats | None = None
    mean: Floats | None = None
    w_all: Floats | None = None
    inner_means: Floats | None = None
    inner_w: Floats | None = None
    weights: Floats | None = None
    distances: Floats | None = None  # s_1 … s_n, sorted

    def __post_init__(self) -> None:
        if not 0 < self.alpha < 1:
            raise UserError(f"`alpha` must lie between 0 and 1, both excluded, got {self.alpha}.")

    def familiarity(self, outputs: Outputs) -> Floats:
        """π(x), (n,) in (0, 1]."""
        r, n = self._as_strange(outputs)
        return np.asarray((1 + r) / (n + 1))

    @property
    def unfamiliar_below(self) -> float:
        """The π at which a(x) reaches 1."""
        return self.alpha + (1 - RHO) / (1 + (0 if self.distances is None else len(self.distances)))

    def distance(self, outputs: Outputs) -> Floats:
        """s(x), (n,)."""
        arrays = {field.name: getattr(self, field.name) for field in fields(TwoLayerMahalanobis)}
        return np.asarray(TwoLayerMahalanobis(**arrays)(outputs))

    def _fit(self, outputs: Outputs, y: Integers, train: Labelled | None) -> Self:
        assert train is not None
        if len(outputs) < FEWEST:
            raise UserError(
                f"The calibrator {self.name!r} needs {FEWEST} dev texts or more, got {len(outputs)}; "
                "add texts."
            )
        score = TwoLayerMahalanobis().fit(train.outputs, train.labels)
        return replace(self, **score.arrays(), distances=np.sort(score(outputs)))

    def _probabilities(self, outputs: Outputs) -> Floats:
        r, n = self._as_strange(outputs)
        a = np.minimum(1, (r + RHO) / (self.alpha * (n + 1)))[:, None]
        q = softmax(outputs.logits, axis=1)
        return np.asarray(a * q + (1 - a) / q.shape[1])

    def _as_strange(self, outputs: Outputs) -> tuple[Integers, int]:
        """r(x), (n texts,), and the number of dev texts."""
        self._check_ready(outputs)
        assert self.distances is not None
        n = len(self.distances)
        return n - np.searchsorted(self.distances, self.distance(outputs), side="left"), n
