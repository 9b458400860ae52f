"""A classifier as one ONNX file, checked to answer as torch does."""

import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.special import softmax
from torch import Tensor, nn

from calibrant.data.encode import pad
from calibrant.errors import UserError

TOLERANCE = 1e-4
INPUTS = ("input_ids", "attention_mask")


def check_onnx_installed() -> None:
    """Ask before any work is done."""
    missing = [name for name in ("onnx", "onnxscript", "onnxruntime") if find_spec(name) is None]
    if missing:
        raise UserError(f"--onnx needs {', '.join(missing)}, not installed: pip install 'calibrant[onnx]'.")


def write_onnx(model: Any, path: Path, rows: Sequence[Sequence[int]], padding: int) -> float:
    """Write ``model`` and give the largest difference of a probability between onnxruntime and torch.

    The graph takes ``input_ids`` and ``attention_mask``, (B, T) int64 of any B and T, and gives ``logits``,
    (B, K): the names that other readers of ONNX classifiers look for.

    Args:
        model: a sequence classifier on the CPU.
        path: the file; one that fails is removed.
        rows: token ids of two or more texts of unequal length, to trace and to check with.
        padding: the id that fills up the shorter ones.
    """
    shortest, *_, longest = sorted(rows, key=len)
    network = _Logits(model.eval())
    batch_and_length = {0: "batch", 1: "length"}
    with _told_in_one_sentence(model, path), torch.no_grad(), _quiet():
        torch.onnx.export(
            network,
            pad([longest, shortest], padding),
            path,
            input_names=INPUTS,
            output_names=("logits",),
            dynamic_shapes=(batch_and_length, batch_and_length),
            dynamo=True,
            external_data=sum(weight.nbytes for weight in model.parameters()) > 2**31,  # protobuf's limit
            verbose=False,
        )
        # Other sizes than the traced one: one text, short and long, without padding; all, with padding.
        batches = [shortest], [longest], rows
        worst = max(_difference(network, path, pad(batch, padding)) for batch in batches)
        if not worst <= TOLERANCE:  # so that NaN fails
            raise UserError(
                f"The ONNX file of {type(model).__name__} gives probabilities that are off by {worst:.2g}, "
                f"more than {TOLERANCE:g}, and was removed; leave --onnx out."
            )
    return worst


class _Logits(nn.Module):
    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        logits: Tensor = self.model(input_ids=input_ids, attention_mask=attention_mask).logits
        return logits


def _difference(network: nn.Module, path: Path, batch: tuple[Tensor, Tensor]) -> float:
    from onnxruntime import InferenceSession

    session = InferenceSession(path, providers=["CPUExecutionProvider"])
    (z,) = session.run(None, {name: values.numpy() for name, values in zip(INPUTS, batch, strict=True)})
    with torch.no_grad():
        expected = network(*batch).numpy()
    return float(np.abs(softmax(z, axis=1) - softmax(expected, axis=1)).max())


@contextmanager
def _told_in_one_sentence(model: Any, path: Path) -> Iterator[None]:
    """Whatever fails leaves no file; what the exporter and onnxruntime say of it fills screens."""
    try:
        yield
    except Exception as error:  # they raise dozens of types, some of which derive from nothing else
        for file in (path, path.with_name(f"{path.name}.data")):  # large weights are in the second
            file.unlink(missing_ok=True)
        if isinstance(error, UserError):
            raise
        cause = error.__cause__ or error  # the exporter's own says only in which of its steps it was
        reason = str(cause).strip().partition("\n")[0].rstrip(".")
        raise UserError(
            f"No ONNX file can be made of {type(model).__name__} ({type(cause).__name__}: {reason}); leave "
            "--onnx out."
        ) from error


@contextmanager
def _quiet() -> Iterator[None]:
    """The exporter warns of its own internals and of packages that it could do with, in dozens of lines."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
