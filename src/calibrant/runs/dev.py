"""What a run answers on dev, kept with it: sets are fitted on it, and drift is measured against it.

    RUN/dev.safetensors    logits (n, K), true classes (n,) and what else its calibrator reads; in its header
                           which texts and which model

Logits, not probabilities, so that they outlive a change of the calibrator.
"""

import json
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from calibrant._system.atomic import write_bytes
from calibrant._system.strict_json import loads
from calibrant.errors import UserError
from calibrant.runs.store import Run
from calibrant.scores.shapes import Shapes, check_finite, check_shapes
from calibrant.types import Needs, Outputs, Provenance

FILE = "dev.safetensors"
SHAPES: Shapes = {
    **{"logits": ("n", "K"), "labels": ("n",)},
    **{"features": ("n", "h"), "middle": ("n", "m"), "layers": ("n", "l", "a")},
}


@dataclass(frozen=True)
class DevAnswers:
    """Of n dev texts."""

    outputs: Outputs
    labels: NDArray[np.integer]  # (n,) true classes
    texts: Provenance


def read(run: Run, needs: Needs = frozenset()) -> DevAnswers | None:
    """What the run keeps; None where nothing is kept, less than is needed, or another model's answers."""
    path = run.path / FILE
    if not path.exists():
        return None
    try:
        with safe_open(path, framework="numpy") as file:
            about = file.metadata()
            if about is None:
                raise ValueError("it does not tell whose answers these are")
            if about["model"] != run.record.model_digest or not needs <= set(file.keys()):
                return None
            parts = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  not a dict
        texts = TypeAdapter(Provenance).validate_python(loads(about["texts"]))
        there = {name: SHAPES[name] for name in parts}
        check_finite(parts, there)
        check_shapes(parts, there, {"n": texts.n, "K": len(run.record.labels)})
        labels, logits = parts.pop("labels"), parts.pop("logits").astype(np.float64)
        if labels.dtype.kind not in "iu" or not 0 <= labels.min() <= labels.max() < logits.shape[1]:
            raise ValueError("labels are no classes")
        return DevAnswers(Outputs(logits, **parts), labels, texts)
    except (SafetensorError, KeyError, ValueError, TypeError) as error:
        raise UserError(f"{path} is damaged ({error}); remove it, and it is made again.") from error


def write(run: Run, answers: DevAnswers) -> None:
    """Keep them, in the place of any others."""
    outputs = answers.outputs
    # As float32, which is all that a model gives.
    tensors = {"logits": outputs.logits.astype(np.float32), "labels": answers.labels.astype(np.int64)}
    tensors |= {
        name: np.ascontiguousarray(part)
        for name in ("features", "middle", "layers")
        if (part := getattr(outputs, name)) is not None
    }
    about = {"model": run.record.model_digest, "texts": json.dumps(asdict(answers.texts), ensure_ascii=False)}
    write_bytes(run.path / FILE, save(tensors, metadata=about))
