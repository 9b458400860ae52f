"""Adapters (LoRA) beside training all weights, on banking77 with 50 of its classes.

    CALIBRANT_DATA=… python benchmarks/lora.py all lora-8 lora-8-smoothing
    CALIBRANT_DATA=… python benchmarks/lora.py lora-8 --learning-rate 2e-4 --learning-rate 1e-3
    CALIBRANT_DATA=… python benchmarks/lora.py --steps
    python benchmarks/lora.py --table

Texts are those of benchmarks/recipe.py: 2,000 to train, 500 for dev, the classes left out as unfamiliar text
that is near, questions of Yahoo as text that is far. One JSON file for each variant, rate and seed lies in
results/lora; one that is there is not made again. One thread. The rate is chosen by dev alone.
"""

import argparse
import json
import os
import shlex
import shutil
import statistics
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

import torch

from calibrant import RunConfig
from calibrant._system.device import machine
from calibrant.classifier import of_run
from calibrant.data.encode import encode, model_inputs
from calibrant.metrics.measure import measure
from calibrant.models import fast
from calibrant.models.lora import with_lora
from calibrant.models.pretrained import load_classifier
from calibrant.models.split import SplitModel
from calibrant.objectives import CrossEntropy, ManifoldSmoothing
from calibrant.runs import checkpoints
from calibrant.tasks import train as task
from calibrant.types import Batch, Prediction
from recipe import split

OUT = Path(__file__).parents[1] / "results" / "lora"
VARIANTS = {
    "all": {"keep": "refinement"},
    "lora-8": {"keep": "refinement", "lora": 8},
    "lora-8-smoothing": {"keep": "refinement", "lora": 8, "objective": {"name": "manifold-smoothing"}},
}
MB = 1e6
STEPS = 6


def size(folder: Path) -> float:
    return round(sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / MB, 2)


def run(variant: str, rate: float | None, seed: int) -> dict:
    splits, asked = split("banking77", seed)
    task.load_splits = lambda config: splits  # the texts are drawn there
    config = RunConfig(train="texts of the benchmark", seed=seed, learning_rate=rate, **VARIANTS[variant])
    folder, sizes = Path(tempfile.mkdtemp(prefix="lora-")), []
    keep = checkpoints.seal

    def seal(checkpoint: Path) -> None:
        sizes.append(size(checkpoint))
        keep(checkpoint)

    checkpoints.seal = seal
    try:
        made = task.train(config, out=folder / "run")
        weights = "adapter/adapter_model.safetensors" if config.lora else "model/model.safetensors"
        stored = {
            "what was trained": round((folder / "run" / weights).stat().st_size / MB, 2),
            "checkpoint": sizes[-1],
            "run": size(folder / "run"),
        }
        classifier = of_run(made)
        said = {part: classifier.outputs(texts.texts) for part, texts in asked.items()}
    finally:
        checkpoints.seal = keep
        shutil.rmtree(folder)
    familiar = Prediction(said["test"].probabilities, classifier.class_ids(asked["test"]))
    figures = measure(familiar, None)
    figures |= {
        part: measure(familiar, Prediction(said[part].probabilities))["ood"] for part in ("near", "far")
    }
    training = made.training
    dev = [entry["eval_refinement"] for entry in training.history if "eval_refinement" in entry]
    return {
        "variant": variant,
        "seed": seed,
        "settings": config.model_dump(exclude_defaults=True),
        "texts": {name: len(part) for name, part in {"train": splits.train, **asked}.items()},
        "seconds": training.seconds,
        "work_seconds": training.work_seconds,
        "epochs_run": len(dev) - 1,
        "best_epoch": training.best_epoch,
        "dev_refinement": max(dev),
        "dev_refinement_by_epoch": dev,
        "megabytes": stored,
        "figures": figures,
        **about(),
    }


