"""The two pseudo-sample generators of Kong et al. (2020), as pure functions of tensors.

Nothing here knows of text: ``x`` may be word embeddings, pixels or table rows, and ``features`` and
``loss`` any differentiable functions of it. For one text x with partner x̃:

    on-manifold    x′ = argmin D_x(f(z), f(x̃))   over the ball   ‖z − x‖_∞ ≤ δ_on
    off-manifold   x″ = argmax ℓ(g∘f(z), y)       over the sphere ‖z − x‖_∞ = δ_off

Both are solved by signed gradient steps of length δ followed by the projection. The paper prints D_x
as the cosine similarity; since it is minimised, the distance 1 − cos is meant.
"""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from calibrant.objectives.functional import cosine_distance


def project_to_ball(p: Tensor, delta: float) -> Tensor:
    """The point nearest to each perturbation p with ‖p‖_∞ ≤ δ."""
    return p.clamp(-delta, delta)


def project_to_sphere(p: Tensor, delta: float) -> Tensor:
    """The perturbation p brought to ‖p‖_∞ = δ, for each element of the batch by itself.

    Outside the ball that is the nearest point, which clipping gives. Inside, p is stretched, which
    keeps its direction and leaves zeros (padding) at zero.
    """
    p = project_to_ball(p, delta)
    norm = p.abs().flatten(1).amax(dim=1).clamp_min(torch.finfo(p.dtype).tiny)
    return p * (delta / norm).view(-1, *[1] * (p.dim() - 1))


def on_step(x: Tensor, z: Tensor, gradient: Tensor, delta: float) -> Tensor:
    """One step from z down the gradient of D_x, kept within the ball around x."""
    return x + project_to_ball(z - x - delta * gradient.sign(), delta)


def off_step(x: Tensor, z: Tensor, gradient: Tensor, delta: float) -> Tensor:
    """One step from z up the gradient of ℓ, brought to the sphere around x."""
    return x + project_to_sphere(z - x + delta * gradient.sign(), delta)


def on_manifold(
    features: Callable[[Tensor], Tensor],
    x: Tensor,
    target: Tensor,
    delta: float,
    noise: Tensor | None = None,
    steps: int = 1,
) -> Tensor:
    """x′: x moved towards its partner, as the features see it.

    Args:
        features: f, (B, …) → (B, h).
        x: (B, …); not changed, and no gradient reaches it.
        target: f(x̃), (B, h), taken as constant.
        delta: δ_on.
        noise: v, (B, …), the random start; None starts at x.
        steps: inner steps; the paper takes one.

    Returns:
        x′, (B, …), a constant.
    """
    return descend(features, x.detach(), noise, target.detach(), delta, steps)


def descend(
    features: Callable[[Tensor], Tensor],
    x: Tensor,
    start: Tensor | None,
    target: Tensor,
    delta: float,
    steps: int,
) -> Tensor:
    """``steps`` times ``on_step``, from x + ``start``; None starts at x."""
    z = x if start is None else x + start
    for _ in range(steps):
        z = z.detach().requires_grad_()
        (gradient,) = torch.autograd.grad(cosine_distance(features(z), target).sum(), z)
        z = on_step(x, z.detach(), gradient, delta)
    return z.detach()


def off_manifold(
    loss: Callable[[Tensor], Tensor],
    x: Tensor,
    delta: float,
    noise: Tensor | None = None,
    steps: int = 1,
) -> Tensor:
    """x″: x pushed off the manifold, the way that its loss grows.

    Args:
        loss: z ↦ ℓ(g∘f(z), y), (B, …) → (B,).
        x: (B, …); not changed, and no gradient reaches it.
        delta: δ_off.
        noise: v′, (B, …), the random start; None starts at x.
        steps: inner steps; the paper takes one.

    Returns:
        x″, (B, …), a constant with ‖x″ − x‖_∞ = δ_off for each element of the batch.
    """
    return climb(loss, x.detach(), noise, delta, steps)


def climb(
    loss: Callable[[Tensor], Tensor], x: Tensor, start: Tensor | None, delta: float, steps: int
) -> Tensor:
    """``steps`` times ``off_step``, from x + ``start``; None starts at x."""
    z = x if start is None else x + start
    for _ in range(steps):
        z = z.detach().requires_grad_()
        (gradient,) = torch.autograd.grad(loss(z).sum(), z)
        z = off_step(x, z.detach(), gradient, delta)
    return z.detach()


def interpolate_labels(labels: Tensor, partners: Tensor, classes: int, delta_y: float) -> Tensor:
    """y′ = (1 − δ_y)·y + δ_y·ỹ; (B,), (B,) → (B, K)."""
    return (1 - delta_y) * one_hot(labels, classes) + delta_y * one_hot(partners, classes)
