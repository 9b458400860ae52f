"""Fine-tuning: the encoder and the head with the objective; what is best on dev is kept."""

import logging
import math
import shutil
from pathlib import Path
from typing import Any

from transformers import PrinterCallback, TrainingArguments

from calibrant._system import processes
from calibrant._system.device import device
from calibrant._system.failures import remembering, writing
from calibrant.data.encode import Collate
from calibrant.errors import Diverged
from calibrant.fitting.job import Job
from calibrant.fitting.outcome import outcome
from calibrant.fitting.start import Encoded, Start
from calibrant.methods import INTERPOLATION
from calibrant.runs import checkpoints
from calibrant.runs.store import Run
from calibrant.training import (
    CRITERIA,
    CalibratedTrainer,
    EpochLines,
    Sealing,
    StopByItself,
    Watch,
    copied,
    interpolate,
)

logger = logging.getLogger(__name__)
NO_MEMORY = (
    "Training ran out of memory; take a smaller --batch-size (with --gradient-accumulation-steps, for as "
    "many texts a step) or --max-length, or add --gradient-checkpointing."
)
SAFE = "The checkpoints before it are safe, and the same command goes on from there."


def fine_tune(run: Run, job: Job, start: Start, texts: Encoded, watch: Watch) -> Run:
    """Train from the start, or from the last checkpoint, and keep what is best on dev."""
    config, method, model = job.config, job.recipe.method, start.model
    before = copied(model)
    rate = config.learning_rate
    if rate is None:
        rate = method.rate(getattr(model.config, "hidden_size", None))
    criterion = CRITERIA[method.keep]
    stop = StopByItself(criterion, method.patience)
    last = processes.on_main(lambda: checkpoints.last(run.checkpoints))
    epochs = processes.on_main(lambda: stop.epochs(config.epochs, last))
    lines = EpochLines(job.label, job.recipe.objective.terms)
    trainer = CalibratedTrainer(
        model=model,
        args=_arguments(job, run.checkpoints, rate, epochs, resumed=last is not None),
        train_dataset=texts.train,
        eval_dataset=texts.dev,
        data_collator=Collate(start.tokenizer.pad_token_id),
        processing_class=start.tokenizer,
        objective=job.recipe.objective,
        class_weights=start.class_weights,
        callbacks=[watch, lines, stop, Sealing(checkpoints.seal)],
    )
    trainer.remove_callback(PrinterCallback)
    if job.report_to:
        from calibrant.pages.plots import reliability_picture
        from calibrant.training.tracking import track

        track(trainer, job.report_to, run.path, reliability_picture)
    if last is not None:
        logger.info("Resuming %s from %s", run.path, last.name)
    with remembering(NO_MEMORY), writing(run.checkpoints, SAFE):
        trainer.train(resume_from_checkpoint=None if last is None else str(last))
    history = [e for e in trainer.state.log_history if f"eval_{criterion}" in e or "loss" in e]
    processes.on_main(lambda: _check_finite(history, run, rate))
    measured = [entry for entry in history if f"eval_{criterion}" in entry]
    if method.keep == INTERPOLATION:
        best, *others = interpolate(trainer, before, texts.dev, {0.0: measured[0], 1.0: measured[-1]})
        history += [best, *others]
    else:
        best = max(measured, key=lambda entry: entry[f"eval_{criterion}"])
        if best["epoch"] == 0:
            model.load_state_dict(before)
    seconds = watch.elapsed()

    def keep() -> Run:
        training = outcome(trainer.state.global_step, seconds, best, history)
        if config.lora is None:
            return run.keep(model, start.tokenizer, training)
        run.keep_adapter(model)
        return run.keep(model.merge_and_unload(), start.tokenizer, training)

    return processes.on_main(keep)


def _arguments(job: Job, folder: Path, rate: float, epochs: int, resumed: bool) -> TrainingArguments:
    config, method = job.config, job.recipe.method
    return TrainingArguments(
        output_dir=str(folder),
        num_train_epochs=epochs,
        per_device_train_batch_size=config.batch_size // processes.count(),
        per_device_eval_batch_size=2 * config.batch_size,
        gradient_accumulation_steps=config.gradient_accumulation_steps,
        learning_rate=rate,
        weight_decay=config.weight_decay,
        bf16=config.bf16,
        gradient_checkpointing=config.gradient_checkpointing,
        train_sampling_strategy="group_by_length",
        eval_strategy="epoch",
        save_strategy="epoch",
        logging_strategy="epoch",
        load_best_model_at_end=method.keep != INTERPOLATION,
        # The start counts as epoch 0; a checkpoint's log has it already.
        eval_on_start=method.keep != "accuracy" and not resumed,
        # Of a point between start and end no checkpoint is the best one, nor need any be kept for it.
        metric_for_best_model=None if method.keep == INTERPOLATION else CRITERIA[method.keep],
        greater_is_better=True,
        dataloader_pin_memory=False,
        use_cpu=device().type == "cpu",  # else several processes without a GPU are not told of each other
        disable_tqdm=True,
        report_to="none",
        seed=config.seed,
    )


def _check_finite(history: list[dict[str, Any]], run: Run, rate: float) -> None:
    if not all(math.isfinite(value) for entry in history for value in entry.values()):
        shutil.rmtree(run.checkpoints)  # to resume from them would end the same way
        raise Diverged(
            f"Training diverged: with --learning-rate {rate:g} the loss is no longer a "
            "number; take a lower one."
        )
