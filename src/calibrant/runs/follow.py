"""What ``monitor --follow`` has seen so far, kept with the run.

RUN/follow.json    which dev texts and which model and calibrator it compares with, and of each look
                   where its texts fell: counts, and not a word of the texts
"""

from pydantic import BaseModel, ConfigDict, NonNegativeInt, ValidationError

from calibrant._system.atomic import write_json
from calibrant.errors import UserError
from calibrant.runs.store import Run
from calibrant.types import Provenance

FILE = "follow.json"


class Look(BaseModel):
    """One batch of new texts."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    texts: Provenance
    counts: dict[str, list[NonNegativeInt]]  # by what orders texts: how many fell into each group


class Following(BaseModel):
    """All looks, and what they are compared with."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    answering: str  # a digest of the model and the calibrator
    dev: Provenance
    looks: list[Look]


def read(run: Run, dev: Provenance) -> Following:
    """What the run has seen; nothing yet where it never looked. Refused where it no longer fits."""
    path = run.path / FILE
    if not path.exists():
        return Following(answering=run.record.answering, dev=dev, looks=[])
    again = f"begin again with `calibrant monitor {run.path} … --follow --restart`"
    try:
        found = Following.model_validate_json(path.read_bytes())
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise UserError(f"{path} is damaged ({where}: {first['msg']}); restore it, or {again}.") from error
    if found.answering != run.record.answering:
        raise UserError(f"{path} was begun with another model or calibrator than the run has now; {again}.")
    if found.dev.fingerprint != dev.fingerprint:
        raise UserError(
            f"{path} compares with {found.dev.source}, and not with {dev.source}; take the same dev texts, "
            f"or {again}."
        )
    return found


def write(run: Run, following: Following) -> None:
    """Keep it."""
    write_json(run.path / FILE, following.model_dump(mode="json"))


def restart(run: Run) -> None:
    """Forget all looks."""
    (run.path / FILE).unlink(missing_ok=True)
