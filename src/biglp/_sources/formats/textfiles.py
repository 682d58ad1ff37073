"""Text files, plain or compressed, and a first look at how a delimited one is laid out."""

from __future__ import annotations

import bz2
import csv
import gzip
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any

from biglp._core.errors import BadRowsError

DELIMITERS = (",", ";", "\t", "|")
PACKED: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open}
MISSING_TEXTS = ("", "NA", "N/A", "#N/A", "NaN", "nan", "-NaN", "-nan", "NULL", "null", "None", "?")
_LOOK_BYTES = 1 << 18
_LOOK_LINES = 50


def open_text(path: str) -> IO[bytes]:
    """Open a file, unpacking ``.gz`` and ``.bz2``."""
    opener = PACKED.get(os.path.splitext(path)[1].lower())
    return open(path, "rb") if opener is None else opener(path, "rb")


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
    """How a delimited file is laid out.

    Attributes
    ----------
    delimiter : str
    header : bool
        Whether the first line holds names.
    names : tuple of str
        Column names, ``f0``, ``f1``… where the file has none.
    """

    delimiter: str
    header: bool
    names: tuple[str, ...]


def look_at(path: str, delimiter: str | None = None, header: bool | None = None) -> Layout:
    """Find delimiter and header from the first lines, as far as they are not given."""
    try:
        with open_text(path) as file:
            raw = file.read(_LOOK_BYTES)
    except (OSError, EOFError) as error:
        raise BadRowsError(f"{path} cannot be read: {error}. Copy or pack it again.") from error
    whole = len(raw) < _LOOK_BYTES
    lines = raw.decode("utf-8-sig", errors="replace").splitlines(keepends=True)
    if not whole and len(lines) > 1:
        lines.pop()  # cut in the middle
    if not any(line.strip() for line in lines):
        raise BadRowsError(f"{path} is empty; a table needs at least one row.")
    if delimiter is None:
        delimiter = max(DELIMITERS, key=lambda mark: _agreement(lines, mark))
    first = next(row for row in csv.reader(lines, delimiter=delimiter) if row)
    if header is None:
        header = _are_names(first)
    names = first if header else [f"f{index}" for index in range(len(first))]
    return Layout(delimiter, header, tuple(names))


def _are_names(cells: list[str]) -> bool:
    """Whether a first line names columns: no numbers, or numbers that only count the columns."""
    numbers = [cell.strip() for cell in cells if is_number_text(cell)]
    if not numbers:
        return not all(cell.strip() in MISSING_TEXTS for cell in cells)
    counted = [[str(first + index) for index in range(len(numbers))] for first in (0, 1)]
    return len(numbers) > 2 and numbers in counted  # pandas names columns 0, 1, 2…


def _agreement(lines: list[str], delimiter: str) -> tuple[int, int]:
    """How many lines have as many fields as the first one, and how many fields that is."""
    rows = [row for row in csv.reader(lines[:_LOOK_LINES], delimiter=delimiter) if row]
    width = len(rows[0])
    return (sum(len(row) == width for row in rows), width) if width > 1 else (0, 1)


def is_number_text(cell: str) -> bool:
    """Whether a cell reads as a number."""
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell  # Python reads 1_000, other programs do not


def numbered_lines(path: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yield line numbers (from 1) and fields; slow, for finding out what is wrong."""
    with open_text(path) as file:
        decoded = (line.decode("utf-8-sig", errors="replace") for line in file)
        reader = csv.reader(decoded, delimiter=delimiter)
        for row in reader:
            if row:
                yield reader.line_num, row
