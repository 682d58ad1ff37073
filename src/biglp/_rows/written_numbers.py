"""Numbers as they are written in text, with a decimal point or a decimal comma."""

from __future__ import annotations

import re
from collections.abc import Sequence

MISSING_TEXTS = ("", "NA", "N/A", "#N/A", "NaN", "nan", "-NaN", "-nan", "NULL", "null", "None", "?")
_COMMA = re.compile(r"[+-]?(\d+,\d*|,\d+)([eE][+-]?\d+)?")
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+")


def is_number_text(cell: str, decimal: str = ".") -> bool:
    """Whether a cell reads as a number."""
    if decimal == ",":
        if "." in cell:
            return False
        cell = cell.replace(",", ".")
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell  # Python reads 1_000, other programs do not


def has_comma(cell: str) -> bool:
    """Whether a cell is a number with a decimal comma."""
    return _COMMA.fullmatch(cell.strip()) is not None


def find_decimal(rows: Sequence[Sequence[str]]) -> str:
    """Find the decimal mark of a table that is not delimited by commas.

    It is the comma where a column of numbers has decimal commas, at least one of which cannot
    stand between thousands (1,234 could), and no column has decimal points.
    """
    comma = False
    for column in zip(*rows, strict=False):
        cells = [cell.strip() for cell in column if cell.strip() not in MISSING_TEXTS]
        if any("." in cell for cell in cells) and all(map(is_number_text, cells)):
            return "."
        if all(is_number_text(cell, ",") for cell in cells):
            comma |= any("," in cell and not _THOUSANDS.fullmatch(cell) for cell in cells)
    return "," if comma else "."
