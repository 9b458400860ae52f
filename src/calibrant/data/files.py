"""Texts and labels from the columns of a user's own file."""

import hashlib
import os
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from calibrant.data.tables import Table, decoded, read_table
from calibrant.errors import UserError
from calibrant.types import Pair, Texts

_TOLD = {"pair": "second text"}


class NoColumn(UserError):
    """A file without a column that was asked for."""

    def __init__(self, path: Path, what: str, column: str, columns: Sequence[str]) -> None:
        self.column = column
        super().__init__(
            f"{path}: no column {column!r}; its columns are {', '.join(columns)}. "
            f"Name the one that holds the {_TOLD.get(what, what)} with --{what}-column."
        )


def fingerprint(texts: Sequence[str], labels: Sequence[str] | None) -> str:
    """A hash of the content, the same wherever it was read from."""
    digest = hashlib.sha256()
    for item in (*texts, "\x00", *(labels or ())):
        digest.update(item.encode("utf-8", "surrogatepass"))
        digest.update(b"\x1f")
    return digest.hexdigest()[:16]


def read_file(
    path: Path | str,
    text_column: str = "text",
    label_column: str = "label",
    pair_column: str | None = None,
    labelled: bool | None = False,
) -> Texts:
    """Read texts and, where they are asked for, labels.

    Args:
        path: a ``.csv``, ``.tsv``, ``.jsonl``, ``.parquet`` or ``.xlsx`` file, or a folder written by
            ``datasets.Dataset.save_to_disk``.
        text_column: must be there.
        label_column: must be there if ``labelled``; otherwise it is not looked at, and labels are None.
        pair_column: must be there, if it is named; it holds the second text of each pair.
        labelled: whether labels are wanted; None: where the column is there.
    """
    columns, rows = read_table(path)
    path = Path(path)
    for column in filter(None, (text_column, label_column, pair_column)):
        if columns.count(column) > 1:
            raise UserError(
                f"{path}: {columns.count(column)} columns are called {column!r}; rename all but one."
            )
    check_columns(path, columns, text_column, pair_column)
    if labelled is None:
        labelled = label_column in columns
    if labelled and label_column not in columns:
        raise NoColumn(path, "label", label_column, columns)
    texts: list[str] = []
    labels: list[str] = []
    for number, row in rows:
        texts.append(_text(row, f"{path}, line {number}", text_column, pair_column))
        if labelled:
            label = _cell(row.get(label_column), f"{path}, line {number}", "label", label_column)
            labels.append(label.strip())
    if not texts:
        raise UserError(f"{path}: the file has no rows; it needs at least one text.")
    known = labels if labelled else None
    named = os.fsencode(path).decode("utf-8", "replace")  # a file's name may be any bytes, a record's may not
    return Texts(texts, known, f"file {named}", fingerprint(texts, known))


def texts_of(table: Table, path: Path | str, column: str, pair_column: str | None) -> list[str | None]:
    """The texts in a column of a table, or pairs of two; None where there is nothing to classify."""
    columns, rows = table
    check_columns(path, columns, column, pair_column)
    if not rows:
        raise UserError(f"{path}: the file has no rows; it needs at least one text.")
    return [
        None
        if any(_missing(row.get(name)) for name in filter(None, (column, pair_column)))
        else _text(row, f"{path}, line {number}", column, pair_column)
        for number, row in rows
    ]


def check_columns(path: Path | str, columns: Sequence[str], text: str, pair: str | None) -> None:
    """Refuse a table without the column of the texts, or of the second texts."""
    for what, column in (("text", text), ("pair", pair)):
        if column is not None and column not in columns:
            raise NoColumn(Path(path), what, column, columns)


def _text(row: dict[str, Any], where: str, column: str, pair_column: str | None) -> str:
    text = _cell(row.get(column), where, "text", column)
    if pair_column is None:
        return text
    return Pair(text, _cell(row.get(pair_column), where, "second text", pair_column))


def is_empty(text: str) -> bool:
    """Whether there is nothing to be seen in it: white space, controls and characters without width.

    >>> is_empty(" \\u200b\\ufeff"), is_empty("a\\u200b")
    (True, False)
    """
    return all(char.isspace() or unicodedata.category(char) in ("Cc", "Cf") for char in text)


def _missing(value: Any) -> bool:
    return value is None or value != value or is_empty(str(value))  # NaN, as tables mark what is missing


def flaw(value: Any, what: str, column: str) -> str | None:
    """Why a cell is no text or label, as the rest of a sentence; None where it is one."""
    if _missing(value):
        return f"empty {what} in column {column!r}; fill it or drop the line."
    if isinstance(value, list | dict | bytes):
        return (
            f"the {what} in column {column!r} is of type {type(value).__name__}; write one {what} a line, as "
            "a string."
        )
    try:
        str(value).encode("utf-8")
    except UnicodeEncodeError:
        return f"the {what} in column {column!r} holds half a character; write it whole."
    return None


def _cell(value: Any, where: str, what: str, column: str) -> str:
    """A text or label as a string; refused where it is none."""
    if (why := flaw(value, what, column)) is not None:
        raise UserError(f"{where}: {why}")
    return str(value)


def read_lines(stream: Iterable[bytes], name: str) -> list[str]:
    """One text a line; ``name`` is what messages call the stream. A blank line is refused."""
    texts = [line.rstrip("\r\n") for line in decoded(stream, name)]
    if texts:
        texts[0] = texts[0].removeprefix("\ufeff")  # a byte-order mark
    for number, text in enumerate(texts, start=1):
        if is_empty(text):
            raise UserError(f"{name}, line {number}: empty text; drop the line.")
    if not texts:
        raise UserError(f"{name}: empty; it needs at least one text.")
    return texts


def arriving(stream: IO[bytes], name: str) -> Iterator[list[str | None]]:
    """Texts from a pipe, one a line, as many at a time as have come: nobody waits for the next to be written.

    A blank line is None. ``name`` is what messages call the stream.
    """
    number, rest = 0, b""
    read = getattr(stream, "read1", stream.read)  # which returns what is there
    while True:
        chunk: bytes = read(1 << 20)
        *lines, rest = (rest + chunk).split(b"\n") if chunk else ([rest, b""] if rest else [b""])
        texts: list[str | None] = []
        try:
            for text in decoded(lines, name, number):
                text = text.rstrip("\r").removeprefix("\ufeff" if number + len(texts) == 0 else "")
                texts.append(None if is_empty(text) else text)
        finally:  # what came before a line that cannot be read is answered, too
            if texts:
                yield texts
        number += len(lines)
        if not chunk:
            break
    if number == 0:
        raise UserError(f"{name}: empty; it needs at least one text.")
