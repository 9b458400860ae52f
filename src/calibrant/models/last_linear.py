"""The layer that makes the logits."""

from typing import Any

import torch
from torch import Tensor, nn

from calibrant.errors import UserError


def last_linear(model: Any, **inputs: Tensor) -> nn.Linear:
    """The last linear layer with K outputs to run on this batch.

    Heads name it as they like (classifier, out_proj, score, …), so it is found by running the model. Whether
    its output is the logits is for the caller to check, by what comes of changing it.
    """
    classes: int = model.config.num_labels
    ran: list[nn.Linear] = []
    hooks = [
        module.register_forward_hook(lambda layer, *_: ran.append(layer))
        for module in model.modules()
        if isinstance(module, nn.Linear) and module.out_features == classes
    ]
    try:
        with torch.inference_mode():
            model(**inputs)
    finally:
        for hook in hooks:
            hook.remove()
    if not ran:
        raise UserError(
            f"{type(model).__name__} has no linear layer with {classes} outputs, a class each, "
            "that could take a calibrator in; use calibrant.load on the run itself."
        )
    return ran[-1]
