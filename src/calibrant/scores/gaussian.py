"""Gaussians on features: class means, a covariance that can be inverted, and distances by it.

With fewer texts than dimensions h the empirical covariance S has no inverse, and with but a few times as many
the inverse is mostly noise. A pseudo-inverse would give weight 0 to the directions that training texts never
took, which are those in which unfamiliar text may lie. Ledoit and Wolf's shrinkage keeps them all:

    Σ = (1 − ρ)·S + ρ·(tr S / h)·I

with an estimate of the ρ in [0, 1] that brings Σ closest to the true covariance. There is nothing to choose,
and ρ goes to 0 as texts are added.
"""

import numpy as np
from scipy.spatial.distance import cdist

from calibrant.errors import UserError
from calibrant.scores.base import Floats, Integers


def class_means(features: Floats, labels: Integers) -> tuple[Floats, Floats]:
    """μ_k (K, h), and for each text that of its class (n, h)."""
    _, y, counts = np.unique(labels, return_inverse=True, return_counts=True)
    means = np.eye(len(counts))[y].T @ features / counts[:, None]
    return means, means[y]


def shrunk_covariance(centred: Floats) -> Floats:
    """Ledoit and Wolf's Σ of rows whose mean is 0, (n, h) → (h, h).

    ρ = min(1, β / δ) with δ = ‖S − (tr S / h)·I‖² and β = 1/n² · Σ_i ‖x_i·x_iᵀ − S‖², both Frobenius.
    """
    n, h = centred.shape
    s = centred.T @ centred / n
    scale = np.trace(s) / h
    delta = ((s - scale * np.eye(h)) ** 2).sum()
    beta = (((centred**2).sum(axis=1) ** 2).sum() / n - (s**2).sum()) / n
    rho = beta / delta if beta < delta else 1.0
    return np.asarray((1 - rho) * s + rho * scale * np.eye(h))


def whitening(covariance: Floats) -> Floats:
    """W (h, h) with W·Wᵀ = Σ⁻¹, so that distances by Σ are plain distances of x·W."""
    variances, directions = np.linalg.eigh(covariance)
    if variances[0] <= 0:
        raise UserError(
            "The training texts of each class all have the same features, so that there is no spread to "
            "measure distances by; a Mahalanobis score needs a class with two different texts or more."
        )
    return np.asarray(directions / np.sqrt(variances))


def squared_distances(features: Floats, means: Floats, w: Floats) -> Floats:
    """(f_i − μ_k)ᵀ·Σ⁻¹·(f_i − μ_k), (n, h) and (K, h) → (n, K)."""
    return np.asarray(cdist(features @ w, means @ w, "sqeuclidean"))
