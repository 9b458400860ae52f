"""What happens beside the steps: times, lines, checkpoints, and when training stops."""

import logging
import math
import random
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import TrainerCallback, TrainingArguments
from transformers.trainer_callback import ExportableState
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR

from calibrant._system import processes
from calibrant._system.device import work_seconds
from calibrant.objectives import Objective
from calibrant.training.state import read_state
from calibrant.types import Progress

logger = logging.getLogger(__name__)


class StopByItself(TrainerCallback):  # type: ignore[misc]
    """Ends training after some epochs that were no better than the best so far, the start included.

    It looks at the log alone, which checkpoints hold, so that a resumed training stops where it would have.
    """

    def __init__(self, criterion: str, patience: int) -> None:
        self.criterion, self.patience = f"eval_{criterion}", patience

    def on_evaluate(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """After each epoch."""
        if self._enough(state.log_history):
            control.should_training_stop = True

    def epochs(self, asked: int, checkpoint: Path | None) -> int:
        """How many to train: as asked, or no more than the checkpoint has if training ended there."""
        if checkpoint is None:
            return asked
        state = read_state(checkpoint)
        return round(state.epoch) if self._enough(state.log_history) else asked

    def _enough(self, log: list[dict[str, float]]) -> bool:
        seen = [entry[self.criterion] for entry in log if self.criterion in entry]
        return bool(self.patience and seen) and len(seen) - 1 - int(np.argmax(seen)) >= self.patience


class Sealing(TrainerCallback):  # type: ignore[misc]
    """Has each checkpoint sealed once it is written, and finds the best one wherever the run lies now."""

    def __init__(self, seal: Callable[[Path], None]) -> None:
        self.seal = seal

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """After a checkpoint was read, whose own path may be of another working directory."""
        if state.best_global_step:
            state.best_model_checkpoint = str(_checkpoint(args, state.best_global_step))

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """After each checkpoint, once every process has written what is its own."""
        processes.on_main(lambda: self.seal(_checkpoint(args, state.global_step)))


def _checkpoint(args: TrainingArguments, step: int) -> Path:
    return Path(args.output_dir) / f"{PREFIX_CHECKPOINT_DIR}-{step}"


class Learnt(TrainerCallback, ExportableState):  # type: ignore[misc]
    """Keeps in each checkpoint what the objective learns beside the model."""

    def __init__(self, objective: Objective) -> None:
        self.objective = objective

    def state(self) -> dict[str, Any]:
        """What the Trainer writes into each checkpoint."""
        return {"args": {}, "attributes": self.objective.state()}

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """At the start, or after a checkpoint was read."""
        stored = state.stateful_callbacks.get(type(self).__name__, {"attributes": {}})
        self.objective.resume(stored["attributes"] if state.global_step else {})


class OwnDraws(TrainerCallback):  # type: ignore[misc]
    """Lets each process draw its own noise: dropout, partners, random starts.

    They begin with the same seed, so that their models do, and would draw the same all the way.
    """

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Before a checkpoint's own state of the generators is read."""
        if args.process_index:
            torch.manual_seed(random.Random(f"{args.seed} {args.process_index}").getrandbits(32))


class Watch(TrainerCallback, ExportableState):  # type: ignore[misc]
    """Tells a ``Progress`` how far training is, and sees to it that a long epoch is checkpointed too.

    It also times the training, by wall clock and by its own work. Checkpoints hold the time that led to
    them, so that a resumed training counts all of its steps and each of them once.
    """

    def __init__(self, progress: Progress, label: str, seconds_between_checkpoints: float = 300) -> None:
        self.progress, self.label = progress, label
        self.seconds = seconds_between_checkpoints
        self.saved = time.monotonic()
        self.begun = _clocks()
        self.before = dict.fromkeys(self.begun, 0.0)  # what led to the checkpoint from which training resumed

    def elapsed(self) -> dict[str, float]:
        """Seconds of training, those before an interruption included."""
        return {name: self.before[name] + now - self.begun[name] for name, now in _clocks().items()}

    def state(self) -> dict[str, Any]:
        """What the Trainer writes into each checkpoint."""
        return {"args": {}, "attributes": self.elapsed()}

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """At the start, or after a checkpoint was read."""
        if state.global_step:
            stored = state.stateful_callbacks.get(type(self).__name__, {"attributes": {}})
            self.before |= stored["attributes"]

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """After each optimizer step."""
        self.progress(self.label, state.global_step, state.max_steps)
        if processes.main_says(time.monotonic() - self.saved > self.seconds):
            control.should_save = True

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """After each checkpoint, whoever asked for it."""
        self.saved = time.monotonic()


class EpochLines(TrainerCallback):  # type: ignore[misc]
    """Logs a line after each epoch, as it happens; before the first, what the words in it mean."""

    def __init__(self, label: str, terms: Mapping[str, str]) -> None:
        self.label, self.terms = label, terms
        self.means: dict[str, float] = {}  # of the loss terms, which are logged before dev is measured
        self.explained = False

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, float], **kwargs: Any) -> None:
        """After the texts of an epoch were seen, and once more after dev was measured."""
        if "loss" in logs:
            self.means = {name: value for name, value in logs.items() if name in self.terms}
        elif "eval_accuracy" in logs:
            self.line(logs, self.means)

    def line(self, logs: Mapping[str, float], means: Mapping[str, float]) -> None:
        """Of one epoch; none where training has diverged, which is told where it ends."""
        if not all(map(math.isfinite, (logs["eval_nll"], *means.values()))):
            return
        if not self.explained and means:
            words = {name: self.terms[name] for name in means} | {"nll": "error on dev"}
            told = "; ".join(f"{name} is the {meaning}" for name, meaning in words.items())
            logger.info("In the lines below, %s.", told)
            self.explained = True
        shown = "".join(f"{name} {value:.4g}, " for name, value in means.items())
        dev = f"dev accuracy {logs['eval_accuracy']:.1%}, nll {logs['eval_nll']:.3f}"
        logger.info("%s, epoch %.0f: %s%s", self.label, logs["epoch"], shown, dev)


def _clocks() -> dict[str, float]:
    return {"seconds": time.monotonic(), "work_seconds": work_seconds()}
