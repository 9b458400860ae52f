"""One training loop for every objective, on ``transformers.Trainer``."""

import logging
import math
import random
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict, Field
from scipy.special import softmax
from torch import Tensor
from transformers import (
    EvalPrediction,
    PreTrainedModel,
    Trainer,
    TrainerCallback,
    TrainerState,
    TrainingArguments,
)
from transformers.trainer import TRAINER_STATE_NAME
from transformers.trainer_callback import ExportableState
from transformers.trainer_pt_utils import LengthGroupedSampler
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR

from calibrant._system.device import work_seconds
from calibrant._system.strict_json import loads
from calibrant.calibrators.temperature import refined_nll
from calibrant.errors import UserError
from calibrant.metrics.dev import dev_figures
from calibrant.models import fast
from calibrant.models.fast.first_token import first_token_only
from calibrant.models.split import SplitModel
from calibrant.objectives import CrossEntropy, Objective
from calibrant.types import Batch, Progress

logger = logging.getLogger(__name__)
CRITERIA = {"accuracy": "selection", "refinement": "refinement"}
"""Of ``dev_metrics``, by what a method calls the epoch to be kept."""


def dev_metrics(prediction: EvalPrediction) -> dict[str, float]:
    """The dev figures, and two criteria by which the best checkpoint can be chosen, both higher where better.

    selection = (correct + 1 / (1 + NLL)) / n orders by accuracy and, where that ties, by lower NLL:
    the second part is below the 1/n by which accuracies differ. refinement = −min_T NLL(softmax(z / T)): what
    a temperature mends is not held against an epoch.
    """
    logits, labels = np.asarray(prediction.predictions, dtype=np.float64), np.asarray(prediction.label_ids)
    if not np.isfinite(logits).all():  # diverged, which is told where training ends
        return dict.fromkeys(("accuracy", "confidence", "nll", "ece", *CRITERIA.values()), math.nan)
    figures = dev_figures(softmax(logits, axis=1), labels)
    correct, n = round(figures["accuracy"] * len(labels)), len(labels)
    selection = (correct + 1 / (1 + figures["nll"])) / n
    return {**figures, "selection": selection, "refinement": -refined_nll(logits, labels)}


