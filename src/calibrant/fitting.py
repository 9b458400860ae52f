"""From settings to a run on disk."""

import dataclasses
import logging
import math
import time
from pathlib import Path
from typing import Any, get_type_hints

from pydantic import ConfigDict, TypeAdapter, ValidationError

from calibrant import artifact
from calibrant.config import RunConfig
from calibrant.data import datasets, make_splits, read_file
from calibrant.errors import UserError
from calibrant.methods import METHODS
from calibrant.objectives import Objective, objectives
from calibrant.registry import pick
from calibrant.types import Progress, Splits, Texts

logger = logging.getLogger(__name__)


def silent(what: str, done: int, total: int) -> None:
    """A ``Progress`` that says nothing."""


def load_splits(config: RunConfig) -> Splits:
    """The texts that the settings ask for."""
    if config.dataset is not None:
        dataset = pick("dataset", config.dataset, datasets())
        return dataset.splits(config.source, config.max_train_samples)
    columns = config.text_column, config.label_column
    train = read_file(config.train or "", *columns, labelled=True)
    dev = None if config.dev is None else read_file(config.dev, *columns, labelled=True)
    return make_splits(Path(config.train or "").stem, train, dev, config.max_train_samples)


def make_objective(name: str, settings: dict[str, Any]) -> Objective:
    """The objective called ``name`` with these hyper-parameters."""
    objective = pick("objective", name, objectives())
    known = [field.name for field in dataclasses.fields(objective)]  # type: ignore[arg-type]
    types = get_type_hints(objective)
    checked = {}
    for setting, value in settings.items():
        if setting not in known:
            raise UserError(
                f"The objective {name!r} has no {setting!r}; it has {', '.join(known) or 'none'}."
            )
        try:  # a word where a number belongs; `1e-3`, which is a word to YAML, becomes the number
            kind = TypeAdapter(types[setting], config=ConfigDict(allow_inf_nan=False))
            checked[setting] = kind.validate_python(value)
        except ValidationError as error:
            raise UserError(f"`{setting}`: {error.errors()[0]['msg']}, got {value!r}.") from error
    return objective(**checked)


def fit(config: RunConfig, out: Path | str, progress: Progress = silent) -> artifact.Run:
    """Train as the settings say and leave a run in ``out``.

    A finished run of the same settings and data is returned as it is; an interrupted one resumes
    from its last checkpoint.
    """
    method = pick("method", config.method, METHODS)
    objective = make_objective(method.objective, config.objective)
    splits = load_splits(config)
    settings = {"name": objective.name, **dataclasses.asdict(objective)}  # type: ignore[call-overload]
    run = artifact.begin(Path(out), config, splits, dataclasses.asdict(method), settings)
    if run.complete:
        logger.info("%s is trained already", out)
        return artifact.load(out)
    return _train(run, config, objective, splits, progress)


def _train(
    run: artifact.Run, config: RunConfig, objective: Objective, splits: Splits, progress: Progress
) -> artifact.Run:
    from transformers import PrinterCallback, TrainingArguments, set_seed
    from transformers.utils import is_torch_bf16_gpu_available

    from calibrant.data.encode import Collate, EncodedTexts, encode
    from calibrant.models.pretrained import load_classifier
    from calibrant.training import CalibratedTrainer, Watch

    if config.bf16 and not is_torch_bf16_gpu_available():
        raise UserError("--bf16 needs a GPU that has it, and there is none here; leave it out.")
    set_seed(config.seed)
    model, tokenizer = load_classifier(config.model, splits.label_names, config.layers, splits.train.texts)
    if config.gradient_checkpointing and not model.supports_gradient_checkpointing:
        raise UserError(f"--gradient-checkpointing: the model {config.model!r} cannot do it; leave it out.")
    class_of = {name: i for i, name in enumerate(splits.label_names)}

    def encoded(part: Texts) -> EncodedTexts:
        rows = encode(tokenizer, part.texts, config.max_length)
        return EncodedTexts(rows, [class_of[label] for label in part.labels or ()])

    trainer = CalibratedTrainer(
        model=model,
        args=TrainingArguments(
            output_dir=str(run.checkpoints),
            num_train_epochs=config.epochs,
            per_device_train_batch_size=config.batch_size,
            per_device_eval_batch_size=2 * config.batch_size,
            gradient_accumulation_steps=config.gradient_accumulation_steps,
            learning_rate=config.learning_rate,
            weight_decay=config.weight_decay,
            bf16=config.bf16,
            gradient_checkpointing=config.gradient_checkpointing,
            train_sampling_strategy="group_by_length",
            eval_strategy="epoch",
            save_strategy="epoch",
            logging_strategy="epoch",
            save_total_limit=1,
            load_best_model_at_end=True,
            metric_for_best_model="selection",
            greater_is_better=True,
            dataloader_pin_memory=False,
            disable_tqdm=True,
            report_to="none",
            seed=config.seed,
        ),
        train_dataset=encoded(splits.train),
        eval_dataset=encoded(splits.dev),
        data_collator=Collate(tokenizer.pad_token_id),
        processing_class=tokenizer,
        objective=objective,
        callbacks=[Watch(progress, f"train {config.method}")],
    )
    trainer.remove_callback(PrinterCallback)
    started = time.monotonic()
    last = run.last_checkpoint()
    if last is not None:
        logger.info("Resuming %s from %s", run.path, last.name)
    trainer.train(resume_from_checkpoint=None if last is None else str(last))
    history = [entry for entry in trainer.state.log_history if "eval_selection" in entry or "loss" in entry]
    if not all(math.isfinite(value) for entry in history for value in entry.values()):
        raise UserError(
            f"Training diverged: with --learning-rate {config.learning_rate:g} the loss is no longer a "
            "number; take a lower one."
        )
    best = max((e for e in history if "eval_selection" in e), key=lambda entry: entry["eval_selection"])
    return run.finish(
        model,
        tokenizer,
        {
            "steps": trainer.state.global_step,
            "seconds": round(time.monotonic() - started, 1),
            "best_epoch": best["epoch"],
            "dev_accuracy": best["eval_accuracy"],
            "dev_confidence": best["eval_confidence"],
            "dev_nll": best["eval_nll"],
            "history": history,
        },
    )
