"""Where fine-tuning starts: with the linear probe as the head."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from calibrant._system import processes
from calibrant.models.probe import Probe, fit_probe, head_inputs, head_layer
from calibrant.types import Progress


def start_head(
    model: Any,
    rows: Sequence[Sequence[int]],
    labels: NDArray[np.integer],
    padding: int,
    progress: Progress | None = None,
    class_weights: NDArray[np.float64] | None = None,
) -> Probe:
    """Give the model, in evaluation mode, the probe of these tokenised texts as its last layer."""
    layer = head_layer(model, rows, padding)
    found = processes.in_shares(
        rows, lambda own: {"features": head_inputs(model, layer, own, padding, progress)}
    )
    classes = model.config.num_labels
    probe = processes.on_main(lambda: fit_probe(found["features"], labels, classes, class_weights))
    with torch.no_grad():
        layer.weight.copy_(torch.from_numpy(probe.weight))
        if layer.bias is not None:
            layer.bias.copy_(torch.from_numpy(probe.bias))
    return probe
