"""One training loop for every objective, on ``transformers.Trainer``."""

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import softmax
from torch import Tensor, nn
from torch.utils.data import BatchSampler, DataLoader
from transformers import EvalPrediction, PreTrainedModel, Trainer, TrainingArguments
from transformers.trainer_pt_utils import LengthGroupedSampler

from calibrant._system import processes
from calibrant.calibrators.temperature import refined_nll
from calibrant.errors import UserError
from calibrant.metrics.dev import dev_figures
from calibrant.models import fast
from calibrant.models.fast.first_token import first_token_only
from calibrant.models.lora import unwrapped
from calibrant.models.split import SplitModel
from calibrant.objectives import ClassWeights, CrossEntropy, Objective
from calibrant.objectives.base import Loss
from calibrant.training.callbacks import Learnt, OwnDraws
from calibrant.training.order import EpochSeededSampler, Share
from calibrant.types import Batch

CRITERIA = {"accuracy": "selection", "refinement": "refinement", "interpolation": "refinement"}
"""Of ``dev_metrics``, by what a method calls that which is to be kept."""


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
    refused. The model may be in peft's wrapper (``get_peft_model``). ``compute_metrics`` defaults to
    ``dev_metrics``. The loss of a step is the mean over its texts, however they are spread over
    accumulated micro-batches and over processes (DDP), and the objective's terms are logged beside it.
    ``class_weights``, (K,), lets the classes count differently; their mean over the training texts should
    be 1, so that the cross-entropy keeps its scale.
    """

    # compute_loss divides by the number of texts in the whole step itself.
    loss_is_scaled_for_ga = True
    _trains = False  # whether `train` is under way

    def __init__(
        self,
        model: Any = None,
        args: TrainingArguments | None = None,
        *trainer_args: Any,
        objective: Objective | None = None,
        class_weights: Sequence[float] | NDArray[np.floating] | None = None,
        **trainer_kwargs: Any,
    ) -> None:
        if trainer_kwargs.get("compute_loss_func") is not None:
            raise UserError("CalibratedTrainer minimises its objective; compute_loss_func would do nothing.")
        if model is not None:
            _check_model(model)
        _check_sharing(args)
        # Not `objective`: that is the Trainer's own word for the figure that a search compares.
        self.minimised = objective if objective is not None else CrossEntropy()
        # Once, since machines may round it differently, and would then stop after different epochs.
        trainer_kwargs.setdefault(
            "compute_metrics", lambda prediction: processes.on_main(lambda: dev_metrics(prediction))
        )
        super().__init__(model, args, *trainer_args, **trainer_kwargs)
        self.class_weights = (
            None if class_weights is None else ClassWeights(class_weights, self.model.config.num_labels)
        )
        self.add_callback(Learnt(self.minimised))
        self.add_callback(OwnDraws())
        if self.is_model_parallel:
            raise UserError(
                "calibrant trains models that lie on one device, because the objectives run parts of them; "
                "load the model without device_map."
            )
        if self.args.n_gpu > 1:
            raise UserError(
                f"calibrant does not train with DataParallel, and this process sees {self.args.n_gpu} GPUs; "
                f"start one process for each (`torchrun --nproc-per-node {self.args.n_gpu} …`), or set "
                "CUDA_VISIBLE_DEVICES to one of them."
            )
        if self.args.world_size != processes.launched():
            raise UserError(
                f"The launcher has started {processes.launched()} processes (WORLD_SIZE), and the arguments "
                f"know of {self.args.world_size}; without a GPU, add use_cpu=True to them."
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
        self._trains = True
        if self.model_init is None:
            fast.apply(unwrapped(self.model))
        try:
            return super().train(*args, **kwargs)
        finally:
            self._trains = False
            fast.remove(unwrapped(self.model))

    def call_model_init(self, trial: Any = None) -> PreTrainedModel:
        """A new model, checked as one that is given, and quick where it is to be trained."""
        model: PreTrainedModel = super().call_model_init(trial)
        _check_model(model)
        if self._trains:
            fast.apply(unwrapped(model))
        return model

    def hyperparameter_search(
        self, hp_space: Any = None, compute_objective: Any = None, *args: Any, **kwargs: Any
    ) -> Any:
        """As ``Trainer.hyperparameter_search``, which adds all metrics up where nobody says what to compare.

        Here that is dev NLL after a temperature of its own, lower where better.
        """
        if compute_objective is None and kwargs.get("direction", "minimize") != "minimize":
            raise UserError(
                f"direction={kwargs['direction']!r} needs compute_objective, which says what is compared; "
                "without it that is dev NLL, which is minimised."
            )
        return super().hyperparameter_search(hp_space, compute_objective or _refined_nll, *args, **kwargs)

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
        types = inputs.get("token_type_ids")
        batch = Batch(inputs["input_ids"], inputs["attention_mask"], inputs["labels"], types)
        with self.accelerator.autocast():
            loss = self._loss(model, batch)
        for name, term in loss.terms.items():
            self._sums[name] += term * len(batch)
        self._summed_texts += len(batch)
        share = 1.0 if num_items_in_batch is None else len(batch) / num_items_in_batch
        if self.args.average_tokens_across_devices:  # they are those of all processes, and DDP averages
            share *= self.accelerator.num_processes
        return loss.total * share

    def _loss(self, model: nn.Module, batch: Batch) -> Loss:
        """The objective, as the ``forward`` of the wrapped model where there is one.

        DDP gets ready in its own ``forward`` to average the gradients. The objective runs parts of the model
        instead of the whole, so it takes the place of the model's ``forward`` for one call.
        """
        if model is self.model:
            return self._own_loss(batch)
        own = vars(self.model).get("forward")  # accelerate's, where it has put one there

        def loss() -> Loss:
            del self.model.forward
            if own is not None:
                self.model.forward = own
            return self._own_loss(batch)

        self.model.forward = loss
        found: Loss = model()
        return found

    def _own_loss(self, batch: Batch) -> Loss:
        split = SplitModel(self.model)
        if self.class_weights is None:
            return self.minimised.loss(split, batch)
        return self.class_weights.loss(self.minimised, split, batch)

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Add the mean of each loss term since the last log; stop where one is no longer a number."""
        if "loss" in logs and self._summed_texts:
            sums = [*map(float, self._sums.values()), self._summed_texts]
            if self.args.world_size > 1:
                own = torch.tensor(sums, dtype=torch.float64, device=self.args.device)
                sums = self.accelerator.reduce(own).tolist()
            *totals, texts = sums
            logs |= {name: total / texts for name, total in zip(self._sums, totals, strict=True)}
            self._sums.clear()
            self._summed_texts = 0
            if not all(map(math.isfinite, logs.values())):
                self.control.should_training_stop = True
        super().log(logs, start_time)

    def get_train_dataloader(self) -> DataLoader[Any]:
        """As the ``Trainer``'s. Where several processes share a step, each has its part of the texts."""
        loader: DataLoader[Any] = super().get_train_dataloader()
        shard: Any = loader.batch_sampler
        if self.args.world_size > 1 and hasattr(shard, "batch_sampler"):
            each = shard.batch_sampler
            whole = BatchSampler(each.sampler, each.batch_size * self.args.world_size, each.drop_last)
            shard.batch_sampler = Share(whole, self.args.process_index, self.args.world_size)
            shard.sampler = whole.sampler  # which accelerate tells of each epoch
            shard.num_processes, shard.process_index, shard.even_batches = (
                1,
                0,
                False,
            )  # it gives what it gets
        return loader

    def _get_train_sampler(self, train_dataset: Any = None) -> Any:
        sampler = super()._get_train_sampler(train_dataset)
        if isinstance(sampler, LengthGroupedSampler):
            sampler.batch_size *= self.args.world_size
            seed = self.args.seed if self.args.data_seed is None else self.args.data_seed
            return EpochSeededSampler(sampler, seed)
        return sampler


def _check_model(model: PreTrainedModel) -> None:
    """Refuse one that the objectives cannot train."""
    if any(weights.dtype in (torch.float16, torch.bfloat16) for weights in model.parameters()):
        raise UserError(
            "calibrant trains weights in float32, since smaller floats round δ away; load the model with "
            "dtype=torch.float32 (on a GPU, bf16=True still makes it fast)."
        )
    SplitModel(model).verify()


def _refined_nll(metrics: dict[str, float]) -> float:
    """What a search minimises."""
    if "eval_refinement" not in metrics:
        raise UserError(
            "compute_metrics is your own, so hyperparameter_search needs compute_objective: which figure of "
            "it to compare."
        )
    return -metrics["eval_refinement"]


def _check_sharing(args: TrainingArguments | None) -> None:
    """Refuse ways to share a model that nobody has tried with the objectives."""
    processes.check_launcher()
    for option, name in (("fsdp", "FSDP"), ("deepspeed", "DeepSpeed")):
        if args is not None and getattr(args, option):
            raise UserError(
                f"calibrant does not train with {name}, which nobody has tested with its objectives; leave "
                f"`{option}` out, and start with torchrun for plain data-parallel training (DDP)."
            )
