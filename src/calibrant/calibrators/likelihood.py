"""What the parametric calibrators minimise, and the class-by-class ones share."""

from collections.abc import Callable

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax

from calibrant.calibrators.base import Floats, Integers


def nll_and_gradient(z: Floats, y: Integers) -> tuple[float, Floats]:
    """−1/n · Σ_i log softmax(z_i)[y_i], and its gradient (p − onehot(y)) / n by the logits z, (n, K)."""
    rows = np.arange(len(y))
    log_p = log_softmax(z, axis=1)
    gradient = np.exp(log_p)
    gradient[rows, y] -= 1
    return float(-log_p[rows, y].mean()), gradient / len(y)


def minimise(function: Callable[[Floats], tuple[float, Floats]], start: Floats, curvature: Floats) -> Floats:
    """Where a convex function, given with its gradient, is least.

    ``curvature`` says roughly how fast the gradient grows along each parameter. L-BFGS works in units in
    which all grow alike: logits of any size and penalties of any strength then take a few dozen steps.

    Where there is no least (a class that dev lacks, or texts that can be separated), the slope falls below
    the tolerance after finitely many steps, so that the parameters stay finite.
    """
    unit = np.maximum(curvature, 1e-12) ** -0.5  # logits that are all 0 have none

    def in_units(u: Floats) -> tuple[float, Floats]:
        value, gradient = function(u * unit)
        return value, gradient * unit

    options = {"maxiter": 2000, "maxfun": 4000, "gtol": 1e-7, "ftol": 1e-12}
    found = minimize(in_units, start / unit, jac=True, method="L-BFGS-B", options=options)
    best: Floats = found.x * unit
    return best


def renormalised(p: Floats) -> Floats:
    """Rows divided by their sums; where every class was given 0, all are equally likely."""
    total = p.sum(axis=1, keepdims=True)
    shares: Floats = np.divide(p, total, out=np.full_like(p, 1 / p.shape[1]), where=total > 0)
    return shares