class CalibratedTrainer(Trainer):  # type: ignore[misc]
    """A ``transformers.Trainer`` that minimises an objective of calibrant's.

    Takes the arguments of ``Trainer``, but for those that the objective makes senseless, which are
    refused; ``compute_metrics`` defaults to ``dev_metrics``. The loss of a step is the mean over its
    texts, however they are spread over accumulated micro-batches, and the objective's terms are logged
    beside it.
    """

    # compute_loss divides by the number of texts in the whole step itself.
    loss_is_scaled_for_ga = True

    def __init__(
        self,
        model: PreTrainedModel,
        args: TrainingArguments | None = None,
        *trainer_args: Any,
        objective: Objective | None = None,
        **trainer_kwargs: Any,
    ) -> None:
        if model is None or trainer_kwargs.get("model_init") is not None:
            raise UserError("CalibratedTrainer takes a model, not model_init; make one trainer a trial.")
        if trainer_kwargs.get("compute_loss_func") is not None:
            raise UserError("CalibratedTrainer minimises its objective; compute_loss_func would do nothing.")
        if any(weights.dtype in (torch.float16, torch.bfloat16) for weights in model.parameters()):
            raise UserError(
                "calibrant trains weights in float32, since smaller floats round δ away; load the model with "
                "dtype=torch.float32 (on a GPU, bf16=True still makes it fast)."
            )
        self.objective = objective if objective is not None else CrossEntropy()
        self.split = SplitModel(model)
        self.split.verify()
        trainer_kwargs.setdefault("compute_metrics", dev_metrics)
        super().__init__(model, args, *trainer_args, **trainer_kwargs)
        self.add_callback(Learnt(self.objective))
        if self.args.n_gpu > 1 or self.args.world_size > 1 or self.is_model_parallel:
            raise UserError(
                "calibrant trains on one device, because the objectives run parts of the model; "
                "set CUDA_VISIBLE_DEVICES to one GPU, and load the model without device_map."
            )
        if self.args.mixed_precision not in ("no", "bf16"):  # as the arguments or the launcher say
            raise UserError(
                "calibrant trains in float32 or bf16: fp16 needs its loss scaled, which does not reach the "
                "gradients that objectives take on the way; set bf16=True or neither."
            )
        if self.args.torch_compile:
            raise UserError("torch_compile does nothing here: the objectives run parts of the model.")
        if self.args.label_smoothing_factor:
            raise UserError(
                "label_smoothing_factor does nothing beside an objective; take objective=LabelSmoothing(…)."
            )
        self.model_accepts_loss_kwargs = True  # so that the texts of an accumulated step are counted
        self._sums: dict[str, Tensor | float] = defaultdict(float)
        self._summed_texts = 0

    def train(self, *args: Any, **kwargs: Any) -> Any:
        """As ``Trainer.train``. The model is quick meanwhile, and given back as it came."""
        fast.apply(self.model)
        try:
            return super().train(*args, **kwargs)
        finally:
            fast.remove(self.model)

    def compute_loss(
        self,
        model: PreTrainedModel,
        inputs: dict[str, Any],
        return_outputs: bool = False,
        num_items_in_batch: Tensor | int | None = None,
    ) -> Any:
        """The objective while training; cross-entropy, with the logits, while evaluating."""
        if not model.training:
            with first_token_only():
                outputs = model(**inputs)
            return (outputs.loss, outputs) if return_outputs else outputs.loss
        if inputs.get("token_type_ids") is not None and inputs["token_type_ids"].any():
            raise UserError(
                "The texts are pairs (their token_type_ids are not all 0), and calibrant trains on single "
                "texts; join each pair to one text."
            )
        batch = Batch(inputs["input_ids"], inputs["attention_mask"], inputs["labels"])
        with self.accelerator.autocast():
            loss = self.objective.loss(self.split, batch)
        for name, term in loss.terms.items():
            self._sums[name] += term * len(batch)
        self._summed_texts += len(batch)
        share = 1.0 if num_items_in_batch is None else len(batch) / num_items_in_batch
        return loss.total * share

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Add the mean of each loss term since the last log; stop where one is no longer a number."""
        if "loss" in logs and self._summed_texts:
            logs |= {name: float(total) / self._summed_texts for name, total in self._sums.items()}
            self._sums.clear()
            self._summed_texts = 0
            if not all(map(math.isfinite, logs.values())):
                self.control.should_training_stop = True
        super().log(logs, start_time)

    def _get_train_sampler(self, train_dataset: Any = None) -> Any:
        sampler = super()._get_train_sampler(train_dataset)
        if isinstance(sampler, LengthGroupedSampler):
            seed = self.args.seed if self.args.data_seed is None else self.args.data_seed
            return EpochSeededSampler(sampler, seed)
        return sampler


def read_state(checkpoint: Path) -> TrainerState:
    """Where training was; refused where the file does not say so, for the Trainer believes all of it."""
    path = checkpoint / TRAINER_STATE_NAME
    try:
        raw = loads(path.read_bytes())
        _State.model_validate(raw)
        return TrainerState(**raw)
    except (ValueError, TypeError) as error:
        reason = str(error).splitlines()[0]
        raise UserError(
            f"{path} is damaged ({reason}); remove {checkpoint} and run the same command again."
        ) from error


class _State(BaseModel):
    """What the Trainer reads back."""

    model_config = ConfigDict(strict=True, extra="allow", allow_inf_nan=False)

    global_step: int = Field(ge=0, lt=2**31)
    epoch: float = Field(ge=0, lt=2**31)
    max_steps: int = Field(ge=0, lt=2**31)
    log_history: list[dict[str, int | float]]
    best_metric: float | None = None
    best_global_step: int | None = Field(None, ge=0, lt=2**31)
    best_model_checkpoint: str | None = None
    train_batch_size: int | None = Field(None, ge=1, lt=2**31)
    stateful_callbacks: dict[str, Any] = {}


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
        """After each checkpoint."""
        self.seal(_checkpoint(args, state.global_step))


def _checkpoint(args: TrainingArguments, step: int) -> Path:
    return Path(args.output_dir) / f"{PREFIX_CHECKPOINT_DIR}-{step}"


class EpochSeededSampler(torch.utils.data.Sampler[int]):
    """Length grouping whose order depends on seed and epoch only, so that a resumed epoch is the same."""

    def __init__(self, sampler: LengthGroupedSampler, seed: int) -> None:
        self.sampler, self.seed = sampler, seed
        self.set_epoch(0)

    def set_epoch(self, epoch: int) -> None:
        """Called by the Trainer at the start of each epoch."""
        self.epoch = epoch

    def __len__(self) -> int:
        return len(self.sampler)

    def __iter__(self) -> Any:
        # Through Python's generator, since torch's looks at the low 32 bits of a seed only.
        seed = random.Random(f"{self.seed} {self.epoch}").getrandbits(32)
        self.sampler.generator = torch.Generator().manual_seed(seed)
        return iter(self.sampler)


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
        if time.monotonic() - self.saved > self.seconds:
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
