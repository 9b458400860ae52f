"""A run on disk.

    RUN/
      model/           save_pretrained: config with id2label, safetensors, tokenizer
      adapter/         with --lora: what was trained, as peft reads it; model/ has it merged
      members/2/ …     the other members of an ensemble, each a run of its own
      scores/          fitted scores of unfamiliarity: safetensors
      calibrant.json   method, settings, data, versions, calibrator, threshold: the record
      calibrator-….safetensors   arrays of the calibrator, where it has any
      metrics.json     what evaluate last measured, and on what
      dev.safetensors  what it answers on dev, once sets or monitor asked
      follow.json      what `monitor --follow` has seen: counts
      README.md        model card
      checkpoints/     while training; a killed run resumes from the last
      tensorboard/     the log of training, with `--report-to tensorboard`

Everything in a finished run is data: safetensors, JSON and Markdown, no pickle.
"""

import hashlib
import shutil
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as load_arrays
from safetensors.numpy import save as save_arrays

from calibrant._system.atomic import new_folder, remove_folder, write_bytes, write_text
from calibrant._system.lock import alone
from calibrant.calibrators import Calibrator, from_state
from calibrant.config import RunConfig
from calibrant.errors import NotWritten, UserError
from calibrant.methods import Method, named
from calibrant.runs import metrics
from calibrant.runs import record as records
from calibrant.runs.card import model_card
from calibrant.runs.checkpoints import digests
from calibrant.runs.place import check_run
from calibrant.runs.record import (
    CalibratorRecord,
    Record,
    ThresholdRecord,
    TrainingRecord,
)
from calibrant.types import Provenance

MODEL_FILES = (
    *(".json", ".safetensors"),
    *(".txt", ".model", ".spm", ".codes", ".jinja"),  # of tokenizers
)
"""How the files end that ``save_pretrained`` writes; all are data."""
CARD = "README.md"


