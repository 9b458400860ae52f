"""From settings to what they ask for: a row of ``methods.py``, with what the user named in its place."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar, get_type_hints

from pydantic import ConfigDict, TypeAdapter, ValidationError

from calibrant.calibrators import Calibrator, new_calibrator
from calibrant.config import RunConfig
from calibrant.errors import UserError
from calibrant.inference import Inference, inferences
from calibrant.methods import METHODS, NO_CALIBRATOR, Method, named
from calibrant.models.pretrained import TEXTCNN
from calibrant.objectives import Objective, objectives
from calibrant.registry import pick

T = TypeVar("T")
OWN = ("start", "pooling", "keep", "patience")
"""Axes that a setting of the same name changes."""


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
    own = {axis: value for axis in OWN if (value := getattr(config, axis)) is not None}
    method = named(
        replace(
            row,
            objective=config.objective.get("name", row.objective),
            inference=config.inference.get("name", row.inference),
            calibrator=None if calibrator == NO_CALIBRATOR else calibrator,
            **own,
        )
    )
    if method.frozen:
        _check_frozen(config, row, method)
    if config.model == TEXTCNN:
        method = _of_textcnn(method, own)
    return Recipe(
        method,
        make("objective", method.objective, objectives(), config.objective),
        make("inference", method.inference, inferences(), config.inference),
        None if method.calibrator is None else new_calibrator(method.calibrator),
    )


def _check_frozen(config: RunConfig, row: Method, method: Method) -> None:
    """Refuse what has no part in a training of the head alone."""
    if method.start != "probe":
        raise UserError(f"--start {method.start}: an encoder that stays frozen needs the probe as its head.")
    if method.objective != row.objective:
        raise UserError(
            f"--objective {method.objective}: {row.name} trains the head alone, by {row.objective}; leave "
            "it out."
        )
    if config.lora is not None:
        raise UserError(f"--lora: {row.name} trains the head alone; leave one of them out.")
    if config.model == TEXTCNN:
        raise UserError(
            f"{row.name} needs a pretrained encoder, and {TEXTCNN} has none; train another --model."
        )


def _of_textcnn(method: Method, own: Mapping[str, Any]) -> Method:
    """It has learnt nothing that a probe could read, and a head of its own."""
    alone = replace(method, start="random", pooling="native")
    for axis in ("start", "pooling"):
        has = getattr(alone, axis)
        if own.get(axis, has) != has:
            raise UserError(f"--{axis} {own[axis]}: {TEXTCNN} has {has} only; leave it out.")
    return alone


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
