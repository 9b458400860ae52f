"""Stretches of the rows of a file: found once, then read by whoever answers them, from where they begin.

A piece ends after ``ROWS`` rows or ``BYTES`` bytes, so that memory depends neither on the corpus nor on how
long its texts are. Rows of Parquet stay an Arrow table, and keep their types; others are dictionaries.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple

from calibrant._system.rows import encoded
from calibrant.corpus.answers import Answers, by_row
from calibrant.corpus.files import KINDS, File, asking
from calibrant.data.files import flaw
from calibrant.data.lines import Bad, Delimited, JsonLines, Place
from calibrant.errors import UserError
from calibrant.types import Pair

ROWS, BYTES = 1 << 14, 1 << 25
CHANGED = "has changed since its rows were counted; answer the corpus again, into a new folder."


class Piece(NamedTuple):
    """Rows that belong together."""

    start: int  # of lines, the bytes before it; of Parquet, the rows
    line: int  # lines, or rows, before it
    rows: int


class Indexed(NamedTuple):
    """What reading through a file once tells."""

    columns: list[str]
    pieces: list[Piece]


class Rejected(NamedTuple):
    """A row that has no answer."""

    line: int
    reason: str
    row: Any  # its cells, or its first line where it has none


@dataclass
class Dictionaries:
    """Rows of CSV and JSON lines."""

    kind: str
    numbers: list[int] = field(default_factory=list)
    rows: list[dict[str, Any]] = field(default_factory=list)

    def cells(self, column: str) -> list[Any]:
        """Of a column; None where a row has none."""
        return [row.get(column) for row in self.rows]

    def row(self, index: int) -> dict[str, Any]:
        """As it was read."""
        return self.rows[index]

    def joined(self, chosen: Sequence[int], columns: Sequence[str], added: Answers) -> bytes:
        """A file of the chosen rows, with what is added, in the format that they came in."""
        rows = [self.rows[i] | answer for i, answer in zip(chosen, by_row(added), strict=True)]
        return encoded(self.kind, [*columns, *added], rows)


@dataclass
class ArrowRows:
    """Rows of Parquet."""

    numbers: range
    table: Any  # pyarrow.Table

    def cells(self, column: str) -> list[Any]:
        """Of a column, as Python has them."""
        found: list[Any] = self.table.column(column).to_pylist()
        return found

    def row(self, index: int) -> dict[str, Any]:
        """As Python has it."""
        (row,) = self.table.slice(index, 1).to_pylist()
        return dict(row)

    def joined(self, chosen: Sequence[int], columns: Sequence[str], added: Answers) -> bytes:
        """The same as Parquet, with the types of before."""
        import pyarrow
        import pyarrow.parquet

        table = self.table if len(chosen) == len(self.table) else self.table.take(chosen)
        types = {"text": pyarrow.string(), "number": pyarrow.float64(), "flag": pyarrow.bool_()}
        types["texts"] = pyarrow.list_(pyarrow.string())
        for name, (kind, cells) in added.items():
            table = table.append_column(name, pyarrow.array(cells, types[kind]))
        sink = pyarrow.BufferOutputStream()
        pyarrow.parquet.write_table(table, sink)
        return bytes(sink.getvalue())


Rows = Dictionaries | ArrowRows


class LineReader:
    """Pieces of a file that has lines."""

    def __init__(self, file: File) -> None:
        self.file, self._stack = file, ExitStack()
        raw = self._stack.enter_context(file.opened())
        usual = "\t" if file.ending == ".tsv" else ","
        self._source = JsonLines(raw) if file.ending == ".jsonl" else Delimited(raw, usual, file.address)
        self._rows = self._source.rows()

    def close(self) -> None:
        """Close the file."""
        self._stack.close()

    def index(self) -> Indexed:
        """Read through all of it."""
        columns = dict.fromkeys(self._source.columns)
        lines, pieces = self._source.lines, []
        begins, rows = lines.place, 0
        for _, row in self._rows:
            rows += 1
            if isinstance(row, dict) and not columns.keys() >= row.keys():
                columns |= dict.fromkeys(row)
            if rows == ROWS or lines.place.offset - begins.offset >= BYTES:
                pieces.append(Piece(*begins, rows))
                begins, rows = lines.place, 0
        names = list(self._source.columns or columns)  # of a table even those that are there twice
        return Indexed(names, [*pieces, *([Piece(*begins, rows)] if rows else [])])

    def read(self, piece: Piece) -> tuple[Rows, list[Rejected]]:
        """Its rows, and those that cannot be read."""
        place = Place(piece.start, piece.line)
        if self._source.lines.place != place:
            self._source.lines.go(place)
            self._rows = self._source.rows()
        found, rejected = Dictionaries(KINDS[self.file.ending]), []
        for number, row in islice(self._rows, piece.rows):
            if isinstance(row, Bad):
                rejected.append(Rejected(number, row.why, row.raw))
            else:
                found.numbers.append(number)
                found.rows.append(row)
        if len(found.rows) + len(rejected) < piece.rows:
            raise UserError(f"{self.file.address} {CHANGED}")
        return found, rejected


class ParquetReader:
    """Pieces of a Parquet file. Of a group of rows only what comes before the piece is read in vain."""

    def __init__(self, file: File) -> None:
        import pyarrow
        import pyarrow.parquet

        self.file, self._stack = file, ExitStack()
        try:
            self._source = pyarrow.parquet.ParquetFile(
                self._stack.enter_context(file.opened()), buffer_size=1 << 20
            )
        except pyarrow.ArrowException as error:
            raise UserError(f"{file.address}: not a Parquet file ({error}).") from error
        self._at, self._batches = -1, iter(())
        self._rest: Any = None

    def close(self) -> None:
        """Close the file."""
        self._stack.close()

    def index(self) -> Indexed:
        """From what the file tells of itself."""
        about = self._source.metadata
        size = sum(about.row_group(i).total_byte_size for i in range(about.num_row_groups))
        n = about.num_rows
        rows = max(1, min(ROWS, BYTES * n // max(size, 1)))
        pieces = [Piece(start, start, min(rows, n - start)) for start in range(0, n, rows)]
        return Indexed(list(self._source.schema_arrow.names), pieces)

    def read(self, piece: Piece) -> tuple[Rows, list[Rejected]]:
        """Its rows; what is wrong with a Parquet file is wrong with all of it."""
        import pyarrow

        if self._at != piece.start:
            self._batches, self._at, self._rest = self._from(piece.start)
        held, n = [], 0
        while n < piece.rows:
            batch = next(self._batches, None) if self._rest is None else self._rest
            if batch is None:
                raise UserError(f"{self.file.address} {CHANGED}")
            held.append(batch.slice(0, piece.rows - n))
            n += len(held[-1])
            self._rest = batch.slice(len(held[-1])) if len(held[-1]) < len(batch) else None
        self._at += n
        table = pyarrow.Table.from_batches(held)
        return ArrowRows(range(piece.line + 1, piece.line + 1 + n), table), []

    def _from(self, start: int) -> tuple[Iterator[Any], int, Any]:
        about, before = self._source.metadata, 0
        groups: list[int] = []
        for group in range(about.num_row_groups):
            rows = about.row_group(group).num_rows
            if not groups and start >= before + rows:
                before += rows
            else:
                groups.append(group)
        batches = self._source.iter_batches(batch_size=1 << 12, row_groups=groups, use_threads=False)
        for batch in batches:
            if before + len(batch) > start:
                return batches, start, batch.slice(start - before)
            before += len(batch)
        raise UserError(f"{self.file.address} {CHANGED}")


Reader = LineReader | ParquetReader


def reader(file: File) -> Reader:
    """For its kind."""
    return (ParquetReader if file.ending == ".parquet" else LineReader)(file)


def index(file: File) -> Indexed:
    """Its columns and pieces."""
    source = reader(file)
    try:
        with asking(file.address):
            return source.index()
    finally:
        source.close()


def sorted_out(
    rows: Rows, column: str, pair_column: str | None
) -> tuple[list[int], list[str], list[Rejected]]:
    """Which rows have a text or, where a second column is named, a pair; these, and the other rows."""
    chosen, texts, rejected = [], [], []
    pairs = [None] * len(rows.numbers) if pair_column is None else rows.cells(pair_column)
    for index, (value, second) in enumerate(zip(rows.cells(column), pairs, strict=True)):
        why = flaw(value, "text", column)
        if why is None and pair_column is not None:
            why = flaw(second, "second text", pair_column)
        if why is None:
            chosen.append(index)
            texts.append(str(value) if pair_column is None else Pair(str(value), str(second)))
        else:
            rejected.append(Rejected(rows.numbers[index], why, rows.row(index)))
    return chosen, texts, rejected
