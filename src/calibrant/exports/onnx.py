"""A run's whole decision as one ONNX graph.

    input_ids, attention_mask  (B, T) int64 of any B and T; of pairs token_type_ids, too, where it reads them
    logits         (B, K)  log p, the name that other readers of ONNX classifiers look for
    probabilities  (B, K)  after temperature and familiarity
    familiarity    (B,)    where the run tells it
    abstain        (B,)    bool

It is traced in two halves, ``see`` and ``Decision`` of ``models/modeling_calibrant.py``, and joined, so that
the first can be quantised and the second be fitted to what that makes of it.
"""

import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from calibrant.data.encode import model_inputs
from calibrant.errors import UserError
from calibrant.exports.answers import Answers
from calibrant.models.modeling_calibrant import CalibrantForSequenceClassification, Decision, Seen
from calibrant.types import Outputs, Progress

BATCH_SIZE = 32
LARGEST = 2**31
"""Bytes of a file, by protobuf."""
PREFIX = "decision/"
SEEN = tuple(f"seen_{name}" for name in Seen._fields)
"""The values that go from one half to the other."""


def check_onnx_installed(option: str = "--onnx") -> None:
    """Ask before any work is done."""
    missing = [name for name in ("onnx", "onnxscript", "onnxruntime") if find_spec(name) is None]
    if missing:
        raise UserError(f"{option} needs {', '.join(missing)}, not installed: pip install 'calibrant[onnx]'.")


def seeing(model: CalibrantForSequenceClassification, rows: Sequence[Sequence[int]], padding: int) -> Any:
    """The first half, traced: from ids and mask to ``SEEN``.

    ``rows`` are token ids of two or more texts of unequal length.
    """
    size = sum(weight.nbytes for weight in model.parameters())
    if size > LARGEST:
        raise UserError(
            f"No ONNX file can be made of {type(model.classifier).__name__}: its weights have "
            f"{size / 2**30:.1f} GB, and one file holds 2; leave --onnx out."
        )
    shortest, *_, longest = sorted(rows, key=len)
    batch = {0: "batch", 1: "length"}
    names = SEEN if model.config.reads_layers else SEEN[:1]
    inputs = model_inputs([longest, shortest], padding)
    return _traced(_See(model), tuple(inputs.values()), list(inputs), names, (batch,) * len(inputs))


def deciding(model: Decision, shapes: Sequence[int]) -> Any:
    """The second half, traced; ``shapes`` are the widths of ``SEEN``."""
    batch = tuple(torch.zeros(2, width) for width in shapes)
    names = SEEN[: len(shapes)]
    found = ["logits", "probabilities", *(["familiarity"] if model.alpha is not None else []), "abstain"]
    return _traced(_Decide(model.eval()), batch, names, found, ({0: "batch"},) * len(shapes))


def joined(first: Any, second: Any) -> Any:
    """One graph of the two."""
    from onnx import compose

    names = [value.name for value in first.graph.output]
    second = compose.add_prefix(second, PREFIX)  # both number their inner values from 0
    one = compose.merge_models(first, second, [(name, f"{PREFIX}{name}") for name in names])
    del one.graph.value_info[:]  # onnxruntime refuses those of values that quantisation has changed
    found = {value.name: value.name.removeprefix(PREFIX) for value in one.graph.output}
    for node in one.graph.node:
        node.output[:] = [found.get(name, name) for name in node.output]
        node.input[:] = [found.get(name, name) for name in node.input]
    for value in one.graph.output:
        value.name = found[value.name]
    return one


class Session:
    """onnxruntime with a graph, asked batch by batch."""

    def __init__(self, graph: Any, threads: int = 0) -> None:
        """``graph`` is a model in memory or a file; 0 threads are as many as onnxruntime wants."""
        from onnxruntime import InferenceSession, SessionOptions

        options = SessionOptions()
        options.intra_op_num_threads = threads
        options.log_severity_level = 3  # it warns of its own clean-up
        source = str(graph) if isinstance(graph, Path) else graph.SerializeToString()
        self._session = InferenceSession(source, options, providers=["CPUExecutionProvider"])
        self.names = [value.name for value in self._session.get_outputs()]

    def __call__(
        self,
        rows: Sequence[Sequence[int]],
        padding: int,
        progress: Progress | None = None,
        label: str = "onnx",
        batch_size: int = BATCH_SIZE,
    ) -> dict[str, NDArray[Any]]:
        """What it gives of each text, (n, …), by name; texts of like length share a batch."""
        found: dict[str, NDArray[Any]] = {}
        order = sorted(range(len(rows)), key=lambda i: len(rows[i]), reverse=True)
        for start in range(0, len(order), batch_size):
            chosen = order[start : start + batch_size]
            batch = model_inputs([rows[i] for i in chosen], padding)
            said = self._session.run(None, {name: values.numpy() for name, values in batch.items()})
            for name, part in zip(self.names, said, strict=True):
                if name not in found:
                    found[name] = np.empty((len(rows), *part.shape[1:]), dtype=part.dtype)
                found[name][chosen] = part
            if progress is not None:
                progress(label, start + len(chosen), len(order))
        return found


def outputs_of(seen: Mapping[str, NDArray[Any]]) -> Outputs:
    """What a first half gives, as calibrators and rules read it."""
    return Outputs(seen["seen_logits"].astype(np.float64), seen.get("seen_last"), seen.get("seen_middle"))


def answers_of(graph: Any, batches: Sequence[Sequence[Sequence[int]]], padding: int) -> Answers:
    """Of all the texts, each batch of token ids asked by itself."""
    session = Session(graph)
    parts = [session(rows, padding, batch_size=len(rows)) for rows in batches]
    found = {name: np.concatenate([part[name] for part in parts]) for name in session.names}
    return Answers(found["probabilities"], found.get("familiarity"), found["abstain"])


class _See(nn.Module):
    def __init__(self, model: CalibrantForSequenceClassification) -> None:
        super().__init__()
        self.model = model

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor | None = None
    ) -> tuple[Tensor, ...]:
        return self.model.see(input_ids, attention_mask, token_type_ids)


class _Decide(nn.Module):
    def __init__(self, decision: Decision) -> None:
        super().__init__()
        self.decision = decision

    def forward(
        self,
        logits: Tensor,
        last: Tensor | None = None,
        middle: Tensor | None = None,
        average: Tensor | None = None,
    ) -> tuple[Tensor, ...]:
        p, familiarity, abstain = self.decision(logits, last, middle, average)
        told = () if familiarity is None else (familiarity.float(),)
        return p.clamp(min=1e-300).log().float(), p.float(), *told, abstain


def _traced(
    module: nn.Module,
    example: tuple[Tensor, ...],
    inputs: Sequence[str],
    outputs: Sequence[str],
    dynamic: tuple[dict[int, str], ...],
) -> Any:
    with torch.no_grad(), _quiet():
        program = torch.onnx.export(
            module,
            example,
            input_names=list(inputs),
            output_names=list(outputs),
            dynamic_shapes=dynamic,
            dynamo=True,
            verbose=False,
        )
        assert program is not None
        return program.model_proto


@contextmanager
def told_in_one_sentence(model: Any) -> Iterator[None]:
    """What the exporter and onnxruntime say of a failure fills screens."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:  # they raise dozens of types, some of which derive from nothing else
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
