"""A cell of the study: one dataset, one method, one seed, and what was measured there.

    STUDY/cells/<dataset>/<method>[__<setting>=<value>…]/
                                  seed-<seed>.json    numbers, settings, where all came from
                                  seed-<seed>.npz     what was said of each test and OOD text

A trained model is asked several times: as it is, and with calibrators that are fitted on dev. A cell holds
all of these answers, its row's own apart.

The JSON file is written last: where it is, the cell is finished.
"""

import io
import json
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._system.atomic import write_bytes, write_json
from calibrant.errors import UserError
from calibrant.methods import NO_CALIBRATOR

FORMAT = 2
LEVELS = 65535
"""Confidences are kept as 16-bit integers: steps of 1.5e-5, a quarter of the space."""


@dataclass(frozen=True)
class Key:
    """What names a cell."""

    dataset: str
    method: str  # a row of rows.ROWS
    seed: int
    variant: str = ""  # what differs from the method's own settings; "" in the main tables

    @property
    def row(self) -> str:
        """Method and variant: what differs only in its seed shares it."""
        return ",".join(filter(None, (self.method, self.variant)))

    def path(self, study: Path | str) -> Path:
        """Of its JSON file; the confidences lie beside it."""
        return Path(study) / "cells" / self.dataset / self.row.replace(",", "__") / f"seed-{self.seed}.json"


def variant(settings: Mapping[str, Any]) -> str:
    """A name for settings, the same in whatever order they are given.

    >>> variant({"lambda_off": 0, "delta_on": 1e-3})
    'delta_on=0.001,lambda_off=0'
    """
    return ",".join(f"{name}={settings[name]}" for name in sorted(settings))


@dataclass(frozen=True)
class Confidences:
    """What was said of each text: enough for figures, and for intervals of all that the tables show."""

    test: NDArray[np.floating]  # (n,) of the predicted class, on familiar text
    correct: NDArray[np.bool_]  # (n,) whether it was right
    ood: NDArray[np.floating]  # (m,) on unfamiliar text; empty where there is none
    nll: NDArray[np.floating]  # (n,) −log p of the true class


@dataclass(frozen=True)
class Cell:
    """A finished cell."""

    key: Key
    fingerprint: str  # of all that determines it
    metrics: dict[str, Any]  # what ``evaluate`` returned, as the row answers by itself
    objective: dict[str, Any]  # name and hyper-parameters
    config: dict[str, Any]  # of the training run
    training: dict[str, Any]  # seconds by two clocks, steps, and what was seen on dev
    data: dict[str, Any]  # train, dev, test and ood: n, source, fingerprint
    versions: dict[str, str]
    machine: str
    calibrator: str = NO_CALIBRATOR  # that ``metrics`` are of
    others: dict[str, dict[str, Any]] = field(default_factory=dict)  # as ``metrics``, by calibrator

    def answering(self, calibrator: str) -> "Cell | None":
        """The same cell, asked with this calibrator in place of its own; None where it was not."""
        if calibrator == self.calibrator:
            return self
        found = self.others.get(calibrator)
        return None if found is None else replace(self, metrics=found, calibrator=calibrator, others={})

    def write(self, study: Path | str, confidences: Mapping[str, Confidences]) -> None:
        """Both files, the JSON one last. The confidences are by calibrator, the cell's own among them."""
        path = self.key.path(study)
        path.parent.mkdir(parents=True, exist_ok=True)
        packed = io.BytesIO()
        # Once, since no calibrator changes a label.
        arrays: dict[str, Any] = {"correct": np.packbits(confidences[self.calibrator].correct)}
        for how, said in confidences.items():
            arrays |= {f"test {how}": _pack(said.test), f"ood {how}": _pack(said.ood)}
            arrays[f"nll {how}"] = np.asarray(said.nll, dtype=np.float16)
        np.savez_compressed(packed, **arrays)
        path.unlink(missing_ok=True)  # an earlier one would go with confidences that are not its own
        write_bytes(path.with_suffix(".npz"), packed.getvalue())
        write_json(path, {"format": FORMAT, **asdict(self)})


def read_cell(path: Path | str) -> Cell:
    """The cell in a JSON file."""
    try:
        record = json.loads(Path(path).read_text(encoding="utf-8"))
        known = record.pop("format") == FORMAT
        cell = Cell(**record | {"key": Key(**record["key"])}) if known else None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(f"{path} is not a cell of a study ({error}); remove it and run it again.") from error
    if cell is None:
        raise UserError(f"{path} was written by another version of calibrant; this reads format {FORMAT}.")
    return cell


def read_cells(study: Path | str) -> list[Cell]:
    """Every finished cell, in the order of their names."""
    if not any((Path(study) / part).exists() for part in ("cells", "study.json")):
        raise UserError(f"No study in {str(study)!r}; begin one with `calibrant study run --out {study}`.")
    return [read_cell(path) for path in sorted((Path(study) / "cells").rglob("seed-*.json"))]


def read_confidences(cell: Cell, study: Path | str) -> Confidences:
    """What lies beside the cell, of the calibrator that its metrics are of."""
    path, how = cell.key.path(study).with_suffix(".npz"), cell.calibrator
    try:
        content = io.BytesIO(path.read_bytes())  # a damaged file that numpy opens itself stays open
        with np.load(content, allow_pickle=False) as packed:
            test, ood = _unpack(packed[f"test {how}"]), _unpack(packed[f"ood {how}"])
            nll = packed[f"nll {how}"].astype(np.float64)
            correct = np.unpackbits(packed["correct"], count=len(test)).astype(bool)
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise UserError(
            f"{path} is missing or damaged; remove {path.with_suffix('.json').name} and run the cell again."
        ) from error
    return Confidences(test, correct, ood, nll)


def _pack(confidence: NDArray[np.floating]) -> NDArray[np.uint16]:
    return np.round(np.asarray(confidence, dtype=np.float64) * LEVELS).astype(np.uint16)


def _unpack(levels: NDArray[np.uint16]) -> NDArray[np.float64]:
    return levels / LEVELS
