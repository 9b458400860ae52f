"""Where fine-tuning starts: with the linear probe as the head."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from calibrant._system import processes
from calibrant._system.atomic import write_bytes
from calibrant.models.probe import Probe, fit_probe, head_inputs, head_layer
from calibrant.types import Progress

_KEPT: ContextVar[Path | None] = ContextVar("kept_probes", default=None)


@contextmanager
def kept_probes(folder: Path) -> Iterator[None]:
    """Trainings in this block leave their probes in the folder, and take those that are there.

    Many trainings of a study start from one and the same: no seed and no objective has a part in it.
    """
    token = _KEPT.set(folder)
    try:
        yield
    finally:
        _KEPT.reset(token)


def start_head(
    model: Any,
    rows: Sequence[Sequence[int]],
    labels: NDArray[np.integer],
    padding: int,
    progress: Progress | None = None,
) -> Probe:
    """Give the model, in evaluation mode, the probe of these tokenised texts as its last layer."""
    layer = head_layer(model, rows, padding)
    folder = _KEPT.get()
    path = None if folder is None else folder / f"{_fingerprint(model, layer, rows, labels)}.npz"
    if path is not None and path.exists():
        with np.load(path, allow_pickle=False) as kept:
            probe = Probe(kept["weight"], kept["bias"], float(kept["strength"]))
    else:
        found = processes.in_shares(
            rows, lambda own: {"features": head_inputs(model, layer, own, padding, progress)}
        )
        probe = processes.on_main(lambda: fit_probe(found["features"], labels, model.config.num_labels))
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            packed = BytesIO()
            np.savez(packed, **asdict(probe))
            write_bytes(path, packed.getvalue())
    with torch.no_grad():
        layer.weight.copy_(torch.from_numpy(probe.weight))
        if layer.bias is not None:
            layer.bias.copy_(torch.from_numpy(probe.bias))
    return probe


def _fingerprint(
    model: Any, layer: torch.nn.Linear, rows: Sequence[Sequence[int]], labels: NDArray[np.integer]
) -> str:
    """Of all that a probe depends on: texts, classes, and the model but for the layer that it becomes."""
    found = hashlib.sha256(
        json.dumps(
            [type(model).__name__, model.config.to_dict(), list(map(list, rows))], default=str
        ).encode()
    )
    found.update(np.asarray(labels, dtype=np.int64).tobytes())
    replaced = {id(layer.weight), id(layer.bias)}
    for name, value in [*model.named_parameters(), *model.named_buffers()]:
        if id(value) not in replaced:
            found.update(name.encode() + value.detach().float().cpu().numpy().tobytes())
    return found.hexdigest()[:16]
