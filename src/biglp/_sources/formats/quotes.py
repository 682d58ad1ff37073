"""Quotes that are opened and not closed.

A field in quotes may run over several lines. So does one whose quote was never closed: it swallows
the lines up to the next quote, or to the end of the file, and a parser does not mind. Whether lines
went into fields is known from counting both; only then is the text looked at line by line.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator
from typing import IO, NamedTuple

from biglp._rows.textfiles import long_fields


class Watched(io.RawIOBase):
    """A file that counts its lines while another reads it.

    Attributes
    ----------
    lines : int
        Lines so far; in UTF-16 perhaps more than there are.
    quotes : bool
        Whether there were quotes.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._open_line = False
        self._ends = 0
        self.quotes = False

    @property
    def lines(self) -> int:
        return self._ends + self._open_line

    def readable(self) -> bool:
        """Yes."""
        return True

    def read(self, size: int = -1) -> bytes:
        """Read on."""
        piece = self._file.read(size)
        if piece:
            self._ends += piece.count(b"\n") or piece.count(b"\r")
            self._open_line = not piece.endswith((b"\n", b"\n\0", b"\r"))
            self.quotes = self.quotes or b'"' in piece
        return piece

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        super().close()


class Swallowed(NamedTuple):
    """A field in quotes with lines in it that may be rows.

    Attributes
    ----------
    first, last : int
        Lines that the record runs from and to, counted from 1.
    text : str
        How it begins.
    certain : bool
        Whether the quote is certainly wrong: not closed, or closed in the middle of a field.
    """

    first: int
    last: int
    text: str
    certain: bool


def swallowed_lines(
    lines: Iterator[str], delimiter: str, is_row: Callable[[list[str]], bool]
) -> Iterator[Swallowed]:
    """Find fields that run over several lines and should perhaps not.

    Parameters
    ----------
    lines : iterator of str
        The whole file, with the ends of lines.
    delimiter : str
    is_row : callable
        Whether the fields of a line look like a row of the table.
    """
    read: list[str] = []

    def remembered() -> Iterator[str]:
        for line in lines:
            read.append(line)
            yield line

    reader = csv.reader(remembered(), delimiter=delimiter)
    first = 1
    with long_fields():
        while True:
            try:
                next(reader)
            except StopIteration:
                return
            except csv.Error:  # longer than any field
                yield Swallowed(first, reader.line_num, read[0], True)
                return
            if len(read) > 1:
                certain = not _well_formed(read, delimiter)
                inner = csv.reader(iter(read[1:]), delimiter=delimiter)
                if certain or any(map(is_row, inner)):
                    yield Swallowed(first, reader.line_num, read[0], certain)
            first = reader.line_num + 1
            read.clear()


def _well_formed(lines: list[str], delimiter: str) -> bool:
    try:
        list(csv.reader(iter(lines), delimiter=delimiter, strict=True))
    except csv.Error:
        return False
    return True
