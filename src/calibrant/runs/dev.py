"""What a run answers on dev, kept with it: sets are fitted on it, and drift is measured against it.

    RUN/dev.safetensors    logits (n, K), true classes (n,) and what else its calibrator reads; in its header
                           which texts and which model

Logits, not probabilities, so that they outlive a change of the calibrator.
"""

import json
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from calibrant._system.atomic import write_bytes
from calibrant.errors import UserError
from calibrant.runs.store import Run
from calibrant.types import Needs, Outputs, Provenance

FILE = "dev.safetensors"


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
            if about["model"] != run.record.model_digest or not needs <= set(file.keys()):
                return None
            parts = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  not a dict
        labels, logits = parts.pop("labels"), parts.pop("logits").astype(np.float64)
        return DevAnswers(Outputs(logits, **parts), labels, Provenance(**json.loads(about["texts"])))
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
