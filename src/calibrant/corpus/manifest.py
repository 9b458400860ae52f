"""``manifest.json`` of a folder with the answers on a corpus: what it was made of, and what it comes to.

It is written twice: when the parts are known, and when all are done. Nothing in it depends on when, on what
engine, or after how many interruptions.
"""

import hashlib
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, NonNegativeInt, ValidationError

from calibrant.corpus.files import File, Folder, is_address
from calibrant.corpus.part import Part, read_done
from calibrant.corpus.pieces import Piece
from calibrant.corpus.statistics import Statistics
from calibrant.errors import UserError
from calibrant.runs.record import digest
from calibrant.runs.store import Run
from calibrant.types import Provenance

FILE = "manifest.json"


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Asked(_Part):
    """What was asked for; a folder goes on only with the same."""

    run: str  # its name
    answering: str  # a digest of the model and the calibrator
    rule: str | None  # a digest of the run's rule of abstention; None where it has none
    threshold: float | None  # in the place of the rule
    text_column: str
    pair_column: str | None = None
    top: int
    sets: str | None  # a digest of the rule of the sets
    dev: Provenance | None  # what the statistics compare with


class Source(_Part):
    """A file of the corpus."""

    file: File
    columns: list[str]
    pieces: list[Piece]


class Total(_Part):
    """What all parts come to."""

    texts: NonNegativeInt
    abstained: NonNegativeInt
    rejected: NonNegativeInt
    fingerprint: str  # of the texts, in their parts
    statistics: Statistics | None


class Manifest(_Part):
    """All of it."""

    format: Literal[1] = 1
    asked: Asked
    sources: list[Source]
    total: Total | None = None  # None until all is done

    @property
    def parts(self) -> list[Part]:
        """In their order."""
        pairs = [(i, piece) for i, source in enumerate(self.sources) for piece in source.pieces]
        return [Part(number, file, piece) for number, (file, piece) in enumerate(pairs)]

    def write(self, folder: Folder) -> None:
        """Into the folder of the answers."""
        folder.write(FILE, self.model_dump_json().encode() + b"\n")


def read(folder: Folder) -> Manifest | None:
    """Of a folder; None where there is none."""
    content = folder.read(FILE)
    try:
        return None if content is None else Manifest.model_validate_json(content)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise UserError(
            f"{folder.place}/{FILE} is damaged ({where}: {first['msg']}); restore it, or name a new folder."
        ) from error


def total(folder: Folder, parts: list[Part]) -> Total:
    """Of parts that are all done."""
    texts, statistics = hashlib.sha256(), None
    counts = {"texts": 0, "abstained": 0, "rejected": 0}
    for part in parts:
        done = read_done(folder, part.name)
        if done is None:
            raise UserError(
                f"{folder.place}/statistics/{part.name}.json is damaged; remove it, and begin again."
            )
        for name in counts:
            counts[name] += getattr(done, name)
        texts.update(done.fingerprint.encode())
        if done.statistics is not None:
            statistics = done.statistics if statistics is None else statistics + done.statistics
    return Total(**counts, fingerprint=texts.hexdigest()[:16], statistics=statistics)


def there(place: str) -> bool:
    """Whether it is a folder with the answers on a corpus."""
    return (is_address(place) and not Path(place).suffix) or Path(place, FILE).exists()


def seen(place: str, run: Run, dev: Provenance) -> tuple[Provenance, Statistics]:
    """The texts of such a folder, and its statistics; refused where they compare something else."""
    found = read(Folder(place))
    again = "answer the corpus again, into a new folder"
    if found is None:
        raise UserError(f"{place} has no {FILE}: it holds no answers of `calibrant predict … --out`.")
    if found.total is None:
        raise UserError(f"{place} is not done yet; give the same `calibrant predict` command again.")
    if found.total.statistics is None:
        raise UserError(f"{place} keeps nothing to compare, since nothing was known of dev; {again}.")
    if found.asked.answering != run.record.answering:
        raise UserError(
            f"{place} was answered by another model or calibrator than {run.path} has now; {again}."
        )
    if found.asked.dev != dev:
        source = None if found.asked.dev is None else found.asked.dev.source
        raise UserError(f"{place} compares with {source}, and not with {dev.source}; {again}.")
    if (found.asked.rule, found.asked.threshold) != (rule_of(run), None):
        raise UserError(
            f"{place} was answered by another rule of abstention than {run.path} has now; {again}."
        )
    about = Provenance(found.total.texts, f"corpus {place}", found.total.fingerprint)
    return about, found.total.statistics


def rule_of(run: Run) -> str | None:
    """A digest of its rule of abstention; None where it has none."""
    stored = run.record.threshold
    return None if stored is None else digest(stored.model_dump(mode="json"))
