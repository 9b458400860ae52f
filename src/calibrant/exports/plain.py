"""A classifier as a plain transformers model, with its calibrator inside the last linear layer.

The softmax of ``pipeline("text-classification", DIR)`` is then the calibrated probability. See
``calibrators/foldable.py`` for which calibrators can go there.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from calibrant._system.atomic import check_folder
from calibrant.calibrators import Calibrator
from calibrant.calibrators.foldable import Foldable
from calibrant.data.encode import model_inputs
from calibrant.errors import UserError
from calibrant.exports.answers import Answers
from calibrant.models import fast
from calibrant.models.last_linear import last_linear
from calibrant.types import Pair


def check_target(folder: Path | str) -> None:
    """Refuse early what would fail after all the work."""
    path = Path(folder)
    if path.is_file() or (path.is_dir() and any(path.iterdir())):
        raise UserError(f"{path} exists and is not empty; name a new folder for the export.")
    check_folder(path, "the export")


def is_plain(model: Any, calibrator: Calibrator | None) -> bool:
    """Whether transformers alone can give the run's probabilities."""
    of_transformers = type(model).__module__.startswith("transformers.")
    return of_transformers and (calibrator is None or isinstance(calibrator, Foldable))


def check_plain(model: Any) -> None:
    """Refuse a model that could not be loaded without code of ours."""
    if not type(model).__module__.startswith("transformers."):
        raise UserError(
            f"{type(model).__name__} is an architecture of calibrant's own, unknown to plain transformers, "
            "and cannot be exported; use its run with calibrant.load, or train another --model."
        )


def write_plain(
    folder: Path, model: Any, tokenizer: Any, calibrator: Calibrator | None, rows: Sequence[Sequence[int]]
) -> None:
    """Fold the calibrator into ``model``, in place, and write the two; ``rows`` are a few tokenised texts."""
    fast.remove(model)  # what is saved is the plain model
    if calibrator is not None:
        fold(calibrator, last_linear(model, **model_inputs(rows, tokenizer.pad_token_id)))
    model.config.problem_type = "single_label_classification"  # by which a pipeline takes the softmax
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


@torch.no_grad()
def fold(calibrator: Calibrator, layer: nn.Linear) -> None:
    """Let the layer give A·z + c where it gave z; refused where the calibrator is not of that form."""
    if not isinstance(calibrator, Foldable):
        raise UserError(
            f"The calibrator {calibrator.name!r} is not linear in the logits and cannot be folded into the "
            "last layer; fit another with `calibrant calibrate RUN --calibrator temperature`."
        )
    weight = layer.weight.double().numpy()
    bias = np.zeros(len(weight)) if layer.bias is None else layer.bias.double().numpy()
    weight, bias = calibrator.fold(weight, bias)
    layer.weight.copy_(torch.from_numpy(weight))
    if layer.bias is not None:
        layer.bias.copy_(torch.from_numpy(bias))
    elif bias.any():
        raise UserError(
            f"The last layer has no bias to take the offsets of the calibrator {calibrator.name!r}; use "
            "temperature, which has none."
        )


def plain_answers(folder: Path, texts: Sequence[str], labels: Sequence[str]) -> Answers:
    """What transformers' own pipeline says."""
    from transformers import pipeline

    plain = pipeline(
        "text-classification",
        str(folder),
        device="cpu",
        truncation=True,
        top_k=None,
        trust_remote_code=False,
        model_kwargs={"use_safetensors": True},
    )
    return Answers(by_label(plain(for_pipeline(texts)), labels))


def for_pipeline(texts: Sequence[str]) -> list[Any]:
    """Texts as a pipeline of transformers takes them: a pair is a dictionary."""
    return [{"text": t.first, "text_pair": t.second} if isinstance(t, Pair) else t for t in texts]


def by_label(answers: Any, labels: Sequence[str]) -> Any:
    """A pipeline's scores with ``top_k=None``, (n, K)."""
    scores = [{each["label"]: each["score"] for each in of_text} for of_text in answers]
    return np.array([[of_text[name] for name in labels] for of_text in scores])
