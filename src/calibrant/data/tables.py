"""Tables from a user's own file: CSV, TSV, JSON lines, Parquet, Excel, or a saved ``datasets`` folder."""

import gzip
import logging
import re
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, Any, cast
from zipfile import BadZipFile

from calibrant.data.lines import NOT_UTF8, Bad, Delimited, JsonLines
from calibrant.data.lines import Row as AnyRow
from calibrant.errors import UserError

logger = logging.getLogger(__name__)
Row = tuple[int, dict[str, Any]]  # the line (or row) number, for messages, and its cells
Table = tuple[list[str], list[Row]]  # the names of the columns, and the rows


def check_path(path: Path | str) -> None:
    """Refuse what cannot be a file with texts, by its name and by whether it is there."""
    if re.match(r"[a-z][a-z0-9+.-]*://", str(path), re.IGNORECASE):
        raise UserError(f"{path} is a URL, and only files are read; download it, and name the file.")
    path = Path(path)
    if not path.exists():
        raise UserError(f"No file {str(path)!r}; check the path.")
    zipped = path.suffix.lower() == ".gz"
    if not path.is_dir() and (_kind(path) not in _READERS or (zipped and _kind(path) not in _LINES)):
        raise UserError(
            f"{path}: unknown kind of file {path.suffix!r}; use one of {', '.join(SUFFIXES)}, .xlsx, or "
            ".gz of what has lines."
        )


def _kind(path: Path) -> str:
    """How its name ends, but for .gz."""
    return Path(path.name.lower().removesuffix(".gz")).suffix


def read_table(path: Path | str) -> Table:
    """All columns and rows. A ``.csv``, ``.tsv`` or ``.jsonl`` file may be gzipped (``.csv.gz``)."""
    check_path(path)
    path = Path(path)
    try:
        columns, rows = _saved_dataset(path) if path.is_dir() else _READERS[_kind(path)](path)
    except (OSError, EOFError, zlib.error) as error:
        why = getattr(error, "strerror", None) or error
        raise UserError(f"{path} cannot be read ({why}).") from error
    if not columns:
        raise UserError(f"{path}: the file is empty; it needs rows with a text each.")
    return columns, rows


def decoded(lines: Iterable[bytes], name: str, before: int = 0) -> Iterator[str]:
    """Lines as text; one that is not UTF-8 is named, by its number with those before."""
    for number, line in enumerate(lines, start=before + 1):
        try:
            yield line.decode("utf-8")
        except UnicodeDecodeError as error:
            raise UserError(f"{name}, line {number}: {NOT_UTF8}") from error


def opened(path: Path) -> IO[bytes]:
    """For reading, unpacked."""
    return cast(IO[bytes], gzip.open(path)) if path.suffix.lower() == ".gz" else open(path, "rb")


def _delimited(path: Path, usual: str) -> Table:
    with opened(path) as file:
        table = Delimited(file, usual, str(path))
        rows = list(_readable(path, table.rows()))
    if table.delimiter != usual:
        logger.info("%s: its columns are told apart by %r", path, table.delimiter)
    for number, row in rows if table.delimiter == "\t" else ():
        if any("\t" in cell and "\n" in cell for cell in row.values() if cell is not None):
            warnings.warn(
                f"{path}, line {number}: a cell that begins with a double quote goes on over several lines; "
                "if that is not meant, write the quote twice and the cell in quotes.",
                stacklevel=5,
            )
    return list(table.columns), rows


def _json_lines(path: Path) -> Table:
    with opened(path) as file:
        rows = list(_readable(path, JsonLines(file).rows()))
    return list(dict.fromkeys(key for _, row in rows for key in row)), rows


def _readable(path: Path, rows: Iterable[AnyRow]) -> Iterator[Row]:
    """The rows; the first that cannot be read is refused."""
    for number, row in rows:
        if isinstance(row, Bad):
            raise UserError(f"{path}, line {number}: {row.why}")
        yield number, row


def _parquet(path: Path) -> Table:
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
    return list(table.column_names), list(enumerate(rows, start=1))


def _excel(path: Path) -> Table:
    try:
        import openpyxl  # type: ignore[import-untyped, import-not-found, unused-ignore]
    except ImportError as error:
        raise UserError(
            f"{path}: an Excel file, which needs a package more; run `pip install 'calibrant[excel]'`, or "
            "save the sheet as CSV."
        ) from error
    try:
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
    except (BadZipFile, KeyError, ValueError) as error:
        raise UserError(f"{path}: not an Excel file ({error}).") from error
    sheet = book.worksheets[0]
    if len(book.worksheets) > 1:
        logger.info("%s: read the sheet %r, the first of %d", path, sheet.title, len(book.worksheets))
    header, *rows = list(sheet.iter_rows(values_only=True)) or [()]
    book.close()
    columns = [str(name) for name in header if name is not None]
    found = [(number, dict(zip(columns, row, strict=False))) for number, row in enumerate(rows, start=2)]
    return columns, [(number, row) for number, row in found if any(cell is not None for cell in row.values())]


def _saved_dataset(path: Path) -> Table:
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
    return list(data.column_names), list(enumerate(rows, start=1))


_LINES: dict[str, Callable[[Path], Table]] = {
    ".csv": lambda path: _delimited(path, ","),
    ".tsv": lambda path: _delimited(path, "\t"),
    ".jsonl": _json_lines,
}
SUFFIXES = (".parquet", *_LINES)
_READERS = {".parquet": _parquet, ".xlsx": _excel, **_LINES}
