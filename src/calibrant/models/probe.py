"""A linear probe: multinomial logistic regression on the frozen encoder's pooled features.

    minimise  −Σ_i w_y·log softmax(W·f̂_i + b)[y_i] + 1/(2C) · ‖W‖²,   f̂ = (f − mean f) / sd f

It is the head that fine-tuning starts from, since a random head distorts the features that it is trained on
(LP-FT, Kumar et al. 2022), and by itself the method ``linear-probe``. C is chosen by cross-validation within
the training texts. w_y is the weight of a class, mostly 1.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from calibrant.calibrators.temperature import refined_nll
from calibrant.data.encode import model_inputs
from calibrant.models.last_linear import last_linear

Floats = NDArray[np.float64]
Integers = NDArray[np.integer]
STRENGTHS = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
FOLDS = 3  # that choose the strength
HEADS = 10  # that say what a head says of new text
ABSENT = -10.0
"""The logit of a class of which there is no text, where the others' are about 0."""


@dataclass(frozen=True)
class Probe:
    """A head, logits = W·f + b."""

    weight: Floats  # (K, h)
    bias: Floats  # (K,)
    strength: float  # C


def head_layer(model: Any, rows: Sequence[Sequence[int]], padding: int) -> nn.Linear:
    """The last layer of the model, which gets the probe; found by running it on two of the texts."""
    inputs = model_inputs(rows[:2], padding)
    return last_linear(model, **{name: values.to(model.device) for name, values in inputs.items()})


def fit_probe(
    features: NDArray[np.floating],
    labels: Integers,
    classes: int,
    class_weights: Floats | None = None,
) -> Probe:
    """The probe of features (n, h) with true classes (n,); classes may count differently, (K,)."""
    weights = np.ones(classes) if class_weights is None else class_weights
    f, mean, scale = _standardised(features)
    strength = _cross_validated(f, labels, weights)
    weight, bias = _solve(f, labels, weights, strength)
    return Probe(weight / scale, bias - weight @ mean / scale, strength)


def unseen_logits(
    features: NDArray[np.floating],
    labels: Integers,
    classes: int,
    class_weights: Floats | None = None,
) -> tuple[Floats, NDArray[np.bool_]]:
    """What the probe says of its own training texts as if they were new, (n, K), and of which it can, (n,).

    Ten heads, each fitted without a tenth of the texts, answer that tenth. A text that was the only one of
    its class tells nothing: no head without it knows the class.
    """
    weights = np.ones(classes) if class_weights is None else class_weights
    f, _, _ = _standardised(features)
    z = _left_out(f, labels, weights, _cross_validated(f, labels, weights), min(HEADS, len(labels)))
    return z, z[np.arange(len(labels)), labels] != ABSENT


def _standardised(features: NDArray[np.floating]) -> tuple[Floats, Floats, float]:
    """f̂, with the mean (h,) and the one scale that make it."""
    f = np.asarray(features, dtype=np.float64)
    mean, scale = f.mean(axis=0), float(f.std()) or 1.0
    return (f - mean) / scale, mean, scale


def _left_out(f: Floats, y: Integers, class_weights: Floats, strength: float, folds: int) -> Floats:
    """Logits of each text by a head that was fitted without its fold, (n, K)."""
    from sklearn.model_selection import KFold

    z = np.empty((len(y), len(class_weights)))
    for kept, left_out in KFold(folds, shuffle=True, random_state=0).split(f):
        w, b = _solve(f[kept], y[kept], class_weights, strength)
        z[left_out] = f[left_out] @ w.T + b
    return z


def _solve(f: Floats, y: Integers, class_weights: Floats, strength: float) -> tuple[Floats, Floats]:
    from sklearn.linear_model import LogisticRegression

    present, classes = np.unique(y), len(class_weights)
    weight, bias = np.zeros((classes, f.shape[1])), np.full(classes, ABSENT)
    if len(present) == 1:
        bias[present] = 0.0
        return weight, bias
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of many classes with few texts, which are meant; of a last digit
        by_class = {int(k): class_weights[k] for k in present}
        fitted = LogisticRegression(C=strength, class_weight=by_class, max_iter=500, tol=1e-3).fit(f, y)
    w, b = fitted.coef_, fitted.intercept_
    if len(present) == 2:  # scikit-learn keeps the difference of the two
        w, b = np.concatenate([-w, w]) / 2, np.concatenate([-b, b]) / 2
    weight[present], bias[present] = w, b
    return weight, bias


def _cross_validated(f: Floats, y: Integers, class_weights: Floats) -> float:
    """The strength with the lowest NLL on texts left out, each after its own best temperature.

    What a temperature mends is not held against a strength: one is fitted to the whole model in the end.
    """
    if len(y) < 2 * FOLDS or np.bincount(y).max() == 1:  # a text left out would have no other of its class
        return STRENGTHS[len(STRENGTHS) // 2]
    return min(STRENGTHS, key=lambda c: refined_nll(_left_out(f, y, class_weights, c, FOLDS), y))
