"""``calibrant.json``, typed and versioned. This file alone reads and writes it; others see attributes."""

import hashlib
import json
import warnings
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue, ValidationError, model_validator

from calibrant._system.atomic import write_json
from calibrant.calibrators import new_calibrator
from calibrant.config import RunConfig, Settings
from calibrant.errors import UserError
from calibrant.runs.place import FILE
from calibrant.types import Provenance

FORMAT = 2


def _named(settings: dict[str, Any]) -> dict[str, Any]:
    if not isinstance(settings.get("name"), str):
        raise ValueError("it has no name")
    return settings


Named = Annotated[Settings, AfterValidator(_named)]
"""The name of an entry, and its hyper-parameters."""
Share = Annotated[float, Field(ge=0, le=1)]
Digest = Annotated[str, Field(pattern="^[0-9a-f]+$")]


def _distinct(labels: list[str]) -> list[str]:
    if len(set(labels)) < max(2, len(labels)):
        raise ValueError("two or more different ones are needed")
    return labels


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class MethodRecord(_Part):
    """What the run was asked to be. The first runs had no other starts, poolings or rules."""

    name: str
    objective: str
    inference: str
    calibrator: str | None
    start: str = "random"
    frozen: bool = False
    pooling: str = "native"
    keep: str = "accuracy"
    patience: int = 0


class DataRecord(_Part):
    """What it was trained on."""

    train: Provenance
    dev: Provenance


class CalibratorRecord(_Part):
    """A fitted calibrator. Its arrays, where it has any, lie beside the record."""

    name: str
    parameters: dict[str, JsonValue]
    arrays: Digest | None = None  # digest of calibrator-<digest>.safetensors
    fitted_on: Provenance

    def by_heart(self, texts: Provenance) -> str | None:
        """What is wrong with texts that it was fitted on; None where it was fitted on others.

        Their confidence flatters, unless it has but one number, so they cannot stand for new text.
        """
        if self.fitted_on.fingerprint != texts.fingerprint or not new_calibrator(self.name).learns_by_heart:
            return None
        return f"The calibrator {self.name!r} was fitted on these very texts ({texts.source})"


class RuleRecord(_Part):
    """Answer where the confidence is at least the threshold and, with a score, the score is below the cut."""

    threshold: Annotated[
        float, Field(ge=0)
    ]  # above 1 it answers nothing; the lowest, where classes have their own
    thresholds: dict[str, Annotated[float, Field(ge=0)]] | None = None  # of each class that may be answered
    score: str | None = None
    cut: float | None = None

    @model_validator(mode="after")
    def _both_or_neither(self) -> Self:
        if (self.score is None) != (self.cut is None):
            raise ValueError("a score goes with its cut")
        return self


class PromiseRecord(_Part):
    """What the rule promises."""

    risk: Share
    ood_rate: Share | None = None
    confidence: Share


class LearntOnRecord(_Part):
    """Texts that the rule was learnt on."""

    dev: Provenance
    ood: Provenance | None = None


class OnDevRecord(_Part):
    """What the rule does on those dev texts."""

    coverage: Share
    risk: Share
    turned_away: Share


class ThresholdRecord(_Part):
    """What ``calibrant threshold`` learnt."""

    rule: RuleRecord
    promise: PromiseRecord
    learnt_on: LearntOnRecord
    dev: OnDevRecord
    learnt_for: str | None = None  # the ``Record.answering`` then; the first rules do not tell


class TrainingRecord(_Part):
    """How training went. The dev figures are those of what the run answers, calibrator included."""

    steps: int
    seconds: float
    work_seconds: float | None = None  # the first runs were not timed by their own work
    best_epoch: float
    share: Share | None = None  # of the way from the start to that epoch; None where the epoch itself is kept
    dev_accuracy: Share
    dev_confidence: Share | None = None  # nor did they keep this
    dev_nll: float
    history: list[dict[str, int | float]]

    @property
    def kept(self) -> str:
        """What is kept of it, in words."""
        epoch = f"epoch {self.best_epoch:g}"
        if self.share is None or self.share in (0, 1):
            return epoch
        return f"point {self.share:.0%} of the way from the start to {epoch}"


