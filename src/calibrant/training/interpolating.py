"""Between the start and the end of fine-tuning: the point of the line that is best on dev.

    θ(s) = θ₀ + s·(θ₁ − θ₀),    s* = argmin_s min_T NLL_dev(softmax(z_θ(s) / T))

θ₀ are the weights of the start, the linear probe, and θ₁ those of the last epoch. Fine-tuning learns the
classes and forgets some of what the encoder knew; on the way both are there (WiSE-FT, Wortsman et al. 2022,
Robust Fine-Tuning of Zero-Shot Models). It costs a few passes over dev, and nothing where the model is used.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import Dataset

from calibrant.training.trainer import CalibratedTrainer

Weights = Mapping[str, Tensor]
INNER = (0.2, 0.4, 0.6, 0.8)


def copied(model: Any) -> dict[str, Tensor]:
    """Its weights as they are now, in main memory: a GPU may have no room for them beside the optimizer's."""
    return {name: value.detach().to("cpu", copy=True) for name, value in model.state_dict().items()}


def between(start: Weights, end: Weights, share: float) -> dict[str, Tensor]:
    """θ(s); what is no float, such as positions, is the end's.

    >>> between({"w": torch.tensor([0.0, 2.0])}, {"w": torch.tensor([1.0, 2.0])}, 0.25)["w"]
    tensor([0.2500, 2.0000])
    """
    return {
        name: torch.lerp(start[name], last, share) if last.is_floating_point() else last
        for name, last in end.items()
    }


def interpolate(
    trainer: CalibratedTrainer, start: Weights, dev: Dataset[Any], ends: Mapping[float, dict[str, float]]
) -> list[dict[str, float]]:
    """Leave the best point in the trainer's model. What dev says of all points, best first.

    ``ends`` is what it said of the two ends while training.
    """
    model: Any = trainer.model
    end = copied(model)
    found = {share: dict(entry) for share, entry in ends.items()}
    for share in INNER:
        model.load_state_dict(between(start, end, share))
        figures = trainer.predict(dev, metric_key_prefix="eval").metrics
        found[share] = {name: value for name, value in figures.items() if name in ends[1.0]}
    last = ends[1.0]["epoch"]
    points = [found[share] | {"epoch": last if share else 0.0, "share": share} for share in sorted(found)]
    points.sort(key=lambda point: point["eval_refinement"], reverse=True)
    model.load_state_dict(between(start, end, points[0]["share"]))
    return points
