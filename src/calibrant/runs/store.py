"""A run on disk.

    RUN/
      model/           save_pretrained: config with id2label, safetensors, tokenizer
      members/2/ …     the other members of an ensemble, each a run of its own
      scores/          fitted scores of unfamiliarity: safetensors
      calibrant.json   method, settings, data, versions, calibrator, threshold: the record
      calibrator-….safetensors   arrays of the calibrator, where it has any
      metrics.json     what evaluate last measured, and on what
      dev.safetensors  what it answers on dev, once sets or monitor asked
      follow.json      what `monitor --follow` has seen: counts
      README.md        model card
      checkpoints/     while training; a killed run resumes from the last

Everything in a finished run is data: safetensors, JSON and Markdown, no pickle.
"""

import hashlib
import json
import shutil
import warnings
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load as load_arrays
from safetensors.numpy import save as save_arrays

from calibrant._system.atomic import write_bytes, write_json, write_text
from calibrant.calibrators import Calibrator, from_state
from calibrant.config import RunConfig
from calibrant.errors import UserError
from calibrant.methods import Method, named
from calibrant.runs import record as records
from calibrant.runs.card import model_card
from calibrant.runs.record import (
    CalibratorRecord,
    DataRecord,
    MethodRecord,
    Record,
    ThresholdRecord,
    TrainingRecord,
)
from calibrant.types import Provenance, Splits

PACKAGES = ("calibrant", "torch", "transformers", "tokenizers", "numpy")
ANSWERING = ("files", "members", "calibrator", "threshold")
"""What of the record decides what a run answers."""


