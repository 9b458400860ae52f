"""``calibrant train``: from settings to a run on disk."""

import logging
import math
import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant._system.device import device, has_bf16
from calibrant._system.failures import remembering, writing
from calibrant._system.progress import in_notebook
from calibrant._system.quiet import quiet
from calibrant.calibrators import Calibrator, calibrated
from calibrant.classifier import of_run
from calibrant.config import RunConfig
from calibrant.data.doubts import doubt
from calibrant.errors import Diverged, UserError
from calibrant.inference.single import SinglePass
from calibrant.methods import AXES, NO_CALIBRATOR, named
from calibrant.metrics.dev import dev_figures
from calibrant.recipe import Recipe, read_recipe
from calibrant.runs import checkpoints, store
from calibrant.runs.begin import begin, for_training
from calibrant.runs.record import MethodRecord, TrainingRecord
from calibrant.runs.store import Run
from calibrant.runs.texts import load_splits
from calibrant.types import Progress, Splits, Texts

if TYPE_CHECKING:
    from calibrant.data.encode import EncodedTexts
    from calibrant.training import Watch

logger = logging.getLogger(__name__)
NO_MEMORY = (
    "Training ran out of memory; take a smaller --batch-size (with --gradient-accumulation-steps, for as "
    "many texts a step) or --max-length, or add --gradient-checkpointing."
)
SAFE = "The checkpoints before it are safe, and the same command goes on from there."
KEPT_FIGURES = ("accuracy", "confidence", "nll")


def train(config: RunConfig, *, out: Path | str, progress: Progress = in_notebook) -> Run:
    """Train as the settings say and leave a run in ``out``.

    A finished run of the same settings and data is returned as it is; an interrupted one resumes
    from its last checkpoint.
    """
    recipe, splits = read_recipe(config), load_splits(config)
    if config.dataset is None:
        doubt(_whole_file(config, splits), config.text_column, config.label_column)
    run = _fit(config, recipe, splits, Path(out), progress, f"train {recipe.method.name}")
    largest = Counter(splits.dev.labels or ()).most_common(1)[0][1] / len(splits.dev)
    if run.training.dev_accuracy <= largest:
        logger.warning(
            "It is no better than always answering with the largest class, which is right in %.0f %% of the "
            "dev texts. Check that the labels belong to the texts.",
            100 * largest,
        )
    return run


def _whole_file(config: RunConfig, splits: Splits) -> Texts:
    """The user's training texts, those included that were cut off for dev."""
    train, dev = splits.train, splits.dev
    if config.dev is not None:
        return train
    return replace(
        train, texts=[*train.texts, *dev.texts], labels=[*(train.labels or ()), *(dev.labels or ())]
    )


def _fit(config: RunConfig, recipe: Recipe, splits: Splits, out: Path, progress: Progress, label: str) -> Run:
    with for_training(out):
        return _fit_alone(config, recipe, splits, out, progress, label)


def _fit_alone(
    config: RunConfig, recipe: Recipe, splits: Splits, out: Path, progress: Progress, label: str
) -> Run:
    method = MethodRecord(**{axis: getattr(recipe.method, axis) for axis in ("name", *AXES)})
    run = begin(out, config, splits, method, _settings(recipe.objective), _settings(recipe.inference))
    if run.complete:
        logger.info("%s is trained already", out)
        return store.load(out)
    members = recipe.inference.members
    labels = [label if members == 1 else f"{label}, member {i + 1} of {members}" for i in range(members)]
    others = [_member(config, number) for number in range(2, members + 1)]
    if run.trained:  # and killed afterwards
        run.check_files()
    else:
        run = _train(run, config, recipe, splits, progress, labels[0])
    single = named(replace(recipe.method, inference="single", calibrator=None))
    alone = Recipe(single, recipe.objective, SinglePass(), None)
    trained = [
        _fit(other, alone, splits, run.member(number), progress, labels[number - 1])
        for number, other in enumerate(others, start=2)
    ]
    if trained:
        run = run.updated(members=[member.record.files for member in trained])
    if recipe.calibrator is None and recipe.inference == SinglePass():
        return run.finish()  # what training measured on dev is what it answers
    return _finish(run, recipe.calibrator, splits, trained, progress)


