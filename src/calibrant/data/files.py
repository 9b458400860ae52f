"""Texts from a user's own file: CSV, TSV, JSON lines, Parquet, or a saved ``datasets`` folder."""

import csv
import hashlib
import json
import os
import unicodedata
import warnings
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from calibrant.errors import UserError
from calibrant.types import Texts

Row = tuple[int, dict[str, Any]]  # the line (or row) number, for messages, and its cells


class NoColumn(UserError):
    """A file without a column that was asked for."""

    def __init__(self, path: Path, what: str, column: str, columns: Sequence[str]) -> None:
        self.column = column
        super().__init__(
            f"{path}: no column {column!r}; its columns are {', '.join(columns)}. "
            f"Name the one that holds the {what} with --{what}-column."
        )


def fingerprint(texts: Sequence[str], labels: Sequence[str] | None) -> str:
    """A hash of the content, the same wherever it was read from."""
    digest = hashlib.sha256()
    for item in (*texts, "\x00", *(labels or ())):
        digest.update(item.encode("utf-8", "surrogatepass"))
        digest.update(b"\x1f")
    return digest.hexdigest()[:16]


def read_file(
    path: Path | str, text_column: str = "text", label_column: str = "label", labelled: bool | None = False
) -> Texts:
    """Read texts and, where they are asked for, labels.

    Args:
        path: a ``.csv``, ``.tsv``, ``.jsonl`` or ``.parquet`` file, or a folder written by
            ``datasets.Dataset.save_to_disk``.
        text_column: must be there.
        label_column: must be there if ``labelled``; otherwise it is not looked at, and labels are None.
        labelled: whether labels are wanted; None: where the column is there.
    """
    path = Path(path)
    if not path.exists():
        raise UserError(f"No file {str(path)!r}; check the path.")
    if path.is_dir():
        columns, rows = _saved_dataset(path)
    else:
        kind = path.suffix.lower()
        if kind not in _READERS:
            raise UserError(
                f"{path}: unknown kind of file {path.suffix!r}; use one of {', '.join(SUFFIXES)}."
            )
        try:
            columns, rows = _READERS[kind](path)
        except UnicodeDecodeError:
            with open(path, "rb") as file:
                list(decoded(file, str(path)))  # once more, for the line
            raise
        except OSError as error:
            raise UserError(f"{path} cannot be read ({error.strerror or error}).") from error
    if not columns:
        raise UserError(f"{path}: the file is empty; it needs rows with a text each.")
    for column in (text_column, label_column):
        if columns.count(column) > 1:
            raise UserError(
                f"{path}: {columns.count(column)} columns are called {column!r}; rename all but one."
            )
    if text_column not in columns:
        raise NoColumn(path, "text", text_column, columns)
    if labelled is None:
        labelled = label_column in columns
    if labelled and label_column not in columns:
        raise NoColumn(path, "label", label_column, columns)
    texts: list[str] = []
    labels: list[str] = []
    for number, row in rows:
        text = _cell(row.get(text_column), f"{path}, line {number}", "text", text_column)
        texts.append(text)
        if labelled:
            label = _cell(row.get(label_column), f"{path}, line {number}", "label", label_column)
            labels.append(label.strip())
    if not texts:
        raise UserError(f"{path}: the file has no rows; it needs at least one text.")
    known = labels if labelled else None
    named = os.fsencode(path).decode("utf-8", "replace")  # a file's name may be any bytes, a record's may not
    return Texts(texts, known, f"file {named}", fingerprint(texts, known))


def is_empty(text: str) -> bool:
    """Whether there is nothing to be seen in it: white space, controls and characters without width.

    >>> is_empty(" \\u200b\\ufeff"), is_empty("a\\u200b")
    (True, False)
    """
    return all(char.isspace() or unicodedata.category(char) in ("Cc", "Cf") for char in text)


def _cell(value: Any, where: str, what: str, column: str) -> str:
    """A text or label as a string; refused where it is none."""
    if value is None or value != value or is_empty(str(value)):  # NaN, as tables mark what is missing
        raise UserError(f"{where}: empty {what} in column {column!r}; fill it or drop the line.")
    if isinstance(value, list | dict | bytes):
        raise UserError(
            f"{where}: the {what} in column {column!r} is of type {type(value).__name__}; write one {what} a "
            "line, as a string."
        )
    text = str(value)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise UserError(
            f"{where}: the {what} in column {column!r} holds half a character; write it whole."
        ) from error
    return text


def read_lines(stream: Iterable[bytes], name: str) -> list[str]:
    """One text a line, as a pipe gives them; ``name`` is what messages call the stream."""
    texts = [line.rstrip("\r\n") for line in decoded(stream, name)]
    if texts:
        texts[0] = texts[0].removeprefix("\ufeff")  # a byte-order mark
    for number, text in enumerate(texts, start=1):
        if is_empty(text):
            raise UserError(f"{name}, line {number}: empty text; drop the line.")
    if not texts:
        raise UserError(f"{name}: empty; it needs at least one text.")
    return texts


