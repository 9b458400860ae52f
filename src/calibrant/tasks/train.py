"""``calibrant train``: from settings to a run on disk."""

import logging
import math
import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from calibrant._system import processes
from calibrant._system.device import device, has_bf16
from calibrant._system.failures import remembering, writing
from calibrant._system.progress import in_notebook
from calibrant._system.quiet import quiet
from calibrant.calibrators import Calibrator, calibrated
from calibrant.classifier import Classifier, of_run, outputs_of
from calibrant.config import RunConfig
from calibrant.data.doubts import doubt
from calibrant.data.weights import class_weights
from calibrant.errors import Diverged, UserError
from calibrant.inference.single import SinglePass
from calibrant.methods import AXES, NO_CALIBRATOR, named
from calibrant.metrics.dev import dev_figures
from calibrant.recipe import Recipe, read_recipe
from calibrant.runs import checkpoints, store
from calibrant.runs.begin import begin, check_shared, for_training
from calibrant.runs.record import MethodRecord, TrainingRecord
from calibrant.runs.store import Run
from calibrant.runs.texts import load_splits
from calibrant.types import Needs, Outputs, Progress, Splits, Texts, silent

if TYPE_CHECKING:
    from calibrant.training import EpochLines, Watch

logger = logging.getLogger(__name__)
NO_MEMORY = (
    "Training ran out of memory; take a smaller --batch-size (with --gradient-accumulation-steps, for as "
    "many texts a step) or --max-length, or add --gradient-checkpointing."
)
SAFE = "The checkpoints before it are safe, and the same command goes on from there."
KEPT_FIGURES = ("accuracy", "confidence", "nll")


def train(
    config: RunConfig, *, out: Path | str, progress: Progress = in_notebook, report_to: Sequence[str] = ()
) -> Run:
    """Train as the settings say and leave a run in ``out``.

    A finished run of the same settings and data is returned as it is; an interrupted one resumes
    from its last checkpoint. Started by torchrun or accelerate launch, the processes share each step.
    ``report_to`` names trackers that are told of each epoch: tensorboard, mlflow, wandb.
    """
    if report_to:
        from calibrant.training.tracking import check_trackers

        check_trackers(report_to)
    with processes.together():
        recipe, splits = processes.one_first(lambda: (read_recipe(config), _texts(config)))
        progress = progress if processes.is_main() else silent
        label = f"train {recipe.method.name}"
        run = _fit(config, recipe, splits, Path(out), progress, label, report_to)
    largest = Counter(splits.dev.labels or ()).most_common(1)[0][1] / len(splits.dev)
    if run.training.dev_accuracy <= largest:
        logger.warning(
            "It is no better than always answering with the largest class, which is right in %.0f %% of the "
            "dev texts. Check that the labels belong to the texts.",
            100 * largest,
        )
    return run


def _texts(config: RunConfig) -> Splits:
    splits = load_splits(config)
    if config.dataset is None:
        doubt(_whole_file(config, splits), config.text_column, config.label_column)
    return splits


def _whole_file(config: RunConfig, splits: Splits) -> Texts:
    """The user's training texts, those included that were cut off for dev."""
    train, dev = splits.train, splits.dev
    if config.dev is not None:
        return train
    return replace(
        train, texts=[*train.texts, *dev.texts], labels=[*(train.labels or ()), *(dev.labels or ())]
    )


def _fit(
    config: RunConfig,
    recipe: Recipe,
    splits: Splits,
    out: Path,
    progress: Progress,
    label: str,
    report_to: Sequence[str],
) -> Run:
    with ExitStack() as held:
        processes.on_main(lambda: held.enter_context(for_training(out)))
        return _fit_alone(config, recipe, splits, out, progress, label, report_to)


def _fit_alone(
    config: RunConfig,
    recipe: Recipe,
    splits: Splits,
    out: Path,
    progress: Progress,
    label: str,
    report_to: Sequence[str],
) -> Run:
    method = MethodRecord(**{axis: getattr(recipe.method, axis) for axis in ("name", *AXES)})
    settings = _settings(recipe.objective), _settings(recipe.inference)
    run = processes.on_main(lambda: begin(out, config, splits, method, *settings))
    processes.one_first(lambda: check_shared(run, splits))
    if run.complete:
        logger.info("%s is trained already", out)
        return processes.on_main(lambda: store.load(out))
    members = recipe.inference.members
    labels = [label if members == 1 else f"{label}, member {i + 1} of {members}" for i in range(members)]
    others = [_member(config, number) for number in range(2, members + 1)]
    said = Said()
    if run.trained:  # and killed afterwards
        processes.on_main(run.check_files)
    else:
        run, said = _train(run, config, recipe, splits, progress, labels[0], report_to)
    single = named(replace(recipe.method, inference="single", calibrator=None))
    alone = Recipe(single, recipe.objective, SinglePass(), None)
    trained = [
        _fit(other, alone, splits, run.member(number), progress, labels[number - 1], report_to)
        for number, other in enumerate(others, start=2)
    ]
    if trained:
        files, first = [member.record.files for member in trained], run
        run = processes.on_main(lambda: first.updated(members=files))
    if recipe.calibrator is None and recipe.inference == SinglePass():
        return processes.on_main(run.finish)  # what training measured on dev is what it answers
    classifier = of_run(run)
    needs = _needs(recipe.calibrator)
    if recipe.inference != SinglePass():  # whose answers are others
        said = Said()
    if needs and processes.main_says(said.on_train is None):
        on_train = _in_shares(
            splits.train.texts, lambda own: classifier.outputs(own, needs, progress, "train")
        )
        said = replace(said, on_train=on_train)
    return processes.on_main(
        lambda: _finish(run, classifier, recipe.calibrator, splits, said, trained, progress)
    )