def _settings(entry: Any) -> dict[str, Any]:
    return {"name": entry.name, **asdict(entry)}


def _member(config: RunConfig, number: int) -> RunConfig:
    """Settings of an ensemble's second, third, … member: as of the first, but for the seed."""
    alone = {"inference": {"name": "single"}, "calibrator": NO_CALIBRATOR}
    return RunConfig.build(**config.model_dump() | alone | {"seed": config.seed + number - 1})


def _finish(
    run: Run,
    calibrator: Calibrator | None,
    splits: Splits,
    others: Sequence[Run],
    progress: Progress,
) -> Run:
    """Fit the calibrator on dev, and measure there what the run as a whole answers."""
    classifier, dev = of_run(run), splits.dev
    needs = frozenset() if calibrator is None else calibrator.needs
    outputs = classifier.outputs(dev.texts, needs, progress, f"dev {run.record.method.name}")
    labels, kept = classifier.class_ids(dev), None
    if calibrator is not None:
        try:
            fitted = classifier.fit_calibrator(calibrator, outputs, labels, splits.train, progress)
            outputs = calibrated(outputs, fitted)
            kept = run.keep_calibrator(fitted, dev.provenance())
        except UserError as error:  # not worth a training
            logger.warning("%s The run is kept without a calibrator.", error)
    figures = dev_figures(outputs.probabilities, labels)
    changes = training_times((run, *others)) | {f"dev_{name}": figures[name] for name in KEPT_FIGURES}
    return run.finish(calibrator=kept, training=run.training.model_copy(update=changes))


def training_times(runs: Sequence[Run]) -> dict[str, float]:
    """Of all of them together, by the clocks that every one was timed with."""
    times = {clock: [getattr(run.training, clock) for run in runs] for clock in ("seconds", "work_seconds")}
    return {clock: round(sum(each), 1) for clock, each in times.items() if None not in each}


