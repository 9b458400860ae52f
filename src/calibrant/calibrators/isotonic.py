"""Any rising curve, class by class."""

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
from scipy.special import softmax

from calibrant.calibrators.base import Calibrator, Floats, Integers, Labelled
from calibrant.calibrators.likelihood import renormalised
from calibrant.errors import UserError
from calibrant.scores.shapes import check_finite, check_shapes
from calibrant.types import Outputs


@dataclass(frozen=True, repr=False)
class Isotonic(Calibrator):
    """p_k ∝ m_k(softmax(z)_k), where m_k is the rising function that minimises Σ_i (m_k(p_ik) − [y_i = k])².

    One class against the rest, by scikit-learn's isotonic regression; between the points that it keeps
    (``points``, ``values``) the curve is linear, beyond them it is flat.
    """

    name: ClassVar[str] = "isotonic"
    about: ClassVar[str] = "A rising curve for each class; needs many dev texts."
    citation: ClassVar[str] = "Zadrozny and Elkan (2002), Transforming Classifier Scores into Probabilities"

    points: list[list[float]] | None = None  # for each class, probabilities before
    values: list[list[float]] | None = None  # and after

    def check(self, classes: int | None = None) -> None:
        """Refuse, beside that, what is no curve for each class."""
        points, values = self.points or [], self.values or []
        if len(points) != len(values) or classes not in (None, len(points)):
            raise UserError(f"`points` and `values` must hold a curve for each of {classes} classes.")
        for x, m in zip(points, values, strict=True):
            check_finite({"points": x, "values": m}, {"points": ("n",), "values": ("n",)})
            check_shapes({"points": x, "values": m}, {"points": ("n",), "values": ("n",)}, {})

    def _fit(self, outputs: Outputs, y: Integers, train: Labelled | None) -> Self:
        from sklearn.isotonic import IsotonicRegression

        curves = [
            IsotonicRegression().fit(p, y == k) for k, p in enumerate(softmax(outputs.logits, axis=1).T)
        ]
        return replace(
            self,
            points=[curve.X_thresholds_.tolist() for curve in curves],
            values=[curve.y_thresholds_.tolist() for curve in curves],
        )

    def _probabilities(self, outputs: Outputs) -> Floats:
        assert self.points is not None
        assert self.values is not None
        curves = zip(softmax(outputs.logits, axis=1).T, self.points, self.values, strict=True)
        return renormalised(np.stack([np.interp(p, x, m) for p, x, m in curves], axis=1))