class Record(_Part):
    """All of it."""

    format: int = FORMAT
    status: Literal["training", "complete"]
    fingerprint: str  # of settings and data
    method: MethodRecord
    objective: Named
    inference: Named
    calibrator: CalibratorRecord | None
    threshold: ThresholdRecord | None = None
    labels: Annotated[list[str], AfterValidator(_distinct)]
    data: DataRecord
    config: RunConfig
    versions: dict[str, str] = {}
    machine: str = ""
    created: str = ""
    training: TrainingRecord | None = None  # None until trained
    files: dict[str, Digest] | None = None  # digests of model/; None until trained
    members: list[dict[str, Digest]] = []  # the same of an ensemble's second, third, … member
    scores: dict[str, Digest] = {}  # digests of fitted scores
    scores_for: str | None = None  # the ``model_digest`` that they were fitted for; the first do not tell

    @property
    def model_digest(self) -> str:
        """Of all that makes the logits: weights, members, and how they are asked.

        The weights come in by the digests of their files, against which a run is checked when it is loaded.
        """
        return digest([self.files, self.members or None, self.inference])

    @property
    def chosen_from(self) -> int:
        """How many models dev could have kept.

        They are the epochs that were measured, or the points of the line. With patience dev also said after
        which of E epochs training ended: each of them could be the last epoch, or the line's end.
        """
        assert self.training is not None
        measured = [e for e in self.training.history if any(key.startswith("eval_") for key in e)]
        points = [entry for entry in measured if "share" in entry]
        if not self.method.patience:
            return max(1, len(points or measured))
        return 1 + self.config.epochs * (len(points) - 1 if points else 1)

    @property
    def answering(self) -> str:
        """A digest of all that makes the probabilities: that, and the calibrator."""
        kept = None if self.calibrator is None else self.calibrator.model_dump(mode="json")
        return digest([self.model_digest, kept])

    def write(self, folder: Path) -> None:
        """Into a run directory."""
        write_json(folder / FILE, self.model_dump(mode="json"))


def read(folder: Path) -> Record:
    """Of a run directory; one that an older version wrote is brought up to date."""
    path = folder / FILE
    try:
        raw = dict(json.loads(path.read_bytes()))  # numbers that are none are found below, by name
        if raw["format"] not in (1, FORMAT):
            raise UserError(f"{path} has format {raw['format']}, this version reads {FORMAT}.")
        record = Record(**(_from_1(raw) if raw["format"] == 1 else raw))
        if record.status == "complete":
            for key in ("training", "files"):
                if getattr(record, key) is None:
                    raise ValueError(f"{key}: Field required")
        return _without_others(record, folder)
    except ValidationError as error:
        first = error.errors()[0]
        where, what = ".".join(map(str, first["loc"])), first["msg"]
        mend = _MEND.get(str(first["loc"][0]), "restore it or train again")
        raise UserError(f"{path} is damaged ({where}: {what}); {mend}.") from error
    except UserError:
        raise
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        what = (str(error).splitlines() or [type(error).__name__])[0]
        raise UserError(f"{path} is damaged ({what}); restore it or train again.") from error


def _without_others(record: Record, folder: Path) -> Record:
    """The record without a rule or scores that belong to another model or calibrator than it has."""
    others: dict[str, Any] = {}
    if record.scores_for not in (None, record.model_digest):
        others = {"scores": {}, "scores_for": None}  # which are fitted again when somebody asks for one
    rule = record.threshold
    if rule is not None and rule.learnt_for not in (None, record.answering):
        others["threshold"] = None
        warnings.warn(
            f"{folder / FILE}: the rule of abstention was learnt for another model or calibrator and is not "
            f"used; learn it again with `calibrant threshold {folder} --risk {rule.promise.risk:g}`.",
            stacklevel=2,
        )
    return record.model_copy(update=others)


def digest(parts: Any) -> str:
    """A short name for values that JSON can write."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


_MEND = {
    "threshold": "write null for `threshold` there, and learn the rule again with `calibrant threshold`",
    "calibrator": "write null for `calibrator` there, and fit it again with `calibrant calibrate`",
}


def _from_1(old: dict[str, Any]) -> dict[str, Any]:
    """Records of the first format. The first of these had no settings of the inference."""
    return {"inference": {"name": old["method"]["inference"]}, **old, "format": FORMAT}