@dataclass(frozen=True)
class Run:
    """A run directory and its record."""

    path: Path
    record: Record

    def __repr__(self) -> str:
        state = self.name if self.complete else f"{self.name}, not finished"
        return f"Run({str(self.path)!r}, {state}, {len(self.record.labels)} classes)"

    @property
    def model_dir(self) -> Path:
        """What ``from_pretrained`` takes."""
        return self.path / "model"

    @property
    def adapter_dir(self) -> Path:
        """What peft's ``from_pretrained`` takes, where adapters were trained."""
        return self.path / "adapter"

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

    @property
    def digest(self) -> str:
        """Of all that decides what it answers: two runs that share it answer alike."""
        rule = None if self.record.threshold is None else self.record.threshold.rule.model_dump(mode="json")
        return records.digest([self.record.answering, rule, self.record.labels, self.config.max_length])

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

    def keep_adapter(self, model: Any) -> None:
        """Save what was trained of a model in peft's wrapper."""
        remove_folder(self.adapter_dir)
        with new_folder(self.adapter_dir) as unfinished:
            model.save_pretrained(unfinished)
            (unfinished / CARD).unlink(missing_ok=True)  # peft's is an empty form

    def keep(self, model: Any, tokenizer: Any, training: TrainingRecord) -> "Run":
        """Save the trained model and drop the checkpoints."""
        remove_folder(self.model_dir)  # one that a kill left before the record knew of it
        with new_folder(self.model_dir) as unfinished:
            model.save_pretrained(unfinished)
            tokenizer.save_pretrained(unfinished)
        run = self.updated(training=training, files=digests(self.model_dir))
        shutil.rmtree(self.checkpoints, ignore_errors=True)
        return run

    def finish(self, **changes: Any) -> "Run":
        """The run with these last changes, complete."""
        shutil.rmtree(self.checkpoints, ignore_errors=True)  # they outlive a kill at the end of training
        return self.updated(status="complete", **changes)

    def check_files(self) -> None:
        """Refuse a model that is not the one that was saved."""
        found, saved = digests(self.model_dir), self.record.files or {}
        if foreign := sorted(found.keys() - saved.keys()):
            raise UserError(f"{self.model_dir}/{foreign[0]} was not saved with the run; remove it.")
        if no_data := sorted(name for name in saved if Path(name).suffix not in MODEL_FILES):
            raise UserError(
                f"{self.model_dir}/{no_data[0]}: a model is kept as {', '.join(MODEL_FILES)}; others "
                "may be code. Train again, or get the run from somebody whom you trust."
            )
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
            arrays = _arrays(content, path)
        return from_state(
            {"name": kept.name, "parameters": kept.parameters}, arrays, classes=len(self.record.labels)
        )

    def _calibrator_arrays(self, digest: str) -> Path:
        return self.path / f"calibrator-{digest[:16]}.safetensors"

    def calibrated(self, calibrator: Calibrator | None, fitted_on: Provenance | None) -> "Run":
        """The run with another calibrator, or with none.

        What was measured with the old one, or chosen by its confidence, holds no longer.
        """
        with alone(self.path):
            if self.stored().record.model_digest != self.record.model_digest:
                raise UserError(
                    f"{self.path} has got another model while the calibrator was fitted, which does not fit "
                    "it; fit it again."
                )
            kept = None
            if calibrator is not None and fitted_on is not None:
                kept = self.keep_calibrator(calibrator, fitted_on)
            with self._changing():
                run = self._write(calibrator=kept, threshold=None)
                (self.path / metrics.FILE).unlink(missing_ok=True)
            for file in self.path.glob("calibrator-*.safetensors"):  # those of an older one
                if kept is None or kept.arrays is None or file != self._calibrator_arrays(kept.arrays):
                    file.unlink()
        return run

    def ruled(self, rule: ThresholdRecord | None) -> "Run":
        """The run with another rule of abstention, or with none."""
        with alone(self.path):
            if rule is not None:
                if self.stored().record.answering != self.record.answering:
                    raise UserError(
                        f"{self.path} has got another calibrator while the rule was learnt, which does not "
                        "hold for it; learn it again."
                    )
                rule = rule.model_copy(update={"learnt_for": self.record.answering})
            return self.updated(threshold=rule)

    def stored(self) -> "Run":
        """As it is on disk now, where others may have changed it since it was loaded."""
        return Run(self.path, records.read(self.path))

    def updated(self, **changes: Any) -> "Run":
        """The run with changes to its record. Only these are written: what others changed meanwhile stays."""
        with self._changing():
            return self._write(**changes)

    def _write(self, **changes: Any) -> "Run":
        self.stored().record.model_copy(update=changes).write(self.path)
        return Run(self.path, self.record.model_copy(update=changes))

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """Whatever the card tells changes here. A kill leaves no card then, and never that of before."""
        with alone(self.path):
            (self.path / CARD).unlink(missing_ok=True)
            yield
            self.stored().write_card()

    def write_card(self) -> None:
        """Tell what the record and the metrics say."""
        write_text(self.path / CARD, model_card(self.name, self.record, self.metrics()))

    def metrics(self) -> dict[str, Any] | None:
        """What ``evaluate`` last measured of the run as it is now."""
        return metrics.read(self.path, self.record)

    def record_metrics(self, measured: dict[str, Any], measured_on: dict[str, Any]) -> None:
        """Keep what was measured, and on what, in ``metrics.json`` and on the model card.

        What a run measured that is no longer this one (recalibrated meanwhile, say) is not kept.
        """
        try:
            with alone(self.path):
                if metrics.bound_to(self.stored().record) != metrics.bound_to(self.record):
                    warnings.warn(
                        f"{self.path} has got another model, calibrator or rule of abstention while it was "
                        "measured, so what was found is not kept with it; measure it again.",
                        stacklevel=2,
                    )
                    return
                with self._changing():
                    metrics.write(self.path, self.record, measured, measured_on)
        except NotWritten as error:
            warnings.warn(f"What was measured is not kept with the run. {error}", stacklevel=2)


def load(path: Path | str) -> Run:
    """A finished run, its files checked against their fingerprints."""
    path = Path(path)
    check_run(path)
    run = Run(path, records.read(path))
    if not run.complete:
        raise UserError(
            f"{path} has not finished training; run the same `calibrant train` again to resume it."
        )
    run.check_files()
    if not (path / CARD).exists():  # a kill came between the record and it
        with suppress(UserError), alone(path):
            run.stored().write_card()
    for number, files in enumerate(run.record.members, start=2):
        if load(run.member(number)).record.files != files:
            raise UserError(
                f"{run.member(number)} is not the member that was trained with the run; restore it or train "
                "again."
            )
    return run


def _arrays(content: bytes, path: Path) -> dict[str, Any]:
    try:
        return dict(load_arrays(content))
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
        raise UserError(f"{path} is damaged ({error}); restore it, or fit the calibrator again.") from error
