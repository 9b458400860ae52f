"""Rows of CSV, TSV and JSON-lines files, one at a time, from any row on.

A row that cannot be read is a ``Bad`` one and stops nothing; whoever reads decides. Only its first line is
left out, so that a quote that nobody closes costs a line and not the rest of the file.
"""

import csv
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any, NamedTuple

from calibrant.errors import UserError

LONGEST = 1 << 26
"""Bytes of a row, at most. Beyond is a quote that nobody closed, and the rest of the file in memory."""
NOT_UTF8 = "not UTF-8; save it as UTF-8 (for instance with `iconv -f latin1 -t utf-8`)."


@dataclass(frozen=True)
class Bad:
    """A row that cannot be read."""

    why: str  # the rest of a sentence that began with the file and the line
    raw: str  # its first line


class Place(NamedTuple):
    """Where a row begins."""

    offset: int  # bytes before it
    line: int  # lines before it


Row = tuple[int, dict[str, Any] | Bad]  # beside its line, for messages: where it ends, or a bad one begins


class Lines:
    """The lines of a file, which knows where it is and where the row in hand began.

    A line ends with a line feed, a carriage return or both.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.go(Place(0, 0))

    def go(self, place: Place) -> None:
        """Go on from there."""
        self._file.seek(place.offset)
        self._offset, self._line = place
        self._waiting: list[bytes] = []  # the last first
        self.begin()

    @property
    def place(self) -> Place:
        """Where the next line begins."""
        return Place(self._offset, self._line)

    def begin(self) -> None:
        """A row begins here."""
        self._began = self._offset
        self.first, self.second, self.is_utf8 = "", self.place, True

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        if not self._waiting:
            line = self._file.readline(LONGEST)
            if not line:
                raise StopIteration
            alone = b"\r" in line[:-2] or line.endswith(b"\r")
            self._waiting = re.findall(rb"[^\r]*\r\n?|[^\r]+$", line)[::-1] if alone else [line]
        line = self._waiting.pop()
        at_start = self._offset == 0
        self._offset += len(line)
        self._line += 1
        try:
            text = line.decode("utf-8-sig" if at_start else "utf-8")  # spreadsheets write a byte-order mark
        except UnicodeDecodeError:
            self.is_utf8, text = False, line.decode(errors="replace")
        if not self.first:
            self.first, self.second = text, self.place
        if self._offset - self._began > LONGEST:
            raise csv.Error(f"longer than {LONGEST} bytes")
        return text


class JsonLines:
    """A row is a line with an object."""

    columns: tuple[str, ...] = ()  # known when all rows are

    def __init__(self, file: IO[bytes]) -> None:
        self.lines = Lines(file)

    def rows(self) -> Iterator[Row]:
        """From where the lines are; blank ones are no rows."""
        for line in self.lines:
            if not line.isspace():
                yield self.lines.place.line, self._row(line)
            self.lines.begin()

    def _row(self, line: str) -> dict[str, Any] | Bad:
        if not self.lines.is_utf8:
            return Bad(NOT_UTF8, line)
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:  # besides what is no JSON: too long, too deep
            why = getattr(error, "msg", "beyond what Python reads")
            return Bad(f"not JSON ({why}); each line is one object.", line)
        return row if isinstance(row, dict) else Bad('expected an object such as {"text": …}.', line)


class Delimited:
    """A row is what csv takes for one: a line, or several where a quoted cell has them."""

    def __init__(self, file: IO[bytes], usual: str, name: str) -> None:
        csv.field_size_limit(LONGEST)  # the default refuses a text of more than 128 kB
        self.lines = Lines(file)
        self.delimiter = _delimiter(next(self.lines, ""), usual)
        self.lines.go(Place(0, 0))
        try:
            self.columns = tuple(next(self._reader(), ()))
        except csv.Error as error:
            raise UserError(f"{name}, line 1: {_malformed(error)}") from error
        if not self.lines.is_utf8:
            raise UserError(f"{name}, line 1: {NOT_UTF8}")
        if not self.columns and not all(map(str.isspace, self.lines)):
            raise UserError(f"{name}, line 1: blank, where the column names should be.")
        self.lines.begin()

    def _reader(self) -> Any:
        return csv.reader(self.lines, delimiter=self.delimiter, strict=True)

    def rows(self) -> Iterator[Row]:
        """From where the lines are."""
        reader, lines, n = self._reader(), self.lines, len(self.columns)
        while True:
            begins = lines.place.line + 1
            try:
                cells = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                bad = Bad(_malformed(error), lines.first)
                lines.go(lines.second)
                yield begins, bad
                continue
            number = lines.place.line
            if not lines.is_utf8:
                yield number, Bad(NOT_UTF8, lines.first)
            elif len(cells) > n:  # a text with a comma in it, not quoted
                why = f"more cells than the {n} columns; put texts that hold the delimiter in double quotes."
                yield number, Bad(why, lines.first)
            elif cells:  # a blank line is no row
                yield number, dict(zip(self.columns, cells + [None] * (n - len(cells)), strict=True))
            lines.begin()


def _malformed(error: csv.Error) -> str:
    return f"not a well-formed table ({error}); write a quote inside a quoted text twice."


def _delimiter(header: str, usual: str) -> str:
    """The one that makes most columns of the header; the usual one where another makes no more.

    >>> _delimiter("id;text;label", ","), _delimiter("text,label", ","), _delimiter("text", ",")
    (';', ',', ',')
    """

    def columns(sign: str) -> int:
        return len(next(csv.reader([header], delimiter=sign), ()))

    best: str = max([usual, *",;\t|"], key=columns)
    return best
