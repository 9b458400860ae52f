"""Where fine-tuning starts: with the linear probe as the head."""

from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from calibrant._system import processes
from calibrant.models.probe import fit_probe
from calibrant.types import Outputs


def start_head(
    layer: nn.Linear,
    said: Outputs | None,
    labels: NDArray[np.integer],
    class_weights: NDArray[np.float64] | None = None,
) -> Outputs | None:
    """Make a model's last layer the probe of what it reads of the training texts.

    ``said`` is what the model says of these, its ``head`` included. It comes back with the probe's logits.
    Of several processes the main one has it, and fits.
    """
    head = None if said is None else said.head
    classes = layer.out_features
    probe = processes.on_main(lambda: fit_probe(np.asarray(head), labels, classes, class_weights))
    with torch.no_grad():
        layer.weight.copy_(torch.from_numpy(probe.weight))
        if layer.bias is not None:
            layer.bias.copy_(torch.from_numpy(probe.bias))
    if said is None or head is None:
        return None
    return replace(said, logits=head @ probe.weight.T + probe.bias)
