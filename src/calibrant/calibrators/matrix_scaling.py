"""A linear map of the logits, held near a diagonal one."""

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
from scipy.special import softmax

from calibrant.calibrators.base import Calibrator, Floats, Integers, Labelled
from calibrant.calibrators.foldable import Foldable
from calibrant.calibrators.likelihood import minimise, nll_and_gradient
from calibrant.errors import UserError
from calibrant.scores.shapes import Shapes
from calibrant.types import Outputs

STRENGTHS = (1e6, 1e4, 1e2, 1.0)
FOLDS = 3


@dataclass(frozen=True, repr=False)
class MatrixScaling(Calibrator, Foldable):
    """p = softmax(W·z + b), with off-diagonal and intercept regularisation (ODIR):

        minimise  NLL + λ/(K·(K − 1)) · Σ_{i≠j} w_ij² + λ/K · Σ_j b_j².

    K² + K parameters are more than most dev sets can carry, hence the penalty. The paper searches two
    strengths by cross-validation; one serves for both here.
    """

    name: ClassVar[str] = "matrix-scaling"
    about: ClassVar[str] = "A linear mix of all classes; needs many dev texts."
    citation: ClassVar[str] = "Kull et al. (2019), Beyond temperature scaling: Dirichlet calibration"

    shapes: ClassVar[Shapes] = {"strength": (), "weights": ("K", "K"), "b": ("K",)}

    strength: float | None = None  # λ; None: the one of STRENGTHS that is best in 3-fold cross-validation
    weights: list[list[float]] | None = None  # W, (K, K)
    b: list[float] | None = None

    def _fit(self, outputs: Outputs, y: Integers, train: Labelled | None) -> Self:
        z = outputs.logits
        strength = self.strength if self.strength is not None else _cross_validated(z, y)
        weights, b = _solve(z, y, strength)
        return replace(self, strength=strength, weights=weights.tolist(), b=b.tolist())

    def _probabilities(self, outputs: Outputs) -> Floats:
        p: Floats = softmax(outputs.logits @ np.asarray(self.weights).T + np.asarray(self.b), axis=1)
        return p

    def fold(self, weight: Floats, bias: Floats) -> tuple[Floats, Floats]:
        """The two products."""
        w = np.asarray(self.weights)
        return w @ weight, w @ bias + np.asarray(self.b)


def _solve(z: Floats, y: Integers, strength: float) -> tuple[Floats, Floats]:
    classes = z.shape[1]
    off_diagonal = 1 - np.eye(classes)
    on_w, on_b = strength / (classes * (classes - 1)), strength / classes

    def loss(parameters: Floats) -> tuple[float, Floats]:
        w, b = parameters[:-classes].reshape(classes, classes), parameters[-classes:]
        nll, by_logits = nll_and_gradient(z @ w.T + b, y)
        off = w * off_diagonal
        total = nll + on_w * (off**2).sum() + on_b * (b**2).sum()
        by_w = by_logits.T @ z + 2 * on_w * off
        by_b = by_logits.sum(axis=0) + 2 * on_b * b
        return float(total), np.concatenate([by_w.ravel(), by_b])

    by_data = np.concatenate([np.full(classes**2, (z**2).mean()), np.ones(classes)]) / classes
    by_penalty = np.concatenate([2 * on_w * off_diagonal.ravel(), np.full(classes, 2 * on_b)])
    start = np.concatenate([np.eye(classes).ravel(), np.zeros(classes)])
    found = minimise(loss, start, by_data + by_penalty)
    return found[:-classes].reshape(classes, classes), found[-classes:]


def _cross_validated(z: Floats, y: Integers) -> float:
    """The strength with the lowest NLL on texts left out."""
    from sklearn.model_selection import KFold

    if len(z) < FOLDS:
        raise UserError(
            f"Matrix scaling needs {FOLDS} dev texts or more to choose its penalty, got {len(z)}."
        )
    folds = list(KFold(FOLDS, shuffle=True, random_state=0).split(z))

    def left_out_nll(strength: float) -> float:
        total = 0.0
        for kept, left_out in folds:
            w, b = _solve(z[kept], y[kept], strength)
            total += nll_and_gradient(z[left_out] @ w.T + b, y[left_out])[0] * len(left_out)
        return total

    return min(STRENGTHS, key=left_out_nll)