@dataclass(frozen=True)
class Said:
    """What a model as it is kept has said already, on the main process: a second pass would say the same."""

    on_train: Outputs | None = None
    on_dev: Outputs | None = None


def _in_shares(items: Sequence[Any], answer: Callable[[Sequence[Any]], Outputs]) -> Outputs | None:
    """The answers to all of them, on the main process; each process answers its share."""

    def answered(own: Sequence[Any]) -> dict[str, Any]:
        outputs = answer(own)
        named = {field.name: getattr(outputs, field.name) for field in fields(outputs)}
        return {name: array for name, array in named.items() if array is not None}

    found = processes.in_shares(items, answered)
    return Outputs(**found) if found else None


def _needs(calibrator: Calibrator | None) -> Needs:
    return frozenset() if calibrator is None else calibrator.needs


def _settings(entry: Any) -> dict[str, Any]:
    return {"name": entry.name, **asdict(entry)}


def _member(config: RunConfig, number: int) -> RunConfig:
    """Settings of an ensemble's second, third, … member: as of the first, but for the seed."""
    alone = {"inference": {"name": "single"}, "calibrator": NO_CALIBRATOR}
    return RunConfig(**config.model_dump() | alone | {"seed": config.seed + number - 1})


def _finish(
    run: Run,
    classifier: Classifier,
    calibrator: Calibrator | None,
    splits: Splits,
    said: Said,
    others: Sequence[Run],
    progress: Progress,
) -> Run:
    """Fit the calibrator on dev, and measure there what the run as a whole answers."""
    dev = splits.dev
    outputs = said.on_dev
    if outputs is None:
        outputs = classifier.outputs(dev.texts, _needs(calibrator), progress, f"dev {run.record.method.name}")
    labels, kept = classifier.class_ids(dev), None
    if calibrator is not None:
        try:
            fitted = classifier.fit_calibrator(
                calibrator, outputs, labels, splits.train, on_train=said.on_train
            )
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
    report_to: Sequence[str],
) -> tuple[Run, Said]:
    from transformers import PrinterCallback, TrainingArguments

    from calibrant.data.encode import Collate, EncodedTexts, cut_in_words, encode
    from calibrant.models import fast
    from calibrant.models.pretrained import TEXTCNN
    from calibrant.models.probe import head_layer
    from calibrant.training import (
        CRITERIA,
        CalibratedTrainer,
        EpochLines,
        Sealing,
        StopByItself,
        Watch,
        start_head,
    )

    method = recipe.method
    model, tokenizer, weights = processes.one_first(lambda: _loaded(config, recipe, splits))
    class_of = {name: i for i, name in enumerate(splits.label_names)}

    def encoded(part: Texts) -> EncodedTexts:
        rows = encode(tokenizer, part.texts, config.max_length)
        return EncodedTexts(rows, [class_of[label] for label in part.labels or ()])

    watch, criterion = Watch(progress, label), CRITERIA[method.keep]
    lines = EpochLines(label, recipe.objective.terms)
    train_set, dev_set = encoded(splits.train), encoded(splits.dev)
    if told := cut_in_words(tokenizer, splits.train.texts, config.max_length):
        logger.info(told)
    said, needs = Said(), _needs(recipe.calibrator)
    if method.start == "probe" and config.model != TEXTCNN:  # that one has learnt nothing before
        fast.apply(model.to(device()).eval())
        layer = head_layer(model, train_set.rows, tokenizer.pad_token_id)
        ask = partial(outputs_of, SinglePass(), [model], padding=tokenizer.pad_token_id, progress=progress)
        on_train = _in_shares(train_set.rows, partial(ask, needs=needs | {"head"}, label="features"))
        said = Said(start_head(layer, on_train, np.asarray(train_set.labels), weights))
        if method.frozen:
            on_dev = _in_shares(dev_set.rows, partial(ask, needs=needs, label=f"dev {method.name}"))
            said = replace(said, on_dev=on_dev)
        fast.remove(model)
    if method.frozen:
        if report_to:
            logger.warning(
                "%s has no steps to report to %s; `evaluate` measures it.", method.name, ", ".join(report_to)
            )

        def keep_probe() -> Run:
            return run.keep(model, tokenizer, _measured(said.on_dev, dev_set.labels, lines, watch))

        return processes.on_main(keep_probe), said
    start = {name: value.clone() for name, value in model.state_dict().items()}
    rate = config.learning_rate
    if rate is None:
        rate = method.rate(getattr(model.config, "hidden_size", None))
    stop = StopByItself(criterion, method.patience)
    last = processes.on_main(lambda: checkpoints.last(run.checkpoints))
    trainer = CalibratedTrainer(
        model=model,
        args=TrainingArguments(
            output_dir=str(run.checkpoints),
            num_train_epochs=processes.on_main(lambda: stop.epochs(config.epochs, last)),
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
            load_best_model_at_end=True,
            # The start counts as epoch 0; a checkpoint's log has it already.
            eval_on_start=method.keep == "refinement" and last is None,
            metric_for_best_model=criterion,
            greater_is_better=True,
            dataloader_pin_memory=False,
            use_cpu=device().type == "cpu",  # else several processes without a GPU are not told of each other
            disable_tqdm=True,
            report_to="none",
            seed=config.seed,
        ),
        train_dataset=train_set,
        eval_dataset=dev_set,
        data_collator=Collate(tokenizer.pad_token_id),
        processing_class=tokenizer,
        objective=recipe.objective,
        class_weights=weights,
        callbacks=[watch, lines, stop, Sealing(checkpoints.seal)],
    )
    trainer.remove_callback(PrinterCallback)
    if report_to:
        from calibrant.pages.plots import reliability_picture
        from calibrant.training.tracking import track

        track(trainer, report_to, run.path, reliability_picture)
    if last is not None:
        logger.info("Resuming %s from %s", run.path, last.name)
    with remembering(NO_MEMORY), writing(run.checkpoints, SAFE):
        trainer.train(resume_from_checkpoint=None if last is None else str(last))
    history = [e for e in trainer.state.log_history if f"eval_{criterion}" in e or "loss" in e]
    seconds = watch.elapsed()

    def keep() -> Run:
        if not all(math.isfinite(value) for entry in history for value in entry.values()):
            shutil.rmtree(run.checkpoints)  # to resume from them would end the same way
            raise Diverged(
                f"Training diverged: with --learning-rate {rate:g} the loss is no longer a "
                "number; take a lower one."
            )
        measured = [entry for entry in history if f"eval_{criterion}" in entry]
        best = max(measured, key=lambda entry: entry[f"eval_{criterion}"])
        if best["epoch"] == 0:
            model.load_state_dict(start)
        training = _record(trainer.state.global_step, seconds, best, history)
        if config.lora is None:
            return run.keep(model, tokenizer, training)
        run.keep_adapter(model)
        return run.keep(model.merge_and_unload(), tokenizer, training)

    kept = processes.on_main(keep)
    return kept, said if kept.training.best_epoch == 0 else Said()


