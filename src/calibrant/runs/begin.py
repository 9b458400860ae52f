"""Where a run begins: one process at a time trains in a run directory."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from platform import node
from typing import Any

from calibrant._system.atomic import holds_anything
from calibrant._system.failures import writing
from calibrant._system.lock import alone
from calibrant.config import RunConfig
from calibrant.errors import UserError
from calibrant.runs import record as records
from calibrant.runs.place import FILE
from calibrant.runs.record import DataRecord, MethodRecord, Record
from calibrant.runs.store import Run
from calibrant.types import Splits

logger = logging.getLogger(__name__)
PACKAGES = ("calibrant", "torch", "transformers", "tokenizers", "numpy")


@contextmanager
def for_training(path: Path) -> Iterator[None]:
    """The run directory is this process's until the end of the block; a finished run needs nobody's."""
    if (path / FILE).exists():
        if records.read(path).status == "complete":
            yield
            return
    elif path.is_file() or (path.is_dir() and holds_anything(path)):
        raise UserError(f"{path} exists and is not a run of calibrant's; give another --out.")
    try:
        with writing(path, "Nothing was trained."):
            path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{path} cannot be created ({error.strerror}); give another --out.") from error
    with alone(path, "trained"):
        yield


def begin(
    path: Path,
    config: RunConfig,
    splits: Splits,
    method: MethodRecord,
    objective: dict[str, Any],
    inference: dict[str, Any],
) -> Run:
    """A new run, or the one of the same settings and data that is already there."""
    from calibrant._system.device import machine  # which loads torch; reading a run does without
    from calibrant._system.processes import count

    shared = f", {count()} processes" if count() > 1 else ""
    data = splits.provenance()
    fingerprint = config.fingerprint(data=data, objective_settings=objective)
    with for_training(path):
        if (path / FILE).exists():
            run = Run(path, records.read(path))
            same, moved = run.record.fingerprint == fingerprint, _moved(run.record.method, method)
            if same and (run.complete or not moved):
                if moved:
                    logger.warning("%s was trained with %s; give another --out to train anew.", path, moved)
                return run
            # One whose training never began (a mistyped --model, say) holds nothing, and gives way.
            if run.complete or run.trained or any(run.checkpoints.glob("checkpoint-*")):
                if same:
                    raise UserError(f"{path} was begun with {moved}; give another --out or remove it.")
                raise UserError(
                    f"{path} holds another run ({run.record.method.name}, {run.record.status}), with other "
                    "settings or data; give another --out or remove it."
                )
        record = Record(
            status="training",
            fingerprint=fingerprint,
            method=method,
            objective=objective,
            inference=inference,
            calibrator=None,
            labels=list(splits.label_names),
            data=DataRecord(**data),
            config=config,
            versions={name: version(name) for name in PACKAGES},
            machine=machine() + shared,
            created=datetime.now(UTC).isoformat(timespec="seconds"),
        )
        record.write(path)
        return Run(path, record)


def _moved(then: MethodRecord, now: MethodRecord) -> str:
    """What the settings meant to an earlier calibrant, where that was something else."""
    axes = MethodRecord.model_fields.keys() - {"name"}
    parts = sorted(axis for axis in axes if getattr(then, axis) != getattr(now, axis))
    had, has = (", ".join(f"{axis} {getattr(each, axis)}" for axis in parts) for each in (then, now))
    return f"{had}, where {now.name} has {has} today" if parts else ""


def check_shared(run: Run, splits: Splits) -> None:
    """Refuse a machine that does not see the run, or has read other texts, where several train together."""
    if not run.path.exists():
        raise UserError(
            f"{run.path} is not there on {node()}; give an --out on a file system that all machines share."
        )
    if DataRecord(**splits.provenance()) != run.record.data:
        raise UserError(f"{node()} has other training or dev texts than the run; give all machines the same.")
