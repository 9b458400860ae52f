"""From settings to a run on disk."""

import logging
import math
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

from pydantic import ConfigDict, TypeAdapter, ValidationError
from scipy.special import softmax

from calibrant import artifact
from calibrant.calibrators import Calibrator, calibrators
from calibrant.config import RunConfig
from calibrant.data import datasets, make_splits, read_file
from calibrant.device import has_bf16
from calibrant.errors import Diverged, UserError
from calibrant.inference import Inference, inferences
from calibrant.inference.single import SinglePass
from calibrant.methods import METHODS, NO_CALIBRATOR, Method, combination
from calibrant.metrics import accuracy, negative_log_likelihood
from calibrant.objectives import Objective, objectives
from calibrant.prediction import Classifier
from calibrant.registry import pick
from calibrant.types import Progress, Splits, Texts

logger = logging.getLogger(__name__)
T = TypeVar("T")


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


def load_again(config: RunConfig, recorded: dict[str, Any]) -> Splits:
    """The texts that a run was trained on, as its record describes them; refused where they have changed."""
    splits = load_splits(config)
    found = splits.provenance()
    if any(found[part]["fingerprint"] != recorded[part]["fingerprint"] for part in found):
        raise UserError(f"{splits.train.source} is no longer what the run was trained on.")
    return splits


@dataclass(frozen=True)
class Recipe:
    """What the settings ask for, checked."""

    method: Method
    objective: Objective
    inference: Inference
    calibrator: Calibrator | None


def read_recipe(config: RunConfig) -> Recipe:
    """The row ``method``, with what the settings name beside it put in its place."""
    row = pick("method", config.method, METHODS)
    for axis, choice in (("objective", config.objective), ("inference", config.inference)):
        if not isinstance(choice.get("name", ""), str):
            raise UserError(f"{axis}: expected a name, got {choice['name']!r}; see `calibrant list {axis}s`.")
    calibrator = row.calibrator if config.calibrator is None else config.calibrator
    method = combination(
        config.objective.get("name", row.objective),
        config.inference.get("name", row.inference),
        None if calibrator == NO_CALIBRATOR else calibrator,
    )
    return Recipe(
        method,
        make("objective", method.objective, objectives(), config.objective),
        make("inference", method.inference, inferences(), config.inference),
        None if method.calibrator is None else pick("calibrator", method.calibrator, calibrators())(),
    )


def make(kind: str, name: str, entries: Mapping[str, type[T]], settings: dict[str, Any]) -> T:
    """The entry called ``name`` with these hyper-parameters."""
    entry = pick(kind, name, entries)
    known = [field.name for field in fields(entry)]  # type: ignore[arg-type]
    types = get_type_hints(entry)
    checked = {}
    for setting, value in settings.items():
        if setting == "name":
            continue
        if setting not in known:
            raise UserError(f"The {kind} {name!r} has no {setting!r}; it has {', '.join(known) or 'none'}.")
        try:  # a word where a number belongs; `1e-3`, which is a word to YAML, becomes the number
            expected = TypeAdapter(types[setting], config=ConfigDict(allow_inf_nan=False))
            checked[setting] = expected.validate_python(value)
        except ValidationError as error:
            raise UserError(f"`{setting}`: {error.errors()[0]['msg']}, got {value!r}.") from error
    return entry(**checked)


def fit(config: RunConfig, out: Path | str, progress: Progress = silent) -> artifact.Run:
    """Train as the settings say and leave a run in ``out``.

    A finished run of the same settings and data is returned as it is; an interrupted one resumes
    from its last checkpoint.
    """
    recipe = read_recipe(config)
    return _fit(config, recipe, load_splits(config), Path(out), progress, f"train {recipe.method.name}")


def _fit(
    config: RunConfig, recipe: Recipe, splits: Splits, out: Path, progress: Progress, label: str
) -> artifact.Run:
    method = {axis: getattr(recipe.method, axis) for axis in ("name", "objective", "inference", "calibrator")}
    run = artifact.begin(
        out, config, splits, method, _settings(recipe.objective), _settings(recipe.inference)
    )
    if run.complete:
        logger.info("%s is trained already", out)
        return artifact.load(out)
    members = recipe.inference.members
    labels = [label if members == 1 else f"{label}, member {i + 1} of {members}" for i in range(members)]
    others = [_member(config, number) for number in range(2, members + 1)]
    if run.trained:  # and killed afterwards
        run.check_files()
    else:
        run = _train(run, config, recipe, splits, progress, labels[0])
    alone = Recipe(combination(recipe.objective.name, "single", None), recipe.objective, SinglePass(), None)
    trained = [
        _fit(other, alone, splits, run.member(number), progress, labels[number - 1])
        for number, other in enumerate(others, start=2)
    ]
    if trained:
        run = run.updated(members=[member.record["files"] for member in trained])
    if recipe.calibrator is None and recipe.inference == SinglePass():
        return run.finish()  # what training measured on dev is what it answers
    return _finish(run, recipe.calibrator, splits.dev, trained, progress)


