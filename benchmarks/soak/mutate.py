"""Damage the records, metrics and states of a run in every way, and read them: each is read or refused in one
sentence, and no number that comes out is NaN.

    python benchmarks/soak/mutate.py --count 3000
"""

import argparse
import hashlib
import json
import random
import shutil
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load, save

import calibrant
from calibrant._system.strict_json import dumps
from calibrant.errors import UserError
from calibrant.runs import store
from calibrant.runs.card import model_card
from calibrant.training import StopByItself

TEXTS = ["a card was lost", "x"]
ODD = (
    *(None, True, "", "x", "\n# forged `", "../../etc/passwd", [], {}, [None], {"a": 1}),
    *(0, -1, 1.5, 10**30, -1e300, float("nan"), float("inf"), [[[1.0]]]),
)
STATE = {
    **{"best_metric": 0.5, "best_global_step": 3, "best_model_checkpoint": "checkpoint-3", "epoch": 1.0},
    **{
        "global_step": 3,
        "max_steps": 9,
        "num_train_epochs": 3,
        "train_batch_size": 16,
        "is_hyper_param_search": False,
    },
    "log_history": [{"epoch": 1.0, "eval_selection": 0.5, "step": 3}, {"epoch": 1.0, "loss": 0.7, "step": 3}],
    "stateful_callbacks": {"Watch": {"args": {}, "attributes": {"seconds": 1.0, "work_seconds": 1.0}}},
}


def damaged_bytes(content: bytes, rng: random.Random) -> bytes:
    """A few bytes changed, a part cut out, the end cut off, or a part written twice."""
    data = bytearray(content)
    start, stop = sorted(rng.randrange(len(data) + 1) for _ in range(2))
    kind = rng.randrange(4)
    if kind == 0:
        for _ in range(rng.randint(1, 4)):
            data[rng.randrange(len(data))] = rng.randrange(256)
    elif kind == 1:
        del data[start:stop]
    elif kind == 2:
        del data[start:]
    else:
        data[start:start] = data[start:stop]
    return bytes(data)


def damaged_value(value: Any, rng: random.Random) -> Any:
    """One part of a JSON value, however deep, gone or in the place of something odd."""
    if isinstance(value, dict | list) and value and rng.random() < 0.85:
        key = rng.choice(list(value) if isinstance(value, dict) else range(len(value)))
        if rng.random() < 0.15:
            del value[key]
        else:
            value[key] = damaged_value(value[key], rng)
        return value
    return rng.choice(ODD)


def damaged_json(content: bytes, rng: random.Random) -> bytes:
    """By its bytes, by its values, or nested too deeply."""
    kind = rng.random()
    if kind < 0.3:
        return damaged_bytes(content, rng)
    if kind < 0.32:
        return b"[" * 100_000
    value = json.loads(content)
    for _ in range(rng.randint(1, 3)):
        value = damaged_value(value, rng)
    return json.dumps(value).encode()


def damaged_arrays(content: bytes, rng: random.Random) -> bytes:
    """By its bytes, or by an array of another shape, type or with NaN in it."""
    if rng.random() < 0.4:
        return damaged_bytes(content, rng)
    arrays = load(content)
    name = rng.choice(list(arrays))
    array = arrays[name]
    kind = rng.randrange(6)
    if kind == 0:
        del arrays[name]
    elif kind == 1:
        arrays[name] = np.full_like(
            array, rng.choice([0, -1, 7] if array.dtype.kind == "i" else [np.nan, np.inf, 0, 1e300])
        )
    elif kind == 2:
        arrays[name] = np.ascontiguousarray(array[..., : rng.randrange(array.shape[-1] + 1)])
    elif kind == 3:
        arrays[name] = array.reshape(-1)
    elif kind == 4:
        arrays[name] = array.astype(rng.choice(["int8", "float16", "bool", "uint64"]))
    else:
        arrays["more"] = array
    return save(arrays)


