"""How long a study will take: real steps timed on this machine, times how many there are.

    seconds(training) = steps · c · s₁ + epochs · n_dev · p
    seconds(asking)   = passes · (n_dev + n_test + n_ood) · p + models · n_train · p

s₁ is a plain step and p the prediction of one text, both timed for each dataset and model, and c what a
step of the objective costs beside a plain one (``methods.METHODS``). Cells that ask the same model in the
same way ask it once. Not counted: the linear probe, fitted once for each dataset, what dev says of the start
and of the points between it and the end, and that training may stop before the last epoch. On a CPU what is
timed is its work, over the number of threads: the estimate is of a machine that does nothing else, however
busy it is just now.
"""

import platform
import random
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from pydantic import TypeAdapter, ValidationError

from calibrant._system.atomic import write_json
from calibrant._system.device import device, machine, work_seconds
from calibrant.config import RunConfig
from calibrant.methods import METHODS
from calibrant.recipe import read_recipe
from calibrant.runs.texts import load_splits
from calibrant.study.measuring import NEEDS, held_out
from calibrant.study.plan import Job, Training
from calibrant.types import Progress

STEPS = 6  # timed, after one that is not
CACHE = "step-times.json"


@dataclass(frozen=True)
class Times:
    """Of one dataset's settings and one model."""

    step: float  # seconds of a plain training step
    text: float  # seconds of predicting one text
    train: int  # texts
    dev: int
    held_out: int  # test and unfamiliar texts


def cost(training: Training) -> float:
    """Of a step, plain = 1; an objective that has not been measured counts as plain."""
    measured = METHODS[training.config.method].cost
    return 1.0 if measured is None else measured


def place(training: Training) -> tuple[str | None, str]:
    """Where a step takes the same time: dataset and model."""
    return training.config.dataset, training.config.model


def weight(job: Job) -> float:
    """How much of the study a job is, in plain steps."""
    return sum(cost(training) * training.steps for training in job.trainings)


def training_seconds(training: Training, times: Times) -> float:
    """To train it from the start, dev after each epoch included."""
    return training.steps * cost(training) * times.step + training.config.epochs * times.dev * times.text


def asking_seconds(job: Job, times: Times) -> float:
    """To ask its trained models as its cells say."""
    inferences = dict.fromkeys(cell.inference for cell in job.cells)
    passes = [getattr(each, "passes", each.members) for each in inferences]
    texts = sum(passes) * (times.dev + times.held_out)
    return float(texts + (len(job.trainings) * times.train if passes else 0)) * times.text


def measured_times(
    study: Path, trainings: Sequence[Training], max_test_samples: int | None, progress: Progress
) -> dict[tuple[str | None, str], Times]:
    """By ``place``; what was timed before on this machine is taken from the study's folder."""
    path = study / CACHE
    try:
        cache = TypeAdapter(dict[str, Times]).validate_json(path.read_bytes())
    except (OSError, ValidationError):  # it is timed again
        cache = {}
    here = f"{platform.node()}, {machine()}"
    found = {}
    for where, config in {place(t): t.config for t in trainings}.items():  # the last: not of a search
        changes = {"seed": 0, "method": "bert", "objective": {}, "calibrator": None, "epochs": 1}
        plain = config.model_copy(update=changes)
        key = plain.fingerprint(machine=here, max_test_samples=max_test_samples)
        if key not in cache:
            cache[key] = _measure(plain, max_test_samples, progress)
            study.mkdir(parents=True, exist_ok=True)
            write_json(path, {name: asdict(times) for name, times in cache.items()})
        found[where] = cache[key]
    return found


def _measure(config: RunConfig, max_test_samples: int | None, progress: Progress) -> Times:
    from transformers import set_seed

    from calibrant.data.encode import encode, pad
    from calibrant.inference.single import SinglePass
    from calibrant.models import fast
    from calibrant.models.pretrained import load_classifier
    from calibrant.models.split import SplitModel
    from calibrant.objectives import CrossEntropy
    from calibrant.types import Batch

    set_seed(0)
    splits = load_splits(config)
    pooling = read_recipe(config).method.pooling
    model, tokenizer = load_classifier(
        config.model, splits.label_names, config.layers, splits.train.texts, pooling
    )
    fast.apply(model.to(device()))
    split, optimizer = SplitModel(model), torch.optim.AdamW(model.parameters(), fused=True)
    rows = encode(
        tokenizer,
        random.Random(0).choices(splits.train.texts, k=STEPS * config.batch_size),
        config.max_length,
    )
    rows.sort(key=len)  # training groups its texts by length, too
    steps, predictions = [], []
    for number in (0, *range(STEPS)):  # the first once more, since the very first step is slower
        ids, mask = pad(rows[number * config.batch_size :][: config.batch_size], tokenizer.pad_token_id)
        labels = torch.zeros(len(ids), dtype=torch.long)
        batch = Batch(*(part.to(model.device) for part in (ids, mask, labels)))
        model.train()
        started = work_seconds()
        loss = CrossEntropy().loss(split, batch).total
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        optimizer.zero_grad()
        loss.item()  # waits for the device
        steps.append(work_seconds() - started)
        started = work_seconds()
        with torch.inference_mode():
            SinglePass().outputs([model.eval()], batch.input_ids, batch.attention_mask, NEEDS)["logits"].cpu()
        predictions.append((work_seconds() - started) / len(ids))
        progress(f"time steps of {config.model} on {config.dataset}", len(steps), 1 + STEPS)
    asked = sum(len(texts) for texts in held_out(splits.name, max_test_samples) if texts is not None)
    step, text = statistics.fmean(steps[1:]), statistics.fmean(predictions[1:])
    return Times(step, text, len(splits.train), len(splits.dev), asked)
