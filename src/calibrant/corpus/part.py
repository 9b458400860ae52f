"""The answers of one part of a corpus.

parts/00007.parquet      its rows, and the answers beside them
rejected/00007.jsonl     rows without an answer and why, where there are any
statistics/00007.json    written last: where it is there, the part is done
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, NonNegativeInt, ValidationError

from calibrant.classifier import Classifier, load
from calibrant.corpus.answers import answer
from calibrant.corpus.files import KINDS, File, Folder, asking
from calibrant.corpus.pieces import Piece, Reader, Rejected, reader, sorted_out
from calibrant.corpus.statistics import Statistics, Then
from calibrant.data.files import fingerprint
from calibrant.decide.rule import Rule
from calibrant.decide.sets import SetRule
from calibrant.types import Outputs, Progress


class Part(NamedTuple):
    """A piece of a file, with its number in the corpus."""

    number: int
    file: int
    piece: Piece

    @property
    def name(self) -> str:
        """Of its files, but for their ending."""
        return f"{self.number:05d}"


class Done(BaseModel):
    """What is known of a part that is done."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    texts: NonNegativeInt
    abstained: NonNegativeInt
    rejected: NonNegativeInt
    fingerprint: str  # of the texts
    statistics: Statistics | None  # None without texts, or where nothing is known of dev


def read_done(folder: Folder, name: str) -> Done | None:
    """Of a part by its name; None where it is not done."""
    content = folder.read(f"statistics/{name}.json")
    try:
        return None if content is None else Done.model_validate_json(content)
    except ValidationError:  # half of it, in a store that shows files while they are written
        return None


@dataclass(frozen=True, eq=False)
class Job:
    """All that it takes to answer any part; workers elsewhere get it, and load the run themselves."""

    run: str
    folder: Folder
    files: list[File]
    columns: list[list[str]]  # of each file
    text_column: str
    pair_column: str | None
    names: dict[str, str]  # what the columns with the answers are called
    threshold: float | None
    top: int
    sets: SetRule | None
    then: Then | None


class Worker:
    """Answers parts, one after another. Those that follow one another are read without a gap."""

    def __init__(self, job: Job, classifier: Classifier | None = None) -> None:
        self.job = job
        self.classifier = load(job.run) if classifier is None else classifier
        self.rule = self.classifier.rule if job.threshold is None else Rule(job.threshold)
        self._open: tuple[int, Reader] | None = None

    def __call__(self, part: Part, progress: Progress | None = None) -> None:
        """Answer a part, and write it."""
        job, kind = self.job, KINDS[self.job.files[part.file].ending]
        with asking(job.files[part.file].address):
            rows, rejected = self._reader(part.file).read(part.piece)
        chosen, texts, without = sorted_out(rows, job.text_column, job.pair_column)
        seen: list[Statistics] = []

        def look(some: Sequence[str], outputs: Outputs, answered: NDArray[np.bool_]) -> None:
            if job.then is not None:
                seed = int(fingerprint(some, None), 16)
                seen.append(job.then.look(self.classifier.calibrator, outputs, answered, seed))

        columns = answer(self.classifier, texts, self.rule, job.top, job.sets, progress, look)
        rejected = sorted([*rejected, *without], key=lambda each: each.line)
        if rejected:
            job.folder.write(f"rejected/{part.name}.jsonl", self._told(part, rejected))
        named = {job.names[name]: cells for name, cells in columns.items()}
        job.folder.write(f"parts/{part.name}.{kind}", rows.joined(chosen, job.columns[part.file], named))
        done = Done(
            texts=len(texts),
            abstained=sum(columns["abstain"][1]),
            rejected=len(rejected),
            fingerprint=fingerprint(texts, None),
            statistics=reduce(add, seen) if seen else None,
        )
        job.folder.write(f"statistics/{part.name}.json", done.model_dump_json().encode() + b"\n")

    def _reader(self, file: int) -> Reader:
        if self._open is None or self._open[0] != file:
            if self._open is not None:
                self._open[1].close()
            self._open = file, reader(self.job.files[file])
        return self._open[1]

    def _told(self, part: Part, rejected: list[Rejected]) -> bytes:
        file = self.job.files[part.file].address
        lines: list[dict[str, Any]] = [{"file": file, **each._asdict()} for each in rejected]
        return "".join(json.dumps(line, ensure_ascii=True, default=str) + "\n" for line in lines).encode()
