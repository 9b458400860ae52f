"""``calibrant export``: a calibrated classifier as a plain model, which needs no code of ours.

The calibrator goes into the last linear layer (``calibrators/foldable.py``), so that the softmax of
``pipeline("text-classification", DIR)`` is the calibrated probability. The folder is there only if that
pipeline, asked for a few texts, gave the probabilities that calibrant gives.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from calibrant._system.atomic import check_folder, new_folder, write_text
from calibrant._system.progress import in_notebook
from calibrant._system.quiet import quiet
from calibrant.calibrators import Calibrator, calibrated
from calibrant.calibrators.foldable import Foldable
from calibrant.classifier import load, outputs_of
from calibrant.data.encode import encode, pad
from calibrant.errors import UserError
from calibrant.inference.single import SinglePass
from calibrant.models import fast
from calibrant.models.last_linear import last_linear
from calibrant.models.onnx import check_onnx_installed, write_onnx
from calibrant.models.pooling import PooledConfig
from calibrant.runs.card import model_card, use_in_words
from calibrant.types import Progress

TOLERANCE = 1e-5
"""Rounding in float32 comes to 4e-7 with MiniLM; a calibrator folded into the wrong layer to far more."""
LONG = 512
"""Tokens of a long text to check with; what some models can take, 32768 and more, fits in no memory."""


@dataclass(frozen=True)
class Exported:
    """What was written, and the largest differences of a probability from calibrant's own."""

    folder: Path
    calibrator: str | None  # the one that is folded in
    difference: float  # of transformers' pipeline
    onnx_difference: float | None  # of onnxruntime from the pipeline's model; None: no ONNX file


def export(
    run: Path | str, *, folder: Path | str, onnx: bool = False, progress: Progress | None = in_notebook
) -> Exported:
    """Write a run as a plain model: weights, tokenizer and model card, and ``model.onnx`` if asked for.

    Refused where plain transformers could not give the run's probabilities.
    """
    check_target(folder, onnx)
    classifier = load(run)
    if not isinstance(classifier.inference, SinglePass):
        raise UserError(
            f"{run} answers with the mean of several passes ({classifier.inference.name}), which one plain "
            "model cannot give; export a run that was trained with --inference single."
        )
    (model,) = classifier.models
    check_plain(model)
    own = classifier.own_run("Exports")
    max_length = min(classifier.max_length, classifier.tokenizer.model_max_length)
    card = model_card(own.name, own.record, own.metrics(), use_in_words(max_length, onnx))
    return write_plain(
        folder,
        model,
        classifier.tokenizer,
        classifier.calibrator,
        max_length,
        card,
        onnx,
        progress,
    )


def check_target(folder: Path | str, onnx: bool) -> None:
    """Refuse early what would fail after all the work."""
    path = Path(folder)
    if path.is_file() or (path.is_dir() and any(path.iterdir())):
        raise UserError(f"{path} exists and is not empty; name a new folder for the export.")
    check_folder(path, "the export")
    if onnx:
        check_onnx_installed()


def check_plain(model: Any) -> None:
    """Refuse early, too, a model that could not be loaded without calibrant."""
    if not type(model).__module__.startswith("transformers."):
        instead = "with --pooling native" if isinstance(model.config, PooledConfig) else "another --model"
        raise UserError(
            f"{type(model).__name__} is an architecture of calibrant's own, unknown to plain transformers, "
            f"and cannot be exported; use its run with calibrant.load, or train {instead}."
        )


@quiet()
def write_plain(
    folder: Path | str,
    model: Any,
    tokenizer: Any,
    calibrator: Calibrator | None,
    max_length: int,
    card: str,
    onnx: bool,
    progress: Progress | None = None,
) -> Exported:
    """Fold the calibrator into ``model``, in place, write it with all that belongs to it, and check that."""

    def step(done: int) -> None:
        if progress is not None:
            progress("export", done, 3)

    step(0)
    model.cpu()  # where the pipeline that it is compared with runs, since a GPU may round more
    labels = [model.config.id2label[i] for i in range(model.config.num_labels)]
    texts = _texts(labels, max_length)
    rows = encode(tokenizer, texts, max_length)
    fast.remove(model)  # what is saved and checked is the plain model
    said = outputs_of(SinglePass(), [model.eval()], rows, tokenizer.pad_token_id)
    expected = calibrated(said, calibrator).probabilities
    if calibrator is not None:
        ids, mask = pad(rows, tokenizer.pad_token_id)
        fold(calibrator, last_linear(model, ids, mask))
    model.config.problem_type = "single_label_classification"  # by which a pipeline takes the softmax
    tokenizer.model_max_length = max_length
    tokenizer.padding_side = "right"  # as in training
    with new_folder(Path(folder)) as unfinished:
        model.save_pretrained(unfinished)
        tokenizer.save_pretrained(unfinished)
        write_text(unfinished / "README.md", card)
        step(1)
        plain = _pipeline(unfinished)
        difference = float(np.abs(_answers(plain, texts, labels) - expected).max())
        if not difference <= TOLERANCE:  # so that NaN fails
            raise UserError(
                f"Plain transformers gives probabilities that are off by {difference:.2g}, more than "
                f"{TOLERANCE:g}, for this {type(model).__name__}; nothing was written. "
                "Use calibrant.load on the run itself."
            )
        step(2)
        onnx_difference = None
        if onnx:
            path = unfinished / "model.onnx"
            onnx_difference = write_onnx(plain.model, path, rows, tokenizer.pad_token_id)
    step(3)
    return Exported(
        Path(folder), None if calibrator is None else calibrator.name, difference, onnx_difference
    )


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


def _texts(labels: Sequence[str], max_length: int) -> list[str]:
    """Texts to check with: short ones, and a long one, which is cut where the model reads no more."""
    names = list(labels[:8])
    return [*names, " ".join(names) + " a" * min(max_length, LONG)]


def _pipeline(folder: Path) -> Any:
    from transformers import pipeline

    return pipeline(
        "text-classification",
        str(folder),
        device="cpu",
        truncation=True,
        top_k=None,
        trust_remote_code=False,
        model_kwargs={"use_safetensors": True},
    )


def _answers(plain: Any, texts: list[str], labels: Sequence[str]) -> NDArray[np.floating]:
    """What the pipeline says of each class, (n, K)."""
    scores = [{answer["label"]: answer["score"] for answer in answers} for answers in plain(texts)]
    return np.array([[of_text[name] for name in labels] for of_text in scores])