def _loaded(config: RunConfig, recipe: Recipe, splits: Splits) -> tuple[Any, Any, NDArray[np.float64] | None]:
    """The model to begin with, its tokenizer and class weights, once nothing is against training."""
    from transformers import set_seed

    from calibrant.models.lora import check_peft_installed, with_lora
    from calibrant.models.pretrained import TEXTCNN, load_classifier

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
    if config.lora is not None:
        targets = config.lora_targets
        named = None if targets is None else [name.strip() for name in targets.split(",")]
        model = with_lora(model, config.lora, named, config.model)
    return model, tokenizer, weights


def _measured(
    on_dev: Outputs | None, labels: Sequence[int], lines: "EpochLines", watch: "Watch"
) -> TrainingRecord:
    """Of a model that is not trained further."""
    from transformers import EvalPrediction

    from calibrant.training import dev_metrics

    assert on_dev is not None
    figures = dev_metrics(EvalPrediction(on_dev.logits, np.asarray(labels)))
    start = {"epoch": 0.0} | {f"eval_{name}": value for name, value in figures.items()}
    lines.line(start, {})
    return _record(0, watch.elapsed(), start, [start])


def _record(
    steps: int, seconds: dict[str, float], best: dict[str, float], history: list[dict[str, float]]
) -> TrainingRecord:
    return TrainingRecord(
        steps=steps,
        **{name: round(value, 1) for name, value in seconds.items()},
        best_epoch=best["epoch"],
        **{f"dev_{name}": best[f"eval_{name}"] for name in KEPT_FIGURES},
        history=history,
    )
