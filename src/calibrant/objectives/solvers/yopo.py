"""You Only Propagate Once (Zhang et al. 2019): many inner steps for the price of the first layer.

Let f₀ be all up to the output of the first layer, h = f₀(x), and J the function that an inner problem
minimises or maximises. One pass through the whole network gives the adjoint p = ∂J/∂h at x. It is then
held, and the inner steps follow the gradient of the first layer only:

    z ← step(z, ∇_z p·f₀(z)),   k times from z = x

The first step is the exact one of ``shared``; those after it neglect how p changes. With L layers they
cost (F + B)/L each, where ``pgd`` and ``shared`` pay F + B.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from calibrant.errors import UserError
from calibrant.models.split import SplitModel
from calibrant.objectives.differentiated import differentiate
from calibrant.objectives.functional import cosine_distance
from calibrant.objectives.manifold import off_step, on_step
from calibrant.objectives.solvers.base import Solution, Solver, embedded
from calibrant.types import Batch

Step = Callable[[Tensor, Tensor, Tensor, float], Tensor]


@dataclass(frozen=True)
class YOPO(Solver):
    """One clean pass, dropout off, for the cross-entropy term and both adjoints; then the inner steps."""

    name: ClassVar[str] = "yopo"
    about: ClassVar[str] = "Several steps, at the cost of the first layer."
    citation: ClassVar[str] = (
        "Zhang et al. (2019), You Only Propagate Once: Accelerating Adversarial Training via Maximal "
        "Principle"
    )

    def solve(self, model: SplitModel, batch: Batch, partners: Tensor) -> Solution:
        """The adjoints come of the whole network, the steps of its first layer."""
        mask, steps = batch.attention_mask, self.steps
        on = off = None
        with model.dropout_off():
            x = embedded(model, batch)
            with _layer_inputs(model) as inputs:
                hidden, logits = model.encode_and_classify(x, mask)
            h = _second(inputs, model)
            ce = cross_entropy(logits, batch.labels)
            if self.delta_on is not None:
                features = model.features(hidden, mask)
                distance = cosine_distance(features, features.detach()[partners])
                (p,) = torch.autograd.grad(distance.sum(), h, retain_graph=True)
                on = _inner_steps(on_step, model, x.detach(), mask, p, self.delta_on, steps)
            ce, p = differentiate(ce, h, model.model.parameters())
            if self.delta_off is not None:
                off = _inner_steps(off_step, model, x.detach(), mask, p, self.delta_off, steps)
        return Solution(ce, on, off)


def _inner_steps(
    step: Step, model: SplitModel, x: Tensor, mask: Tensor, p: Tensor, delta: float, steps: int
) -> Tensor:
    """z after k steps along the gradient of p·f₀."""
    z = x
    for _ in range(steps):
        z = z.detach().requires_grad_()
        (gradient,) = torch.autograd.grad((p * _first_layer(model, z, mask)).sum(), z)
        z = step(x, z.detach(), gradient, delta)
    return z


def _first_layer(model: SplitModel, z: Tensor, mask: Tensor) -> Tensor:
    """f₀(z): the model's own forward pass, left where it enters the second layer."""
    with _layer_inputs(model, most=2) as inputs:
        model.encode(z, mask)
    h: Tensor = inputs[1]
    return h


class _Enough(Exception):
    """Leaves a forward pass; never seen outside of this module."""


@contextmanager
def _layer_inputs(model: SplitModel, most: int | None = None) -> Iterator[list[Any]]:
    """The hidden states that each layer of the encoder is called with, of the first ``most`` layers.

    Calls are counted rather than modules, since ALBERT calls one layer many times; and the input of the
    second layer is taken rather than the output of the first, since DeBERTa may convolve in between.
    """
    inputs: list[Any] = []

    def note(_: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        inputs.append(args[0] if args else kwargs.get("hidden_states"))
        if len(inputs) == most:
            raise _Enough

    modules = model.model.base_model.modules()
    layers = next((module for module in modules if isinstance(module, nn.ModuleList)), ())
    handles = [layer.register_forward_pre_hook(note, with_kwargs=True) for layer in layers]
    try:
        yield inputs
    except _Enough:
        pass
    finally:
        for handle in handles:
            handle.remove()


def _second(inputs: list[Any], model: SplitModel) -> Tensor:
    """The input of the second layer, if these are the inputs of the encoder's layers."""
    name = type(model.model).__name__
    layers = getattr(model.model.config, "num_hidden_layers", None)
    if len(inputs) != layers or not all(isinstance(hidden, Tensor) for hidden in inputs):
        raise UserError(
            f"The solver 'yopo' cannot tell which layer of {name} is the first; take solver='shared'."
        )
    if layers < 2:
        raise UserError(
            f"The solver 'yopo' needs an encoder of at least 2 layers, and this {name} has {layers}; take "
            "solver='shared'."
        )
    h: Tensor = inputs[1]
    return h
