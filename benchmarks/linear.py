"""What linear layers by way of oneDNN gain: single layers, and whole steps with and without, interleaved.

    python benchmarks/linear.py

MKL's seconds over oneDNN's, the median of each round's own ratio and its range.
"""

import math
import time
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path

import torch
from transformers import AutoTokenizer
from transformers.utils import logging

from calibrant._system.atomic import write_json
from calibrant._system.device import machine
from calibrant.models.fast import linear
from calibrant.models.fast.linear import ConvolvedLinear
from calibrant.models.pretrained import default_encoder
from others import spread
from steps import make_step
from workloads import WORKLOADS, prepare

OUT = Path(__file__).parents[1] / "results" / "onednn-linear-layers" / "ratios.json"
SIZES = ((384, 384), (384, 1536), (1536, 384), (768, 768), (768, 3072), (3072, 768))  # MiniLM's and BERT's
# Texts, tokens; the first are too short, so that both sides are MKL.
BATCHES = ((256, 8), (128, 16), (64, 32), (32, 32), (8, 128), (32, 64))
LAYER_ROUNDS, ROUNDS = 9, 4
TOKENS = linear.TOKENS


def with_and_without(run) -> dict[str, float]:
    """MKL/oneDNN for each part of the work that ``run`` names."""
    parts = {}
    for name, tokens in (("mkl", math.inf), ("onednn", TOKENS)):
        linear.TOKENS = tokens
        parts[name] = run()
    return {part: parts["mkl"][part] / parts["onednn"][part] for part in parts["mkl"]}


def rounds(run, n: int) -> dict[str, dict[str, float]]:
    """Of n rounds after one to warm up."""
    found = [with_and_without(run) for _ in range(n + 1)][1:]
    return {part: spread([ratios[part] for ratios in found]) for part in found[0]}


def layer(inputs: int, outputs: int, texts: int, tokens: int):
    """One layer: forward, input gradient, weight gradient."""
    module = ConvolvedLinear(inputs, outputs)
    x, g = torch.randn(texts, tokens, inputs, requires_grad=True), torch.randn(texts, tokens, outputs)

    def run() -> dict[str, float]:
        times = [time.perf_counter()]
        y = module(x)
        times.append(time.perf_counter())
        torch.autograd.grad(y, x, g, retain_graph=True)
        times.append(time.perf_counter())
        torch.autograd.grad(y, list(module.parameters()), g)
        times.append(time.perf_counter())
        return {
            part: b - a for part, (a, b) in zip(("forward", "input", "weight"), pairwise(times), strict=True)
        }

    return run


def step(kind: str, material):
    """A pass of training steps over the batches."""
    take = make_step(kind, material.classes)

    def run() -> dict[str, float]:
        started = time.perf_counter()
        for batch in material.grouped:
            take(batch)
        return {kind: time.perf_counter() - started}

    return run


def main() -> None:
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    layers = [
        {"inputs": i, "outputs": o, "texts": b, "tokens": t, **rounds(layer(i, o, b, t), LAYER_ROUNDS)}
        for b, t in BATCHES
        for i, o in SIZES
    ]
    for row in layers:
        print(*(f"{value:.2f}" if isinstance(value, float) else value for value in flat(row)))
    tokenizer, steps = AutoTokenizer.from_pretrained(default_encoder()), {}
    for workload in WORKLOADS:
        material = prepare(workload, tokenizer)
        steps[workload.name] = {
            kind: rounds(step(kind, material), ROUNDS)[kind] for kind in ("shared", "plain")
        }
        print(workload.name, steps[workload.name])
    write_json(
        OUT,
        {
            "command": "python benchmarks/linear.py",
            "versions": {name: version(name) for name in ("calibrant", "torch", "transformers")},
            "machine": machine(),
            "layers": layers,
            "steps": steps,
        },
    )


def flat(row: dict) -> list:
    return [value["median"] if isinstance(value, dict) else value for value in row.values()]


if __name__ == "__main__":
    main()
