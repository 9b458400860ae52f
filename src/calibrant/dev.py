"""What a run answers on dev, kept with it: sets are fitted on it, and drift is measured against it.

    RUN/dev.safetensors    logits (n, K) and true classes (n,), and in its header which texts and which model

Logits, not probabilities, so that they outlive a change of the calibrator.
"""

import hashlib
import json
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from calibrant.artifact import Run
from calibrant.atomic import write_bytes
from calibrant.errors import UserError

FILE = "dev.safetensors"


@dataclass(frozen=True)
class DevAnswers:
    """Of n dev texts."""

    logits: NDArray[np.float64]  # (n, K)
    labels: NDArray[np.integer]  # (n,) true classes
    texts: dict[str, Any]  # their provenance


def read(run: Run) -> DevAnswers | None:
    """What the run keeps; None where nothing is kept, or it was another model that answered."""
    path = run.path / FILE
    if not path.exists():
        return None
    try:
        with safe_open(path, framework="numpy") as file:
            about = file.metadata()
            if about["model"] != _model(run):
                return None
            logits, labels = file.get_tensor("logits"), file.get_tensor("labels")
            return DevAnswers(logits.astype(np.float64), labels, json.loads(about["texts"]))
    except (SafetensorError, KeyError, ValueError, TypeError) as error:
        raise UserError(f"{path} is damaged ({error}); remove it, and it is made again.") from error


def write(run: Run, answers: DevAnswers) -> None:
    """Keep them, in the place of any others."""
    # As float32, which is all that a model gives.
    tensors = {"logits": answers.logits.astype(np.float32), "labels": answers.labels.astype(np.int64)}
    about = {"model": _model(run), "texts": json.dumps(answers.texts, ensure_ascii=False)}
    write_bytes(run.path / FILE, save(tensors, metadata=about))


def _model(run: Run) -> str:
    """A fingerprint of all that makes the logits: weights, members, and how they are asked."""
    record = run.record
    parts = [record["files"], record.get("members"), record.get("inference", record["method"]["inference"])]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]
