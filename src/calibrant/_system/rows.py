"""Rows of a table, written to a file that is there whole or not at all."""

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from calibrant._system.atomic import write_bytes
from calibrant.errors import UserError

FORMATS = ("csv", "jsonl", "parquet")


def format_of(path: Path, asked: str | None) -> str:
    """The format asked for, or the one that the file's name tells."""
    name = path.suffix.removeprefix(".").lower() if asked is None else asked
    if name not in FORMATS:
        what = f"{path}: its name does not tell the format" if asked is None else f"--format {asked}: unknown"
        raise UserError(f"{what}; give --format {', '.join(FORMATS[:-1])} or {FORMATS[-1]}.")
    return name


def write_rows(path: Path, kind: str, columns: Sequence[str], rows: Sequence[dict[str, Any]]) -> None:
    """Write rows, each with a value or nothing for every column."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(path, encoded(kind, columns, rows))


def encoded(kind: str, columns: Sequence[str], rows: Sequence[dict[str, Any]]) -> bytes:
    """The content of such a file."""
    return {"csv": _csv, "jsonl": _json_lines, "parquet": _parquet}[kind](columns, rows)


def _csv(columns: Sequence[str], rows: Sequence[dict[str, Any]]) -> bytes:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow([_in_a_cell(row.get(name)) for name in columns])
    return text.getvalue().encode()


def _in_a_cell(value: Any) -> Any:
    if isinstance(value, bool):
        return str(value).lower()  # as in JSON
    return json.dumps(value, ensure_ascii=False, default=str) if isinstance(value, list | dict) else value


def _json_lines(columns: Sequence[str], rows: Sequence[dict[str, Any]]) -> bytes:
    whole = ({name: row.get(name) for name in columns} for row in rows)
    return "".join(json.dumps(row, ensure_ascii=False, default=str) + "\n" for row in whole).encode()


def _parquet(columns: Sequence[str], rows: Sequence[dict[str, Any]]) -> bytes:
    import pyarrow
    import pyarrow.parquet

    cells = {}
    for name in columns:
        try:
            cells[name] = pyarrow.array([row.get(name) for row in rows])
        except pyarrow.ArrowException as error:
            raise UserError(
                f"Column {name!r} mixes kinds of values, which Parquet cannot hold ({error}); write CSV."
            ) from error
    sink = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table(cells), sink)
    return sink.getvalue()