@dataclass(frozen=True)
class Run:
    """A run directory and its record."""

    path: Path
    record: Record

    @property
    def model_dir(self) -> Path:
        """What ``from_pretrained`` takes."""
        return self.path / "model"

    @property
    def checkpoints(self) -> Path:
        """Where training keeps what it needs to resume."""
        return self.path / "checkpoints"

    @property
    def trained(self) -> bool:
        """Whether its model has been saved; an ensemble's others, or the calibrator, may still be missing."""
        return self.record.files is not None

    @property
    def complete(self) -> bool:
        """Whether all of it is there."""
        return self.record.status == "complete"

    @property
    def training(self) -> TrainingRecord:
        """How training went."""
        if self.record.training is None:
            raise UserError(f"{self.path} has not been trained yet.")
        return self.record.training

    @property
    def name(self) -> str:
        """The method that it amounts to, with the calibrator that it has now."""
        calibrator = self.record.calibrator
        asked = self.record.method.model_dump()
        return named(Method(**asked | {"calibrator": None if calibrator is None else calibrator.name})).name

    def member(self, number: int) -> Path:
        """The run directory of an ensemble's second, third, … member; the first is the run itself."""
        return self.path / "members" / str(number)

    @property
    def model_dirs(self) -> list[Path]:
        """The models of all members."""
        others = range(2, 2 + len(self.record.members))
        return [self.model_dir, *(self.member(number) / "model" for number in others)]

    @property
    def config(self) -> RunConfig:
        """The settings it was trained with."""
        return self.record.config

    @property
    def label_names(self) -> tuple[str, ...]:
        """The classes, in the order of their ids."""
        return tuple(self.record.labels)

    def last_checkpoint(self) -> Path | None:
        """The newest whole checkpoint; a half-written one, left by a kill, is removed.

        The Trainer writes ``trainer_state.json`` last, so that a checkpoint that has it is whole.
        """
        whole = []
        for folder in self.checkpoints.glob("checkpoint-*"):
            try:
                json.loads((folder / "trainer_state.json").read_text())
                whole.append(folder)
            except (OSError, ValueError):
                shutil.rmtree(folder)
        return max(whole, key=lambda folder: int(folder.name.split("-")[1]), default=None)

    def keep(self, model: Any, tokenizer: Any, training: TrainingRecord) -> "Run":
        """Save the trained model and drop the checkpoints."""
        unfinished = self.path / ".model"
        shutil.rmtree(unfinished, ignore_errors=True)
        model.save_pretrained(unfinished)
        tokenizer.save_pretrained(unfinished)
        shutil.rmtree(self.model_dir, ignore_errors=True)
        unfinished.replace(self.model_dir)
        run = self.updated(training=training, files=_digests(self.model_dir))
        shutil.rmtree(self.checkpoints, ignore_errors=True)
        return run

    def finish(self, **changes: Any) -> "Run":
        """The run with these last changes, complete."""
        shutil.rmtree(self.checkpoints, ignore_errors=True)  # they outlive a kill at the end of training
        return self.updated(status="complete", **changes)

    def check_files(self) -> None:
        """Refuse a model that is not the one that was saved."""
        found, saved = _digests(self.model_dir), self.record.files or {}
        differing = sorted(name for name, digest in saved.items() if found.get(name) != digest)
        if differing:
            raise UserError(
                f"{self.model_dir}/{differing[0]} is missing or not the file that was saved with the run; "
                "restore it or train again."
            )

    def keep_calibrator(self, calibrator: Calibrator, fitted_on: Provenance) -> CalibratorRecord:
        """What the record says of it, once its arrays are written."""
        digest = None
        # In C order: safetensors writes the memory as it lies.
        if arrays := {name: np.ascontiguousarray(array) for name, array in calibrator.arrays().items()}:
            content = save_arrays(arrays)
            digest = hashlib.sha256(content).hexdigest()
            write_bytes(self._calibrator_arrays(digest), content)
        return CalibratorRecord(**calibrator.state(), arrays=digest, fitted_on=fitted_on)

    def calibrator(self) -> Calibrator | None:
        """The one it answers through."""
        kept = self.record.calibrator
        if kept is None:
            return None
        arrays = {}
        if kept.arrays is not None:
            path = self._calibrator_arrays(kept.arrays)
            content = path.read_bytes() if path.exists() else b""
            if hashlib.sha256(content).hexdigest() != kept.arrays:
                raise UserError(
                    f"{path} is missing or not the file that was saved with the run; restore it, or fit the "
                    f"calibrator again with `calibrant calibrate {self.path} --calibrator {kept.name}`."
                )
            arrays = load_arrays(content)
        return from_state({"name": kept.name, "parameters": kept.parameters}, arrays)

    def _calibrator_arrays(self, digest: str) -> Path:
        return self.path / f"calibrator-{digest[:16]}.safetensors"

    def calibrated(self, calibrator: Calibrator | None, fitted_on: Provenance | None) -> "Run":
        """The run with another calibrator, or with none.

        What was measured with the old one, or chosen by its confidence, holds no longer.
        """
        (self.path / "metrics.json").unlink(missing_ok=True)
        kept = None
        if calibrator is not None and fitted_on is not None:
            kept = self.keep_calibrator(calibrator, fitted_on)
        run = self.updated(calibrator=kept, threshold=None)
        for file in self.path.glob("calibrator-*.safetensors"):  # those of an older one
            if kept is None or kept.arrays is None or file != self._calibrator_arrays(kept.arrays):
                file.unlink()
        return run

    def ruled(self, rule: ThresholdRecord | None) -> "Run":
        """The run with another rule of abstention, or with none; what was measured under the old one goes."""
        if rule is not None and self.stored().record.calibrator != self.record.calibrator:
            raise UserError(
                f"{self.path} has got another calibrator while the rule was learnt, which does not hold for "
                "it; learn it again."
            )
        measured = self.metrics()
        if measured is not None and "abstention" in measured["metrics"]:
            del measured["metrics"]["abstention"]
            write_json(self.path / "metrics.json", measured)
        return self.updated(threshold=rule)

    def stored(self) -> "Run":
        """As it is on disk now, where others may have changed it since it was loaded."""
        return Run(self.path, records.read(self.path))

    def updated(self, **changes: Any) -> "Run":
        """The run with changes to its record. Only these are written: what others changed meanwhile stays."""
        stored = Run(self.path, self.stored().record.model_copy(update=changes))
        stored.record.write(self.path)
        write_text(self.path / "README.md", model_card(stored.name, stored.record, stored.metrics()))
        return Run(self.path, self.record.model_copy(update=changes))

    def metrics(self) -> dict[str, Any] | None:
        """What ``evaluate`` last measured."""
        path = self.path / "metrics.json"
        try:
            return dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else None
        except (ValueError, TypeError) as error:
            raise UserError(f"{path} is damaged ({error}); remove it and evaluate the run again.") from error

    def record_metrics(self, metrics: dict[str, Any], measured_on: dict[str, Any]) -> None:
        """Keep what was measured, and on what, in ``metrics.json`` and on the model card.

        What a run measured that is no longer this one (recalibrated meanwhile, say) is not kept.
        """
        now = self.stored().record
        if any(getattr(now, key) != getattr(self.record, key) for key in ANSWERING):
            warnings.warn(
                f"{self.path} has got another model, calibrator or rule of abstention while it was measured, "
                "so what was found is not kept with it; measure it again.",
                stacklevel=2,
            )
            return
        write_json(self.path / "metrics.json", {"metrics": metrics, "measured_on": measured_on})
        self.updated()


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

    data = splits.provenance()
    fingerprint = config.fingerprint(data=data, objective_settings=objective)
    if (path / records.FILE).exists():
        run = Run(path, records.read(path))
        if run.record.fingerprint == fingerprint:
            return run
        # One whose training never began (a mistyped --model, say) holds nothing, and gives way.
        if run.complete or run.trained or any(run.checkpoints.glob("checkpoint-*")):
            raise UserError(
                f"{path} holds another run ({run.record.method.name}, {run.record.status}), with other "
                "settings or data; give another --out or remove it."
            )
    elif path.is_file() or (path.is_dir() and any(path.iterdir())):
        raise UserError(f"{path} exists and is not a run of calibrant's; give another --out.")
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{path} cannot be created ({error.strerror}); give another --out.") from error
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
        machine=machine(),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    record.write(path)
    return Run(path, record)


def load(path: Path | str) -> Run:
    """A finished run, its files checked against their fingerprints."""
    path = Path(path)
    if not (path / records.FILE).exists():
        instead = f"Train one with `calibrant train --out {path} …`."
        if (path.absolute().parent / records.FILE).exists():
            instead = f"Did you mean {path.parent}?"
        raise UserError(f"{path} is not a run: it has no {records.FILE}. {instead}")
    run = Run(path, records.read(path))
    if not run.complete:
        raise UserError(
            f"{path} has not finished training; run the same `calibrant train` again to resume it."
        )
    run.check_files()
    for number, files in enumerate(run.record.members, start=2):
        if load(run.member(number)).record.files != files:
            raise UserError(
                f"{run.member(number)} is not the member that was trained with the run; restore it or train "
                "again."
            )
    return run


def _digests(folder: Path) -> dict[str, str]:
    return {
        str(file.relative_to(folder)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    }
