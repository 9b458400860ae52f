"""A run's classifier and its decision as one module: ``models/modeling_calibrant.py``, filled.

The same module is saved as a folder and traced for ONNX.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from calibrant.calibrators import Calibrator, Chain, Familiarity
from calibrant.calibrators.foldable import Foldable
from calibrant.decide.rule import Rule
from calibrant.errors import UserError
from calibrant.models import fast
from calibrant.models.modeling_calibrant import (
    SCORES,
    CalibrantConfig,
    CalibrantForSequenceClassification,
    Decision,
    PooledForSequenceClassification,
)
from calibrant.models.split import type_embeddings
from calibrant.scores import FittedScore

Floats = NDArray[np.float64]
NOT_THEIRS = ("_name_or_path", "id2label", "label2id")
"""Of the classifier's config: a folder of this machine, and what the config around it says."""


def check_decided(model: Any, calibrator: Calibrator | None, rule: Rule) -> None:
    """Refuse early what this module cannot hold."""
    if not is_known(model):
        raise UserError(
            f"{type(model).__name__} is an architecture of calibrant's own, unknown to plain transformers, "
            "and cannot be exported; use its run with calibrant.load, or train another --model."
        )
    _parts(calibrator)
    if rule.score is not None and rule.score.name not in SCORES:
        raise UserError(
            f"The rule of abstention reads the score {rule.score.name!r}, which cannot be exported; learn it "
            f"with another of {', '.join(SCORES)}, or remove it with `calibrant threshold RUN --remove`."
        )


def is_known(model: Any) -> bool:
    """Whether the module beside the weights can make it."""
    return type(model).__module__.startswith("transformers.") or isinstance(
        model, PooledForSequenceClassification
    )


def decided(model: Any, calibrator: Calibrator | None, rule: Rule) -> CalibrantForSequenceClassification:
    """The module that answers as the run does; it shares the model's weights."""
    arrays, settings = decision_of(model.config.num_labels, calibrator, rule)
    own = {name: value for name, value in model.config.to_dict().items() if name not in NOT_THEIRS}
    if isinstance(own.get("encoder"), dict):
        own["encoder"].pop("_name_or_path", None)
    config = CalibrantConfig(
        classifier=own,
        decision=settings,
        reads_layers=settings["alpha"] is not None or bool(rule.needs),
        reads_types=type_embeddings(model) is not None,
        id2label=model.config.id2label,
        label2id=model.config.label2id,
        problem_type="single_label_classification",  # by which a pipeline takes the softmax
        pad_token_id=model.config.pad_token_id,
    )
    with torch.device("meta"):  # its own weights would be drawn for nobody
        made = CalibrantForSequenceClassification(config)
    fast.remove(model)
    made.classifier = model
    made.decision = decision(arrays, settings)
    return made.eval()  # type: ignore[no-any-return]


def decision(arrays: Mapping[str, Floats], settings: Mapping[str, Any]) -> Decision:
    """The second half alone."""
    made = Decision(**settings)
    for name, array in arrays.items():
        made.get_buffer(name).copy_(torch.tensor(array))  # to float32
    return made


def decision_of(
    classes: int, calibrator: Calibrator | None, rule: Rule
) -> tuple[dict[str, Floats], dict[str, Any]]:
    """What ``Decision`` is made of: the arrays, and the settings with their shapes."""
    linear, familiarity = _parts(calibrator)
    weight: Floats
    weight, bias = np.eye(classes), np.zeros(classes)
    if linear is not None:
        weight, bias = linear.fold(weight, bias)
    if not (weight - np.diag(np.diag(weight))).any():
        weight = np.diag(weight)
    arrays = {"linear_weight": weight, "linear_bias": bias}
    arrays["rule_thresholds"] = np.broadcast_to(rule.threshold, classes)
    if familiarity is not None:
        arrays |= _named("familiarity_", familiarity.arrays())
    if isinstance(rule.score, FittedScore):
        arrays |= _named("score_", rule.score.arrays())
    settings = {
        "arrays": {name: list(array.shape) for name, array in arrays.items()},
        "alpha": None if familiarity is None else familiarity.alpha,
        "score": None if rule.score is None else rule.score.name,
        "cut": None if rule.score is None else float(rule.cut),
    }
    return arrays, settings


def _named(owner: str, arrays: Mapping[str, Any]) -> dict[str, Floats]:
    """With the owner's name before theirs, and means already mapped by the W that they are compared in."""
    maps = {"means": "w", "mean": "w_all", "inner_means": "inner_w"}
    return {
        f"{owner}{name}": np.asarray(array @ arrays[maps[name]] if name in maps else array, dtype=np.float64)
        for name, array in arrays.items()
    }


def _parts(calibrator: Calibrator | None) -> tuple[Foldable | None, Familiarity | None]:
    """What is affine in the logits and, after it, familiarity."""
    parts = calibrator.parts if isinstance(calibrator, Chain) else (calibrator,)
    match parts:
        case (None,):
            return None, None
        case (Foldable() as linear,):
            return linear, None
        case (Familiarity() as familiarity,):
            return None, familiarity
        case (Foldable() as linear, Familiarity() as familiarity):
            return linear, familiarity
    assert calibrator is not None
    raise UserError(
        f"The calibrator {calibrator.name!r} cannot be exported: what can be is a linear one (temperature, "
        "vector-scaling, matrix-scaling), familiarity, or the two in this order; fit another with `calibrant "
        "calibrate RUN --calibrator temperature+familiarity`."
    )