def answers(run: Path) -> None:
    """Load it, and have it answer."""
    classifier = calibrant.load(run)
    for decision in classifier.predict(TEXTS):
        dumps(vars(decision))


def of_record(run: Path, rng: random.Random) -> None:
    """``calibrant.json``."""
    path = run / "calibrant.json"
    path.write_bytes(damaged_json(path.read_bytes(), rng))
    answers(run)
    changed = store.load(run).updated()  # which writes it again
    dumps(changed.record.model_dump(mode="json"))


def of_metrics(run: Path, rng: random.Random) -> None:
    """``metrics.json``."""
    path = run / "metrics.json"
    path.write_bytes(damaged_json(path.read_bytes(), rng))
    read = store.load(run)
    model_card(read.name, read.record, read.metrics())


def of_calibrator(run: Path, rng: random.Random) -> None:
    """The arrays of the calibrator, with a record that believes in them."""
    (path,) = run.glob("calibrator-*.safetensors")
    content = damaged_arrays(path.read_bytes(), rng)
    record = json.loads((run / "calibrant.json").read_text())
    digest = record["calibrator"]["arrays"] = hashlib.sha256(content).hexdigest()
    (run / "calibrant.json").write_text(json.dumps(record))
    (run / f"calibrator-{digest[:16]}.safetensors").write_bytes(content)
    answers(run)


def of_dev(run: Path, rng: random.Random) -> None:
    """``dev.safetensors``."""
    path = run / "dev.safetensors"
    path.write_bytes(damaged_bytes(path.read_bytes(), rng))
    calibrant.load(run).predict_set(TEXTS, coverage=0.5)


def of_state(run: Path, rng: random.Random) -> None:
    """``trainer_state.json`` of a checkpoint."""
    folder = run / "checkpoints" / "checkpoint-3"
    folder.mkdir(parents=True)
    (folder / "trainer_state.json").write_bytes(damaged_json(json.dumps(STATE).encode(), rng))
    StopByItself("selection", patience=2).epochs(3, folder)


KINDS: dict[Callable[[Path, random.Random], None], int] = {  # with their shares
    of_record: 8,
    of_metrics: 4,
    of_calibrator: 4,
    of_dev: 2,
    of_state: 2,
}


def mutate(run: Path, count: int, seed: int = 0) -> tuple[Counter[str], list[str]]:
    """How many were read and how many refused, and the traceback of each that was neither.

    ``run`` has a calibrator with arrays, metrics and answers on dev; it is not changed.
    """
    counts: Counter[str] = Counter()
    failures = []
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number in range(count):
            rng = random.Random(f"{seed} {number}")
            (kind,) = rng.choices(list(KINDS), list(KINDS.values()))
            copy = Path(folder) / "run"
            shutil.copytree(run, copy)
            try:
                kind(copy, rng)
                counts["read"] += 1
            except UserError as error:
                counts["refused" if "\n" not in str(error) else "several lines"] += 1
            except Exception:
                counts["traceback"] += 1
                failures.append(f"{kind.__name__}, number {number}:\n{traceback.format_exc()}")
            shutil.rmtree(copy)
    return counts, failures


def make_run(folder: Path) -> Path:
    """A small run with all that can be damaged."""
    config = calibrant.RunConfig(
        dataset="smoke", model="textcnn", method="bert", calibrator="temperature+familiarity", epochs=2
    )
    run = calibrant.train(config, out=folder / "run").path
    calibrant.evaluate(run, test="smoke")
    calibrant.load(run).answer_dev()
    return run


def main() -> int:
    """Print one line of counts, and each failure on standard error."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    import transformers

    transformers.utils.logging.disable_progress_bar()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        counts, failures = mutate(make_run(Path(folder)), asked.count, asked.seed)
    for failure in failures:
        print(failure, file=sys.stderr)
    print(f"mutated: {asked.count}, " + ", ".join(f"{what} {n}" for what, n in sorted(counts.items())))
    return 1 if counts.keys() - {"read", "refused"} else 0


if __name__ == "__main__":
    raise SystemExit(main())
