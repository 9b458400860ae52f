"""Classes that count more than others, in every objective that has a cross-entropy.

    −w_y·log p_y,   and −Σ_k w_k·y′_k·log p_k where labels are mixed or smoothed, as in torch

The mean is over the texts, and not over their weights as in torch: a step is then the same however its texts
are spread over micro-batches and processes. With weights whose mean over all training texts is 1, the two
agree over an epoch.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.functional import cross_entropy
from torch.overrides import TorchFunctionMode

from calibrant.errors import UserError
from calibrant.models.split import SplitModel
from calibrant.objectives.base import Loss, Objective
from calibrant.types import Batch


class ClassWeights(TorchFunctionMode):
    """Within, torch's cross-entropy weighs texts by class. No objective, ours or a plug-in's, has to."""

    def __init__(self, weights: Sequence[float] | NDArray[np.floating], classes: int) -> None:
        super().__init__()
        self.weights = torch.as_tensor(weights, dtype=torch.float64)
        if self.weights.shape != (classes,):
            raise UserError(f"class_weights: expected one of each of the {classes} classes, got {weights}.")
        if not (self.weights.isfinite() & (self.weights > 0)).all():
            raise UserError(f"class_weights must be numbers above 0, got {weights}.")
        self.reached = False

    def loss(self, objective: Objective, model: SplitModel, batch: Batch) -> Loss:
        """The objective's, weighted."""
        with self:
            loss = objective.loss(model, batch)
        if not self.reached:
            raise UserError(
                f"The objective {objective.name!r} does not call torch's cross_entropy, so class weights do "
                "nothing in it; leave them out."
            )
        return loss

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is not cross_entropy or kwargs.get("weight") is not None:
            return func(*args, **kwargs)
        self.reached = True
        each = func(*args, **kwargs | {"weight": self.weights.to(args[0]), "reduction": "none"})
        reduction = kwargs.get("reduction", "mean")
        return each if reduction == "none" else getattr(each, reduction)()
