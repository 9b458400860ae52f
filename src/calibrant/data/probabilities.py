"""What any classifier said of the texts of a file: a row of probabilities for each, read from ``.npy`` or
``.csv``."""

import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import UserError
from calibrant.types import Texts


@dataclass(frozen=True)
class Said:
    """The content of a file."""

    path: str
    values: NDArray[np.floating]  # (n, K)
    columns: tuple[str, ...] | None = None  # K classes; None where the file does not tell


def read_probabilities(path: str) -> Said:
    """An array (n, K) as numpy saves it, or a CSV file whose header names the classes."""
    kind = Path(path).suffix.lower()
    if kind not in (".npy", ".csv"):
        raise UserError(f"{path}: unknown kind of file {kind!r}; probabilities are .npy or .csv.")
    if not Path(path).exists():
        raise UserError(f"No file {path!r}; check the path.")
    try:
        return _npy(path) if kind == ".npy" else _csv(path)
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror or error}).") from error


def class_names(files: Sequence[Said], labelled: Iterable[Texts]) -> tuple[str, ...]:
    """The class of each column: as a header says or, where none does, the labels in their order.

    >>> texts = Texts(["a", "b"], ["spam", "ham"], "file test.csv", "")
    >>> class_names([Said("p.npy", np.full((2, 2), 0.5))], [texts])
    ('ham', 'spam')
    """
    first = next((said for said in files if said.columns is not None), files[0])
    classes = first.values.shape[1]
    if classes < 2:
        raise UserError(f"{first.path}: one column is no choice; give one for each class.")
    for said in files:
        if said.values.shape[1] != classes or said.columns not in (None, first.columns):
            raise UserError(f"{said.path} and {first.path} have different columns; give both the same.")
    labels: dict[str, str] = {}  # and the first file that has it
    for texts in labelled:
        for label in texts.labels or ():
            labels.setdefault(label, texts.source)
    names = first.columns or _in_order(labels, classes)
    if len(names) != classes:
        raise UserError(
            f"{first.path} has {classes} columns, and there are {len(names)} different labels in "
            f"{', '.join(sorted(set(labels.values())))}; give a CSV file whose header names the classes."
        )
    for label, source in labels.items():
        if label not in names:
            raise UserError(
                f"{source}: the label {label!r} is no column of {first.path}, which begins with "
                f"{', '.join(map(repr, names[:5]))}; name its columns as the labels."
            )
    return names


def _in_order(labels: Iterable[str], classes: int) -> tuple[str, ...]:
    """As scikit-learn sorts them: numbers by value, and ids from 0 also where some have no text."""
    try:
        numbers = sorted(map(int, labels))
    except ValueError:
        return tuple(sorted(labels))
    if numbers[0] >= 0 and numbers[-1] < classes:
        numbers = list(range(classes))
    return tuple(map(str, numbers))


def _npy(path: str) -> Said:
    try:
        values = np.load(path, allow_pickle=False)  # a pickle could run code
    except (ValueError, EOFError) as error:
        raise UserError(f"{path}: not an array that numpy saved ({error}).") from error
    if values.dtype.kind != "f" or values.ndim != 2:
        raise UserError(
            f"{path}: expected floats of shape (n, K), a row for each text and a column for each class, got "
            f"{values.dtype} of shape {values.shape}."
        )
    return Said(path, values)


def _csv(path: str) -> Said:
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            lines = [[cell.strip() for cell in line] for line in csv.reader(file) if line]
    except (UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"{path}: not a CSV file in UTF-8 ({error}).") from error
    if len(lines) < 2:
        raise UserError(f"{path}: expected a header with the names of the classes, and a line for each text.")
    columns, values = tuple(lines[0]), []
    if "" in columns or len(set(columns)) < len(columns) or _is_a_row(columns):
        begins = ", ".join(map(repr, columns[:5]))
        raise UserError(f"{path}: its first line must name the classes, each once, and begins with {begins}.")
    for number, line in enumerate(lines[1:], start=2):
        try:
            values.append([float(cell) for cell in line])
        except ValueError as error:
            raise UserError(f"{path}, row {number}: expected numbers only ({error}).") from error
        if len(line) != len(columns):
            raise UserError(f"{path}, row {number}: {len(line)} numbers for {len(columns)} classes.")
    return Said(path, np.array(values), columns)


def _is_a_row(cells: Sequence[str]) -> bool:
    """Whether these are probabilities, where the header was left out; ids of classes are whole numbers."""
    try:
        return abs(sum(map(float, cells)) - 1) < 0.01 and not all(cell.isdigit() for cell in cells)
    except ValueError:
        return False
