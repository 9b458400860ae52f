"""How a folder holds a dataset: tables with named columns, or the form its publisher hands out.

A layout is asked for a part (``train``, ``dev``, ``test``, or ``all`` of a dataset that is published in
one piece) and answers with texts and labels, or with None where the folder has no such file.
"""

import csv
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from calibrant.data.files import is_empty, read_file, read_lines
from calibrant.data.tables import SUFFIXES, decoded
from calibrant.errors import UserError

Rows = tuple[list[str], list[str]]
Layout = Callable[[Path, str], Rows | None]


def named_columns(folder: Path, part: str) -> Rows | None:
    """``<part>.{parquet,csv,tsv,jsonl}`` with columns text and label, whichever is there first."""
    for suffix in SUFFIXES:
        path = folder / f"{part}{suffix}"
        if path.exists():
            texts = read_file(path, labelled=True)
            return list(texts.texts), list(texts.labels or ())
    return None


@dataclass(frozen=True)
class ClassFirst:
    """``train.csv`` and ``test.csv`` of Zhang et al. (2015): no column names, a class number, then texts."""

    texts: int  # cells after the class number
    names: tuple[str, ...] = ()  # of classes 1, 2, …; without them the number is the label

    def __call__(self, folder: Path, part: str) -> Rows | None:
        """The texts of a row joined by line breaks; None where the first row is not of this form."""
        path = folder / f"{part}.csv"
        if not path.exists():
            return None
        csv.field_size_limit(2**31 - 1)  # the default refuses a text of more than 128 kB
        rows: list[tuple[str, str]] = []
        with open(path, "rb") as file:
            reader = csv.reader(decoded(file, str(path)), strict=True)
            try:
                for label, *cells in filter(None, reader):
                    whole = len(cells) == self.texts and label.isdecimal()
                    if not whole and not rows:
                        return None
                    if not whole or not self._known(label):
                        raise UserError(
                            f"{path}, line {reader.line_num}: expected a class number{self._range()} and "
                            f"{self.texts} texts, as in the rows above, got {len(cells)} after {label!r}."
                        )
                    # Zhang et al. write a line break as backslash and n.
                    text = joined(cell.replace("\\n", "\n") for cell in cells)
                    rows.append((text, self.names[int(label) - 1] if self.names else label))
            except csv.Error as error:
                raise UserError(
                    f"{path}, line {reader.line_num}: not a well-formed table ({error})."
                ) from error
        return with_text(rows) if rows else None

    def _known(self, label: str) -> bool:
        return not self.names or 1 <= int(label) <= len(self.names)

    def _range(self) -> str:
        return f" from 1 to {len(self.names)}" if self.names else ""


def lines(folder: Path, part: str) -> Rows | None:
    """``X.txt`` and ``Y.txt`` of Kowsari et al. (2017): a text and its class id a line, all in one piece."""
    paths = folder / "X.txt", folder / "Y.txt"
    there = [path for path in paths if path.exists()]
    if part != "all" or not there:
        return None
    if len(there) < 2:
        missing = next(path for path in paths if path not in there)
        raise UserError(f"{missing} is missing beside {there[0].name}: texts are in X.txt, classes in Y.txt.")
    texts, labels = (_lines(path) for path in paths)
    if len(texts) != len(labels):
        raise UserError(
            f"{paths[0]} has {len(texts)} lines and Y.txt {len(labels)}; they belong together line by line, "
            "so unpack both again."
        )
    return texts, [label.strip() for label in labels]


def joined(parts: Iterable[str | None]) -> str:
    """The parts of a text that have something in them, a line break between."""
    return "\n".join(part for part in parts if part and not is_empty(part))


def with_text(rows: Iterable[tuple[str, str]]) -> Rows:
    """Public collections hold messages of which nothing was left; there is nothing to classify in them."""
    rows = [(text, label) for text, label in rows if not is_empty(text)]
    return [text for text, _ in rows], [label for _, label in rows]


def _lines(path: Path) -> list[str]:
    with open(path, "rb") as file:
        return read_lines(file, str(path))
