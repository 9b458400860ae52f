"""What a step of each method costs beside plain fine-tuning: the column of `calibrant list methods`.

    python benchmarks/costs.py

Default hyper-parameters, the default encoder, a batch of 32 texts of 64 tokens, interleaved.
"""

import json
import statistics
import time
from pathlib import Path

import torch
from transformers import AutoTokenizer
from transformers.utils import logging

from calibrant._system.device import machine
from calibrant.methods import METHODS
from calibrant.models import fast
from calibrant.models.pretrained import default_encoder, load_classifier
from calibrant.models.split import SplitModel
from calibrant.objectives import objectives
from workloads import WORKLOADS, prepare

ROUNDS = 7
DEFAULT, STOCK = "calibrant", "no shortcuts"
"""Two more: the step of the default method, whose head reads all tokens, and of the model as it comes."""


def stepper(objective, batch, classes, pooling="native", shortcuts=True):
    """A step, with a model and an optimizer of its own."""
    model, _ = load_classifier("minilm", tuple(map(str, range(classes))), None, (), pooling)
    if shortcuts:
        fast.apply(model)
    model.train()
    split, optimizer = SplitModel(model), torch.optim.AdamW(model.parameters(), lr=5e-5, fused=True)

    def step():
        objective.loss(split, batch).total.backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def main() -> None:
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    workload = next(w for w in WORKLOADS if w.name == "20ng-64")
    material = prepare(workload, AutoTokenizer.from_pretrained(default_encoder()))
    same = material.grouped[0], material.classes
    steps = {name: stepper(objective(), *same) for name, objective in objectives().items()}
    default = METHODS[DEFAULT]
    steps[DEFAULT] = stepper(objectives()[default.objective](), *same, default.pooling)
    steps[STOCK] = stepper(objectives()["cross-entropy"](), *same, shortcuts=False)
    seconds: dict[str, list[float]] = {name: [] for name in steps}
    for _ in range(ROUNDS + 1):
        for name, step in steps.items():
            started = time.perf_counter()
            step()
            seconds[name].append(time.perf_counter() - started)
    found = {}
    for name, times in seconds.items():
        ratios = [a / b for a, b in zip(times, seconds["cross-entropy"], strict=True)][1:]  # less the warm-up
        found[name] = {"cost": statistics.median(ratios), "lowest": min(ratios), "highest": max(ratios)}
        print(f"{name:22} {found[name]['cost']:.2f} ({min(ratios):.2f}–{max(ratios):.2f})")
    rows = {method.name: method.objective for method in METHODS.values()}
    path = Path(__file__).parent / "costs.json"
    path.write_text(
        json.dumps({"steps": found, "rows": rows, "torch": torch.__version__, "machine": machine()}, indent=2)
        + "\n"
    )


if __name__ == "__main__":
    main()