def about() -> dict:
    return {
        "command": shlex.join(["python", *sys.argv]),
        "versions": {name: version(name) for name in ("calibrant", "torch", "transformers", "peft")},
        "machine": machine(),
    }


def steps() -> dict:
    """CPU seconds of a training step of 32 texts, forward, backward and update: the median of some."""
    splits, _ = split("banking77", 0)
    found: dict = {}
    for objective in (CrossEntropy(), ManifoldSmoothing()):
        for rank in (None, 8):
            torch.manual_seed(0)
            model, tokenizer = load_classifier("minilm", splits.label_names, pooling="first+mean")
            model = model if rank is None else with_lora(model, rank, None, "minilm")
            seen = SplitModel(model.train())
            fast.apply(seen.model)
            trained = [weight for weight in model.parameters() if weight.requires_grad]
            optimizer, seconds = torch.optim.AdamW(trained, lr=2e-4), []
            for number in range(STEPS + 1):  # the first is slower
                texts = splits.train.texts[32 * number : 32 * (number + 1)]
                inputs = model_inputs(encode(tokenizer, texts, 128), tokenizer.pad_token_id)
                began = time.process_time()
                objective.loss(seen, Batch(**inputs, labels=torch.arange(32) % 50)).total.backward()
                optimizer.step()
                optimizer.zero_grad()
                seconds.append(time.process_time() - began)
            what = f"{objective.name}, {'all weights' if rank is None else f'LoRA of rank {rank}'}"
            found[what] = {
                "trained weights": sum(weight.numel() for weight in trained),
                "CPU seconds a step": round(statistics.median(seconds[1:]), 3),
            }
    return found


def table() -> None:
    columns = (
        "MB trained",
        "MB of a checkpoint",
        "epochs",
        "s of CPU",
        "s an epoch",
        "dev",
        "accuracy",
        "ECE",
    )
    print(f"| variant | rate | {' | '.join(columns)} | near AUROC | far AUROC |")
    print("|---" * (len(columns) + 4) + "|")
    for path in sorted(OUT.glob("*_seed=*.json")):
        one = json.loads(path.read_text())
        stored, figures = one["megabytes"], one["figures"]
        cells = (
            one["variant"],
            one["settings"].get("learning_rate", "default"),
            stored["what was trained"],
            stored["checkpoint"],
            f"{one['best_epoch']:g} of {one['epochs_run']}",
            f"{one['work_seconds']:.0f}",
            f"{one['work_seconds'] / one['epochs_run']:.0f}",
            f"{one['dev_refinement']:.4f}",
            f"{figures['accuracy']:.1%}",
            f"{figures['ece']:.1%}",
            f"{figures['near']['auroc']:.1%}",
            f"{figures['far']['auroc']:.1%}",
        )
        print("| " + " | ".join(map(str, cells)) + " |")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("variants", nargs="*", help=", ".join(VARIANTS))
    parser.add_argument("--learning-rate", type=float, action="append")
    parser.add_argument("--seeds", nargs="*", type=int, default=[0])
    parser.add_argument("--steps", action="store_true", help="time single steps")
    parser.add_argument("--table", action="store_true")
    arguments = parser.parse_args()
    if arguments.table:
        return table()
    torch.set_num_threads(1)
    OUT.mkdir(parents=True, exist_ok=True)
    if arguments.steps:
        path = OUT / "steps.json"
        path.write_text(json.dumps(steps() | about(), indent=1) + "\n")
        return None
    for seed in arguments.seeds:
        for variant in arguments.variants:
            for rate in arguments.learning_rate or [None]:
                named = variant if rate is None else f"{variant}_learning_rate={rate:g}"
                path = OUT / f"{named}_seed={seed}.json"
                if path.exists():
                    continue
                found = run(variant, rate, seed)
                path.write_text(json.dumps(found, indent=1) + "\n")
                print(path.stem, found["dev_refinement"], found["figures"]["accuracy"], flush=True)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
