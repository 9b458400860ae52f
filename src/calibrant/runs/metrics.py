"""RUN/metrics.json: what ``evaluate`` last measured, on what, and a digest of what answered."""

import warnings
from pathlib import Path
from typing import Any

from calibrant._system.atomic import write_json
from calibrant._system.strict_json import loads
from calibrant.errors import UserError
from calibrant.runs.measured import checked
from calibrant.runs.record import Record

FILE = "metrics.json"


def bound_to(record: Record) -> dict[str, Any]:
    """What figures belong to: what answered, and the rule by which it abstained."""
    rule = None if record.threshold is None else record.threshold.rule.model_dump()
    return {"answered_by": record.answering, "rule": rule}


def read(folder: Path, record: Record) -> dict[str, Any] | None:
    """Of a run directory; None where there are none, or only those of another model or calibrator.

    Of another rule, what was measured of that is left out. The first files do not tell what they belong to.
    """
    path = folder / FILE
    try:
        found = checked(loads(path.read_bytes())) if path.exists() else None
    except ValueError as error:
        raise UserError(f"{path} is damaged ({error}); remove it and evaluate the run again.") from error
    if found is None:
        return None
    now = bound_to(record)
    if found.pop("answered_by", now["answered_by"]) != now["answered_by"]:
        warnings.warn(
            f"{path} tells of another model or calibrator and is not used; measure again with "
            f"`calibrant evaluate {folder} --test test.csv`.",
            stacklevel=2,
        )
        return None
    if found.pop("rule", None) != now["rule"]:
        found["metrics"].pop("abstention", None)
    return found


def write(folder: Path, record: Record, metrics: dict[str, Any], measured_on: dict[str, Any]) -> None:
    """What was measured of the run of this record."""
    write_json(folder / FILE, {"metrics": metrics, "measured_on": measured_on, **bound_to(record)})