@quiet()
def _train(
    run: Run,
    config: RunConfig,
    recipe: Recipe,
    splits: Splits,
    progress: Progress,
    label: str,
) -> Run:
    from transformers import PrinterCallback, TrainingArguments, set_seed

    from calibrant.data.encode import Collate, EncodedTexts, cut_in_words, encode
    from calibrant.models import fast
    from calibrant.models.pretrained import TEXTCNN, load_classifier
    from calibrant.models.probe import start_head
    from calibrant.training import CRITERIA, CalibratedTrainer, EpochLines, Sealing, StopByItself, Watch

    if config.bf16 and not has_bf16():
        raise UserError("--bf16 needs a GPU that has it, and there is none here; leave it out.")
    method = recipe.method
    if method.frozen and config.model == TEXTCNN:
        raise UserError(
            f"{method.name} needs a pretrained encoder, and {TEXTCNN} has none; train another --model."
        )
    set_seed(config.seed)
    model, tokenizer = load_classifier(
        config.model, splits.label_names, config.layers, splits.train.texts, method.pooling
    )
    if config.gradient_checkpointing and not model.supports_gradient_checkpointing:
        raise UserError(f"--gradient-checkpointing: the model {config.model!r} cannot do it; leave it out.")
    recipe.inference.check(model)
    class_of = {name: i for i, name in enumerate(splits.label_names)}

    def encoded(part: Texts) -> EncodedTexts:
        rows = encode(tokenizer, part.texts, config.max_length)
        return EncodedTexts(rows, [class_of[label] for label in part.labels or ()])

    watch, criterion = Watch(progress, label), CRITERIA[method.keep]
    lines = EpochLines(label, recipe.objective.terms)
    train_set, dev_set = encoded(splits.train), encoded(splits.dev)
    if told := cut_in_words(tokenizer, splits.train.texts, config.max_length):
        logger.info(told)
    if method.start == "probe" and config.model != TEXTCNN:  # that one has learnt nothing before
        fast.apply(model.to(device()).eval())
        start_head(model, train_set.rows, np.asarray(train_set.labels), tokenizer.pad_token_id, progress)
        fast.remove(model)
    start = {name: value.clone() for name, value in model.state_dict().items()}
    if method.frozen:
        measured = _measured_on_dev(model, tokenizer, dev_set, watch)
        lines.line(measured.history[0], {})
        return run.keep(model, tokenizer, measured)
    rate = config.learning_rate
    if rate is None:
        rate = method.rate(getattr(model.config, "hidden_size", None))
    last, stop = checkpoints.last(run.checkpoints), StopByItself(criterion, method.patience)
    trainer = CalibratedTrainer(
        model=model,
        args=TrainingArguments(
            output_dir=str(run.checkpoints),
            num_train_epochs=stop.epochs(config.epochs, last),
            per_device_train_batch_size=config.batch_size,
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
            load_best_model_at_end=True,
            # The start counts as epoch 0; a checkpoint's log has it already.
            eval_on_start=method.keep == "refinement" and last is None,
            metric_for_best_model=criterion,
            greater_is_better=True,
            dataloader_pin_memory=False,
            disable_tqdm=True,
            report_to="none",
            seed=config.seed,
        ),
        train_dataset=train_set,
        eval_dataset=dev_set,
        data_collator=Collate(tokenizer.pad_token_id),
        processing_class=tokenizer,
        objective=recipe.objective,
        callbacks=[watch, lines, stop, Sealing(checkpoints.seal)],
    )
    trainer.remove_callback(PrinterCallback)
    if last is not None:
        logger.info("Resuming %s from %s", run.path, last.name)
    with remembering(NO_MEMORY), writing(run.checkpoints, SAFE):
        trainer.train(resume_from_checkpoint=None if last is None else str(last))
    chosen_by = f"eval_{criterion}"
    history = [entry for entry in trainer.state.log_history if chosen_by in entry or "loss" in entry]
    if not all(math.isfinite(value) for entry in history for value in entry.values()):
        shutil.rmtree(run.checkpoints)  # to resume from them would end the same way
        raise Diverged(
            f"Training diverged: with --learning-rate {rate:g} the loss is no longer a "
            "number; take a lower one."
        )
    best = max((e for e in history if chosen_by in e), key=lambda entry: entry[chosen_by])
    if best["epoch"] == 0:
        model.load_state_dict(start)
    return run.keep(
        model,
        tokenizer,
        TrainingRecord(
            steps=trainer.state.global_step,
            **{name: round(seconds, 1) for name, seconds in watch.elapsed().items()},
            best_epoch=best["epoch"],
            **{f"dev_{name}": best[f"eval_{name}"] for name in KEPT_FIGURES},
            history=history,
        ),
    )


def _measured_on_dev(model: Any, tokenizer: Any, dev: "EncodedTexts", watch: "Watch") -> TrainingRecord:
    """Of a model that is not trained further."""
    from transformers import EvalPrediction

    from calibrant.classifier import outputs_of
    from calibrant.training import dev_metrics

    outputs = outputs_of(SinglePass(), [model.eval()], dev.rows, tokenizer.pad_token_id)
    figures = dev_metrics(EvalPrediction(outputs.logits, np.asarray(dev.labels)))
    return TrainingRecord(
        steps=0,
        **{name: round(seconds, 1) for name, seconds in watch.elapsed().items()},
        best_epoch=0,
        **{f"dev_{name}": figures[name] for name in KEPT_FIGURES},
        history=[{"epoch": 0.0} | {f"eval_{name}": value for name, value in figures.items()}],
    )
