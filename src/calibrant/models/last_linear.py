"""The layer that makes the logits."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from calibrant.errors import UserError


@contextmanager
def watched(model: Any) -> Iterator[list[tuple[nn.Linear, Tensor]]]:
    """Within, every linear layer with K outputs that runs is put into the list, with what it reads, (B, w).

    Heads name the layer that makes the logits as they like (classifier, out_proj, score, …), but it is the
    last of these.
    """
    ran: list[tuple[nn.Linear, Tensor]] = []
    hooks = [
        module.register_forward_pre_hook(lambda layer, inputs: ran.append((layer, inputs[0])))
        for module in model.modules()
        if isinstance(module, nn.Linear) and module.out_features == model.config.num_labels
    ]
    try:
        yield ran
    finally:
        for hook in hooks:
            hook.remove()


def last_linear(model: Any, **inputs: Tensor) -> nn.Linear:
    """The last linear layer with K outputs to run on this batch.

    Whether its output is the logits is for the caller to check, by what comes of changing it.
    """
    with torch.inference_mode(), watched(model) as ran:
        model(**inputs)
    if not ran:
        raise UserError(
            f"{type(model).__name__} has no linear layer with {model.config.num_labels} outputs, a class "
            "each, that could take a calibrator in; use calibrant.load on the run itself."
        )
    return ran[-1][0]
