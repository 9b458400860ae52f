"""What a training starts from: the model, once nothing is against it, and the texts as it reads them."""

import logging
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from transformers import set_seed

from calibrant._system import processes
from calibrant._system.device import has_bf16
from calibrant.data.encode import EncodedTexts, cut_in_words, encode
from calibrant.data.weights import class_weights
from calibrant.errors import UserError
from calibrant.fitting.job import Job
from calibrant.models.lora import check_peft_installed, with_lora
from calibrant.models.pretrained import load_classifier
from calibrant.types import Splits, Texts

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Encoded:
    """Texts of both kinds, as tokens and class ids."""

    train: EncodedTexts
    dev: EncodedTexts


@dataclass(frozen=True)
class Start:
    """The model to begin with."""

    model: Any
    tokenizer: Any
    class_weights: NDArray[np.float64] | None  # (K,)

    def encoded(self, splits: Splits, max_length: int) -> Encoded:
        """The texts as it reads them; where many are cut, that is told."""
        class_of = {name: i for i, name in enumerate(splits.label_names)}

        def part(texts: Texts) -> EncodedTexts:
            rows = encode(self.tokenizer, texts.texts, max_length)
            return EncodedTexts(rows, [class_of[label] for label in texts.labels or ()])

        both = Encoded(part(splits.train), part(splits.dev))
        if told := cut_in_words(self.tokenizer, splits.train.texts, max_length):
            logger.info(told)
        return both


def load_start(job: Job) -> Start:
    """The model that the settings ask for; refuse first what would fail later."""
    config, splits, method = job.config, job.splits, job.recipe.method
    if config.lora is not None:
        check_peft_installed()
    if config.batch_size % (n := processes.count()):
        raise UserError(
            f"--batch-size {config.batch_size}: the texts of a step are shared by {n} processes; take a "
            f"multiple of {n}."
        )
    if config.bf16 and not has_bf16():
        raise UserError("--bf16 needs a GPU that has it, and there is none here; leave it out.")
    weights = None
    if config.class_weights is not None:
        weights = class_weights(config.class_weights, splits.train.labels or (), splits.label_names)
    set_seed(config.seed)
    model, tokenizer = load_classifier(
        config.model, splits.label_names, config.layers, splits.train.texts, method.pooling
    )
    if config.gradient_checkpointing and not model.supports_gradient_checkpointing:
        raise UserError(f"--gradient-checkpointing: the model {config.model!r} cannot do it; leave it out.")
    job.recipe.inference.check(model)
    if config.lora is not None:
        targets = config.lora_targets
        named = None if targets is None else [name.strip() for name in targets.split(",")]
        model = with_lora(model, config.lora, named, config.model)
    return Start(model, tokenizer, weights)
