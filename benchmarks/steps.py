"""One training step of each kind, all behind the same call."""

from collections.abc import Callable

import torch

from calibrant.models import fast
from calibrant.models.pretrained import load_classifier
from calibrant.models.split import SplitModel
from calibrant.objectives import CrossEntropy, ManifoldSmoothing, Objective
from calibrant.types import Batch
from plain import algorithm_1, fine_tuning

OURS: dict[str, Objective] = {
    "pgd": ManifoldSmoothing(solver="pgd"),
    "shared": ManifoldSmoothing(solver="shared"),
    "plain": CrossEntropy(),
    "cheapest": ManifoldSmoothing(share=1 / 3),
}
YARDSTICKS = {"naive plain": fine_tuning, "published": algorithm_1}
STEPS = (*YARDSTICKS, *OURS)


def make_step(name: str, classes: int, gradient_checkpointing: bool = False) -> Callable[[Batch], float]:
    """A step with a model and an optimizer of its own."""
    torch.manual_seed(0)
    model, _ = load_classifier("minilm", tuple(map(str, range(classes))))
    if name in YARDSTICKS:
        optimizer = torch.optim.Adam(model.parameters(), lr=5e-5)
        return lambda batch: YARDSTICKS[name](
            model, optimizer, batch.input_ids, batch.attention_mask, batch.labels
        )
    fast.apply(model)
    if gradient_checkpointing:
        model.gradient_checkpointing_enable()
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-5, fused=True)
    split, objective = SplitModel(model), OURS[name]

    def step(batch: Batch) -> float:
        loss = objective.loss(split, batch).total
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.item()

    return step
