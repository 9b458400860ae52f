"""Texts from a user's own file: CSV, TSV, JSON lines, Parquet, or a saved ``datasets`` folder."""

import csv
import hashlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from calibrant.errors import UserError
from calibrant.types import Texts

Row = tuple[int, dict[str, Any]]  # the line (or row) number, for messages, and its cells


def fingerprint(texts: Sequence[str], labels: Sequence[str] | None) -> str:
    """A hash of the content, the same wherever it was read from."""
    digest = hashlib.sha256()
    for item in (*texts, "\x00", *(labels or ())):
        digest.update(item.encode("utf-8", "surrogatepass"))
        digest.update(b"\x1f")
    return digest.hexdigest()[:16]


def read_file(
    path: Path | str, text_column: str = "text", label_column: str = "label", labelled: bool = False
) -> Texts:
    """Read texts and, where the column is there, labels.

    Args:
        path: a ``.csv``, ``.tsv``, ``.jsonl`` or ``.parquet`` file, or a folder written by
            ``datasets.Dataset.save_to_disk``.
        text_column: must be there.
        label_column: may be missing, and labels are then None.
        labelled: the label column must be there.
    """
    path = Path(path)
    if not path.exists():
        raise UserError(f"No file {str(path)!r}; check the path.")
    if path.is_dir():
        columns, rows = _saved_dataset(path)
    else:
        if path.suffix not in _READERS:
            raise UserError(
                f"{path}: unknown kind of file {path.suffix!r}; use one of {', '.join(SUFFIXES)}."
            )
        try:
            columns, rows = _READERS[path.suffix](path)
        except UnicodeDecodeError as error:
            line = path.read_bytes()[: error.start].count(b"\n") + 1
            raise UserError(
                f"{path}, line {line}: the file is not UTF-8; save it as UTF-8 (for instance with "
                f"`iconv -f latin1 -t utf-8`)."
            ) from error
    if text_column not in columns:
        raise UserError(
            f"{path}: no column {text_column!r}; its columns are {', '.join(columns) or 'none'}. "
            "Name the one that holds the text with --text-column."
        )
    has_labels = label_column in columns
    if labelled and not has_labels:
        raise UserError(
            f"{path}: no column {label_column!r}; its columns are {', '.join(columns)}. "
            "Name the one that holds the label with --label-column."
        )
    texts: list[str] = []
    labels: list[str] = []
    for number, row in rows:
        text = row.get(text_column)
        if text is None or not str(text).strip():
            raise UserError(
                f"{path}, line {number}: empty text in column {text_column!r}; fill it or drop the line."
            )
        texts.append(str(text))
        if has_labels:
            label = row.get(label_column)
            if label is None or not str(label).strip():
                raise UserError(
                    f"{path}, line {number}: empty label in column {label_column!r}; fill it or drop it."
                )
            labels.append(str(label))
    if not texts:
        raise UserError(f"{path}: the file has no rows; it needs at least one text.")
    known = labels if has_labels else None
    return Texts(texts, known, f"file {path}", fingerprint(texts, known))


def _delimited(path: Path, delimiter: str) -> tuple[list[str], list[Row]]:
    # utf-8-sig: spreadsheets write a byte-order mark, which would become part of the first column's name.
    csv.field_size_limit(2**31 - 1)  # the default refuses a text of more than 128 kB
    with open(path, newline="", encoding="utf-8-sig") as file:
        reader = csv.DictReader(file, delimiter=delimiter, strict=True)
        try:
            rows = [(reader.line_num, row) for row in reader]
        except csv.Error as error:
            raise UserError(f"{path}, line {reader.line_num}: not a well-formed table ({error}).") from error
        if reader.fieldnames is None:
            raise UserError(f"{path}: the file is empty; it needs a header line with column names and rows.")
        return list(reader.fieldnames), rows


def _json_lines(path: Path) -> tuple[list[str], list[Row]]:
    rows: list[Row] = []
    with open(path, encoding="utf-8-sig") as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except json.JSONDecodeError as error:
                raise UserError(
                    f"{path}, line {number}: not JSON ({error.msg}); each line is one object."
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
    except pyarrow.ArrowInvalid as error:
        raise UserError(f"{path}: not a Parquet file ({error}).") from error
    return list(table.column_names), list(_numbered(table.to_pylist()))


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
            for row in rows:
                row[name] = feature.int2str(row[name])
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