def _settings(entry: Any) -> dict[str, Any]:
    return {"name": entry.name, **asdict(entry)}


def _member(config: RunConfig, number: int) -> RunConfig:
    """Settings of an ensemble's second, third, … member: as of the first, but for the seed."""
    alone = {"inference": {"name": "single"}, "calibrator": NO_CALIBRATOR}
    return RunConfig.build(**config.model_dump() | alone | {"seed": config.seed + number - 1})


def _finish(
    run: artifact.Run,
    calibrator: Calibrator | None,
    dev: Texts,
    others: Sequence[artifact.Run],
    progress: Progress,
) -> artifact.Run:
    """Fit the calibrator on dev, and measure there what the run as a whole answers."""
    classifier = Classifier(run)
    logits = classifier.logits(dev.texts, progress, f"dev {run.record['method']['name']}")
    labels = classifier.class_ids(dev)
    probabilities = softmax(logits, axis=1)
    kept = None
    if calibrator is not None:
        try:
            fitted = calibrator.fit(logits, labels)
            probabilities = fitted.probabilities(logits)
            kept = {**fitted.state(), "fitted_on": dev.provenance()}
        except UserError as error:  # not worth a training
            logger.warning("%s The run is kept without a calibrator.", error)
    training = run.record["training"] | {
        **training_times((run, *others)),
        "dev_accuracy": accuracy(probabilities, labels),
        "dev_confidence": float(probabilities.max(axis=1).mean()),
        "dev_nll": negative_log_likelihood(probabilities, labels),
    }
    return run.finish(calibrator=kept, training=training)


def training_times(runs: Iterable[artifact.Run]) -> dict[str, float]:
    """Of all of them together, by the clocks that every one was timed with."""
    trainings = [run.record["training"] for run in runs]
    clocks = [clock for clock in ("seconds", "work_seconds") if all(clock in each for each in trainings)]
    return {clock: round(sum(each[clock] for each in trainings), 1) for clock in clocks}


def _train(
    run: artifact.Run,
    config: RunConfig,
    recipe: Recipe,
    splits: Splits,
    progress: Progress,
    label: str,
) -> artifact.Run:
    from transformers import PrinterCallback, TrainingArguments, set_seed

    from calibrant.data.encode import Collate, EncodedTexts, encode
    from calibrant.models.pretrained import load_classifier
    from calibrant.training import CalibratedTrainer, Watch

    if config.bf16 and not has_bf16():
        raise UserError("--bf16 needs a GPU that has it, and there is none here; leave it out.")
    set_seed(config.seed)
    model, tokenizer = load_classifier(config.model, splits.label_names, config.layers, splits.train.texts)
    if config.gradient_checkpointing and not model.supports_gradient_checkpointing:
        raise UserError(f"--gradient-checkpointing: the model {config.model!r} cannot do it; leave it out.")
    recipe.inference.check(model)
    class_of = {name: i for i, name in enumerate(splits.label_names)}

    def encoded(part: Texts) -> EncodedTexts:
        rows = encode(tokenizer, part.texts, config.max_length)
        return EncodedTexts(rows, [class_of[label] for label in part.labels or ()])

    watch = Watch(progress, label)
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
        objective=recipe.objective,
        callbacks=[watch],
    )
    trainer.remove_callback(PrinterCallback)
    last = run.last_checkpoint()
    if last is not None:
        logger.info("Resuming %s from %s", run.path, last.name)
    with _memory_told_in_one_sentence():
        trainer.train(resume_from_checkpoint=None if last is None else str(last))
    history = [entry for entry in trainer.state.log_history if "eval_selection" in entry or "loss" in entry]
    if not all(math.isfinite(value) for entry in history for value in entry.values()):
        shutil.rmtree(run.checkpoints)  # to resume from them would end the same way
        raise Diverged(
            f"Training diverged: with --learning-rate {config.learning_rate:g} the loss is no longer a "
            "number; take a lower one."
        )
    best = max((e for e in history if "eval_selection" in e), key=lambda entry: entry["eval_selection"])
    return run.keep(
        model,
        tokenizer,
        {
            "steps": trainer.state.global_step,
            **{name: round(seconds, 1) for name, seconds in watch.elapsed().items()},
            "best_epoch": best["epoch"],
            "dev_accuracy": best["eval_accuracy"],
            "dev_confidence": best["eval_confidence"],
            "dev_nll": best["eval_nll"],
            "history": history,
        },
    )


@contextmanager
def _memory_told_in_one_sentence() -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:  # of CUDA a subclass; MPS and the CPU only say so
        if not any(words in str(error) for words in ("out of memory", "can't allocate memory")):
            raise
        raise UserError(
            "Training ran out of memory; take a smaller --batch-size (with --gradient-accumulation-steps, "
            "for as many texts a step) or --max-length, or add --gradient-checkpointing."
        ) from error
