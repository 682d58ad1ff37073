"""Text files, plain or packed: their letters, their format, and how a delimited one is laid out.

All of it is found by looking at the first bytes.
"""

from __future__ import annotations

import bz2
import codecs
import csv
import gzip
import io
import os
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any, NamedTuple

from biglp._core.errors import BadRowsError
from biglp._core.memory import format_bytes
from biglp._rows.options import PACKED, ReadOptions
from biglp._rows.written_numbers import MISSING_TEXTS, find_decimal, has_comma, is_number_text

MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # begins like UTF-16's mark, hence first
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
PLAIN = ("utf-8", "utf-8-sig", "ascii")
"""Encodings that are read as they are; a mark at the beginning is left out."""
MANY = 0.4
"""Share of the bytes that are zero in one half of UTF-16's pairs, for languages of the West."""


class Charset(NamedTuple):
    """An encoding of text."""

    name: str  # as Python calls it
    guessed: bool = False  # whether nothing in the file says so, and another may be right


def find_charset(raw: bytes) -> Charset:
    """Find the encoding of a text from its first bytes.

    A mark at the beginning decides; then zeros in every other byte, which are UTF-16; then whether
    the bytes are UTF-8, which other encodings hardly ever are by chance. What remains is taken for
    Windows' Western encoding, and for Latin-1 where that has no such letter.
    """
    for mark, name in MARKS:
        if raw.startswith(mark):
            return Charset(name)
    pairs = raw[: len(raw) // 2 * 2]
    if pairs:
        half = len(pairs) / 2
        first, second = pairs[::2].count(0) / half, pairs[1::2].count(0) / half
        if max(first, second) > MANY and min(first, second) < MANY / 10:
            return Charset("utf-16-be" if first > second else "utf-16-le")
    try:
        codecs.getincrementaldecoder("utf-8")().decode(raw)  # may be cut within a letter
    except UnicodeDecodeError:
        pass
    else:
        return Charset("utf-8")
    try:
        raw.decode("cp1252")
    except UnicodeDecodeError:
        return Charset("latin-1", guessed=True)
    return Charset("cp1252", guessed=True)


MAGIC = (
    (b"\x93NUMPY", "npy"),
    (b"PAR1", "parquet"),
    (b"ARROW1", "arrow"),
    (b"PK\x03\x04", "npz"),
    (b"\x89HDF", "h5"),
)
_LIBSVM = re.compile(rb"\S+(?: +\d+:\S+)+ *\r?\n")


def ending_for(first: bytes) -> str | None:
    """Ending, without its point, of a file that begins like this; None where nothing fits."""
    for magic, ending in MAGIC:
        if first.startswith(magic):
            return ending
    if first.startswith(b"\x1f\x8b"):
        inner = ending_for(zlib.decompressobj(wbits=31).decompress(first))
        return inner and f"{inner}.gz"
    if first.startswith(b"BZh"):
        try:
            return f"{ending_for(bz2.BZ2Decompressor().decompress(first)) or 'csv'}.bz2"
        except OSError:
            return None
    if b"\0" in first and not find_charset(first).name.startswith(("utf-16", "utf-32")):
        return None
    if first.lstrip()[:1] == b"{":
        return "jsonl"
    return "libsvm" if _LIBSVM.match(first) else "csv"


DELIMITERS = (",", ";", "\t", "|")
DELIMITER_WORDS = {";": "semicolons", "\t": "tabs", "|": "bars"}


class _Gzip(gzip.GzipFile):
    """A packed file whose damage is an OSError wherever it is found, as that of a bad checksum."""

    def read(self, size: int | None = -1) -> bytes:
        with _explained_damage():
            return super().read(size)

    def read1(self, size: int = -1) -> bytes:
        with _explained_damage():
            return super().read1(size)

    def readline(self, size: int | None = -1) -> bytes:
        with _explained_damage():
            return super().readline(size)


@contextmanager
def _explained_damage() -> Iterator[None]:
    try:
        yield
    except zlib.error as error:
        raise gzip.BadGzipFile(f"the packed data is damaged ({error})") from error


_OPENERS: dict[str, Any] = {".gz": _Gzip, ".bz2": bz2.open}
_LOOK_BYTES = 1 << 18
LONGEST_LINE = 1 << 26
"""Bytes of a line, which is parsed as a whole and takes several times its length then."""
_LOOK_LINES = 50
LONGEST_FIELD = 1 << 26
"""Text of a field that is looked at; what is longer was never meant to be one."""


def open_text(path: str) -> IO[bytes]:
    """Open a file, unpacking ``.gz`` and ``.bz2``."""
    opener = _OPENERS.get(os.path.splitext(path)[1].lower())
    return open(path, "rb") if opener is None else opener(path, "rb")


def decoded(file: IO[bytes], charset: str) -> io.TextIOWrapper:
    """Read a file as text, with the ends of its lines as they are."""
    name = "utf-8-sig" if charset in PLAIN else charset
    return io.TextIOWrapper(file, encoding=name, errors="replace", newline="")


@contextmanager
def long_fields() -> Iterator[None]:
    """Let Python's csv module read long fields, which it refuses by default."""
    before = csv.field_size_limit(LONGEST_FIELD)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def guess_rows(path: str, size: int) -> int:
    """Estimate the number of lines from the length of the first ones; at least 1."""
    try:
        with open_text(path) as file:
            look = file.read(_LOOK_BYTES)
    except (OSError, EOFError):  # parsing will say what is wrong with the file
        return 1
    if os.path.splitext(path)[1].lower() in PACKED:
        size *= 4  # what text is usually packed by
    if len(look) < _LOOK_BYTES:
        return max(look.count(b"\n"), 1)
    return max(int(size / len(look) * look.count(b"\n")), 1)


@dataclass(frozen=True)
class Layout:
    """How a delimited file is laid out."""

    delimiter: str
    header: bool  # whether the first line holds names
    names: tuple[str, ...]  # ``f0``, ``f1``… where the file has none
    charset: Charset
    decimal: str  # a point or a comma

    @property
    def words(self) -> str:
        """What is unusual about it."""
        words = [DELIMITER_WORDS.get(self.delimiter, ""), "decimal comma" * (self.decimal == ",")]
        words.append("" if self.charset.name in PLAIN else self.charset.name)
        return ", ".join(word for word in words if word)


def look_at(path: str, options: ReadOptions | None = None) -> Layout:
    """Find the layout from the first lines, as far as the options do not say it."""
    given = options or ReadOptions()
    raw, whole = _first_bytes(path)
    charset = Charset(given.text_encoding) if given.text_encoding else find_charset(raw)
    lines = list(decoded(io.BytesIO(raw), charset.name))
    if not whole and len(lines) > 1:
        lines.pop()  # cut in the middle
    if not any(line.strip() for line in lines):
        raise BadRowsError(f"{path} is empty; a table needs at least one row.")
    delimiter = given.delimiter or _find_delimiter(lines)
    rows = _rows(lines, delimiter)
    decimal = given.decimal or ("." if delimiter == "," else find_decimal(rows[1:] or rows))
    cells, header = rows[0], given.header
    if header is None:
        # A first line names columns where it has no numbers, or numbers that only count the
        # columns: pandas names them 0, 1, 2…
        numbers = [cell.strip() for cell in cells if is_number_text(cell, decimal)]
        counted = [[str(first + index) for index in range(len(numbers))] for first in (0, 1)]
        if numbers:
            header = len(numbers) > 2 and numbers in counted
        else:
            header = not all(cell.strip() in MISSING_TEXTS for cell in cells)
    names = cells if header else [f"f{index}" for index in range(len(cells))]
    return Layout(delimiter, header, tuple(names), charset, decimal)


def find_charset_of(path: str) -> Charset:
    """Look at how a file's letters are written."""
    return find_charset(_first_bytes(path)[0])


def _first_bytes(path: str) -> tuple[bytes, bool]:
    """The first lines of a file, and whether these are all of it."""
    try:
        with open_text(path) as file:
            raw, wanted = file.read(_LOOK_BYTES), _LOOK_BYTES
            while len(raw) == wanted < LONGEST_LINE and raw.count(b"\n") < 3:
                raw += file.read(wanted)  # thousands of columns: their names alone are long
                wanted *= 2
    except (OSError, EOFError) as error:
        raise BadRowsError(f"{path} cannot be read: {error}. Copy or pack it again.") from error
    if len(raw) >= LONGEST_LINE and b"\n" not in raw and b"\r" not in raw:
        raise line_too_long(path, 1)
    return raw, len(raw) < wanted


def line_too_long(path: str, line: int) -> BadRowsError:
    """Explain that a line is not read."""
    return BadRowsError(
        f"{path}, line {line:,}: longer than {format_bytes(LONGEST_LINE)}, which is more than one "
        "row can be. Give each row a line of its own (is a line break or a quote missing?), or "
        "rows of that many values as a sparse .npz file."
    )


def _find_delimiter(lines: list[str]) -> str:
    """The delimiter that cuts the most lines alike, and into the most fields."""
    # How many lines have as many fields as the first one, and how many fields that is.
    scores = {}
    for mark in DELIMITERS:
        rows = _rows(lines, mark)
        width = len(rows[0])
        scores[mark] = (sum(len(row) == width for row in rows), width) if width > 1 else (0, 1)
    best = max(DELIMITERS, key=lambda mark: scores[mark])
    if best == ",":  # 1,5;2,5 is cut alike by both
        for mark in DELIMITERS[1:]:
            cells = [cell for row in _rows(lines, mark) for cell in row if "," in cell]
            if scores[mark][0] >= scores[","][0] and cells and all(map(has_comma, cells)):
                return mark
    return best


def _rows(lines: list[str], delimiter: str) -> list[list[str]]:
    with long_fields():
        return [row for row in csv.reader(lines[:_LOOK_LINES], delimiter=delimiter) if row]


def numbered_lines(path: str, layout: Layout) -> Iterator[tuple[int, list[str]]]:
    """Yield line numbers (from 1) and fields; slow, for finding out what is wrong."""

    def limited(text: IO[str]) -> Iterator[str]:
        number = 0
        while line := text.readline(LONGEST_LINE + 1):
            number += 1
            if len(line) > LONGEST_LINE:
                raise line_too_long(path, number)
            yield line

    with open_text(path) as file, decoded(file, layout.charset.name) as text, long_fields():
        reader, line = csv.reader(limited(text), delimiter=layout.delimiter), 1
        for row in reader:
            if row:
                yield line, row
            line = reader.line_num + 1
