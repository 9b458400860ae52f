"""MMCE: a calibration error of the batch that can be differentiated."""

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from calibrant.errors import UserError
from calibrant.models.split import SplitModel
from calibrant.objectives.base import Loss, Objective
from calibrant.types import Batch

WIDTH = 0.4
"""Of the Laplacian kernel, as in the paper."""


def kernel_calibration_error(confidence: Tensor, correct: Tensor) -> Tensor:
    """MMCE_m = (1/m²·Σ_ij (c_i − r_i)·(c_j − r_j)·k(r_i, r_j))^½ with k(r, r′) = exp(−|r − r′| / 0.4).

    Args:
        confidence: r, (m,).
        correct: c, (m,), 1 where the prediction is right and 0 where it is wrong.

    Returns:
        A scalar, 0 where confidence and accuracy agree; its gradient is finite there too.
    """
    error = correct - confidence
    kernel = torch.exp(-(confidence.unsqueeze(1) - confidence).abs() / WIDTH)
    squared = (error.unsqueeze(1) * error * kernel).mean()
    # The root has no slope at 0, and rounding may go below; there the clamp passes no gradient on.
    return squared.clamp_min(torch.finfo(squared.dtype).tiny).sqrt()


@dataclass(frozen=True)
class MMCE(Objective):
    """CE + weight·MMCE_m (section 4 of the paper).

    The paper's other estimator, MMCE_w, weighs the right and the wrong predictions of a batch alike;
    it is then no longer 0 where confidence equals accuracy.
    """

    name: ClassVar[str] = "mmce"
    about: ClassVar[str] = "Closes the gap between confidence and accuracy."
    citation: ClassVar[str] = (
        "Kumar et al. (2018), Trainable Calibration Measures for Neural Networks from Kernel Mean Embeddings"
    )
    terms: ClassVar[dict[str, str]] = Objective.terms | {"mmce": "gap between confidence and accuracy"}

    weight: float = 4.0

    def __post_init__(self) -> None:
        if not 0 <= self.weight < math.inf:
            raise UserError(f"`weight` must lie in [0, ∞), got {self.weight}.")

    def loss(self, model: SplitModel, batch: Batch) -> Loss:
        """Both terms of one batch; which predictions are right is a constant."""
        logits = model(model.embed(batch.input_ids, batch.token_type_ids), batch.attention_mask)
        ce = cross_entropy(logits, batch.labels)
        confidence, predicted = logits.softmax(dim=-1).max(dim=-1)
        mmce = kernel_calibration_error(confidence, (predicted == batch.labels).to(confidence.dtype))
        return Loss(ce + self.weight * mmce, {"ce": ce.detach(), "mmce": mmce.detach()})