def decoded(lines: Iterable[bytes], name: str) -> Iterator[str]:
    """Lines as text; one that is not UTF-8 is named."""
    for number, line in enumerate(lines, start=1):
        try:
            yield line.decode("utf-8")
        except UnicodeDecodeError as error:
            raise UserError(
                f"{name}, line {number}: not UTF-8; save it as UTF-8 (for instance with "
                "`iconv -f latin1 -t utf-8`)."
            ) from error


def _delimited(path: Path, delimiter: str) -> tuple[list[str], list[Row]]:
    # utf-8-sig: spreadsheets write a byte-order mark, which would become part of the first column's name.
    csv.field_size_limit(2**31 - 1)  # the default refuses a text of more than 128 kB
    with open(path, newline="", encoding="utf-8-sig") as file:
        reader = csv.DictReader(file, delimiter=delimiter, strict=True)
        try:
            columns = list(reader.fieldnames or ())
            rows = [(reader.line_num, row) for row in reader]
        except csv.Error as error:
            line = reader.line_num + 1  # where the row begins that could not be read
            raise UserError(
                f"{path}, line {line}: not a well-formed table ({error}); write a quote inside a quoted text "
                "twice."
            ) from error
    if rows and not columns:
        raise UserError(f"{path}, line 1: blank, where the column names should be.")
    for number, row in rows:
        if delimiter == "\t" and any(
            "\t" in cell and "\n" in cell for cell in row.values() if isinstance(cell, str)
        ):
            warnings.warn(
                f"{path}, line {number}: a cell that begins with a double quote goes on over several lines; "
                "if that is not meant, write the quote twice and the cell in quotes.",
                stacklevel=4,
            )
        if None in row:  # what DictReader makes of surplus cells: a text with a comma in it, not quoted
            raise UserError(
                f"{path}, line {number}: more cells than the {len(columns)} columns; put texts that hold "
                "the delimiter in double quotes."
            )
    return columns, rows


def _json_lines(path: Path) -> tuple[list[str], list[Row]]:
    rows: list[Row] = []
    with open(path, encoding="utf-8-sig") as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except (ValueError, RecursionError) as error:  # besides what is no JSON: too long, too deep
                why = getattr(error, "msg", "beyond what Python reads")
                raise UserError(
                    f"{path}, line {number}: not JSON ({why}); each line is one object."
                ) from error
            if not isinstance(row, dict):
                raise UserError(f'{path}, line {number}: expected an object such as {{"text": …}}.')
            rows.append((number, row))
    return list(dict.fromkeys(key for _, row in rows for key in row)), rows


def _parquet(path: Path) -> tuple[list[str], list[Row]]:
    import pyarrow
    import pyarrow.parquet

    try:
        table = pyarrow.parquet.read_table(path)
    except pyarrow.ArrowException as error:
        raise UserError(f"{path}: not a Parquet file ({error}).") from error
    cells = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        try:
            cells[name] = column.to_pylist()
        except (ValueError, OverflowError, pyarrow.ArrowException) as error:
            raise UserError(
                f"{path}: column {name!r} ({column.type}) holds a value that Python has no type for "
                f"({error}); drop the column or mend it."
            ) from error
    rows = [dict(zip(cells, row, strict=True)) for row in zip(*cells.values(), strict=True)]
    return list(table.column_names), list(_numbered(rows))


def _saved_dataset(path: Path) -> tuple[list[str], list[Row]]:
    import datasets

    try:
        data = datasets.load_from_disk(str(path))
    except (FileNotFoundError, ValueError) as error:
        raise UserError(f"{path}: a folder, but not one written by `Dataset.save_to_disk`.") from error
    if isinstance(data, datasets.DatasetDict):
        raise UserError(
            f"{path}: holds several splits ({', '.join(data)}); name one, as in {path / next(iter(data))}."
        )
    rows = data.to_list()
    for name, feature in data.features.items():
        if isinstance(feature, datasets.ClassLabel):
            for row in rows:  # -1 is how unlabelled splits are published
                row[name] = None if row[name] in (None, -1) else feature.int2str(row[name])
    return list(data.column_names), list(_numbered(rows))


def _numbered(rows: list[dict[str, Any]]) -> Iterator[Row]:
    return enumerate(rows, start=1)


_READERS = {
    ".parquet": _parquet,
    ".csv": lambda path: _delimited(path, ","),
    ".tsv": lambda path: _delimited(path, "\t"),
    ".jsonl": _json_lines,
}
SUFFIXES = tuple(_READERS)
