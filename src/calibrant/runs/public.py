"""What of a run may leave the machine: no folder of it, no answers on dev, no text.

A file's name stays, without the folders before it. A path in a record is part of what digests are made of, so
what is bound to these is bound again.
"""

import json
import re
import shutil
from pathlib import Path
from typing import Any

from calibrant._system.atomic import write_json, write_text
from calibrant.runs.card import model_card
from calibrant.runs.checkpoints import digests
from calibrant.runs.record import Record
from calibrant.runs.store import CARD, Run
from calibrant.types import Provenance

_FILE = re.compile(r"(?P<kind>files?) (?P<path>.*?)(?P<how>(?: \([^()]*\))*)")
_ID = re.compile(r"[\w][\w.-]*(/[\w][\w.-]*)?")
MINILM = "sentence-transformers/all-MiniLM-L6-v2"


def base_model(name: str) -> str | None:
    """The hub's name for the encoder of ``--model``; None for a folder, and for what was never pretrained."""
    if name == "minilm":
        return MINILM
    if name == "textcnn" or not _ID.fullmatch(name) or Path(name).exists():
        return None
    return name


def public_source(source: str) -> str:
    """Where texts came from, without folders.

    >>> public_source("file /home/me/tickets.csv (20 % of train, stratified)")
    'file tickets.csv (20 % of train, stratified)'
    """
    found = _FILE.fullmatch(source)
    return f"{found['kind']} {_name(found['path'])}{found['how']}" if found else source


def public_record(record: Record) -> Record:
    """The record without folders, and with what belongs to its digests bound again."""
    config = record.config
    base = base_model(config.model)
    named = {
        "train": config.train and _name(config.train),
        "dev": config.dev and _name(config.dev),
        "model": config.model if base or config.model == "textcnn" else _name(config.model),
    }
    clean = _public(record.model_dump(mode="json"))
    found = Record(**clean).model_copy(update={"config": config.model_copy(update=named)})
    if found.threshold is not None and record.threshold is not None and record.threshold.learnt_for:
        bound = found.threshold.model_copy(update={"learnt_for": found.answering})
        found = found.model_copy(update={"threshold": bound})
    return found


def public_metrics(measured: dict[str, Any] | None) -> dict[str, Any] | None:
    """What ``evaluate`` measured, likewise."""
    return None if measured is None else _public(measured)


def write_public(run: Run, folder: Path) -> None:
    """A copy of a run of one model that can be shown to others, and that ``calibrant.load`` takes."""
    shutil.copytree(run.model_dir, folder / "model")
    path = folder / "model" / "config.json"
    write_json(path, _without_folders(json.loads(path.read_text(encoding="utf-8"))))
    rule = run.record.threshold
    scores = {
        name: digest
        for name, digest in run.record.scores.items()
        if rule is not None and name == rule.rule.score  # others may hold what training texts look like
    }
    for name in (*(f"scores/{name}.safetensors" for name in scores), *_arrays(run.record)):
        (folder / name).parent.mkdir(exist_ok=True)
        shutil.copyfile(run.path / name, folder / name)
    changed = run.record.model_copy(update={"files": digests(folder / "model"), "scores": scores})
    changed = changed.model_copy(update={"scores_for": changed.model_digest if scores else None})
    record = public_record(changed)
    record.write(folder)
    write_text(folder / CARD, model_card(run.name, record, public_metrics(run.metrics())))


def _arrays(record: Record) -> list[str]:
    kept = record.calibrator
    return [] if kept is None or kept.arrays is None else [f"calibrator-{kept.arrays[:16]}.safetensors"]


def _public(value: Any) -> Any:
    """JSON in which every provenance has a public source."""
    if isinstance(value, list):
        return [_public(each) for each in value]
    if not isinstance(value, dict):
        return value
    found = {name: _public(each) for name, each in value.items()}
    if found.keys() == Provenance.__dataclass_fields__.keys():
        found["source"] = public_source(found["source"])
    return found


def _without_folders(config: dict[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in config.items() if name != "_name_or_path"}
    return {
        name: _without_folders(value) if name == "encoder" and isinstance(value, dict) else value
        for name, value in kept.items()
    }


def _name(path: str) -> str:
    return re.split(r"[/\\]", path.rstrip("/\\"))[-1]
