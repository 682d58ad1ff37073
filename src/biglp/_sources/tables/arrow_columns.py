"""What Arrow columns hold, and their values as numbers and text."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from biglp._core.arrays import as_numpy

Content = Literal["number", "time", "text", "nothing", "other"]


def numbers(column: Any) -> np.ndarray:
    """Arrow column as NumPy numbers, missing ones as NaN."""
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.uint8())
    elif pa.types.is_decimal(column.type) or pa.types.is_null(column.type):
        column = column.cast(pa.float64())
    elif content_of(column.type) != "number":
        raise TypeError("not a number type")
    return as_numpy(column)


NUMBER = r"^\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*$"
CODE = r"^\s*0\d"
"""Digits with a 0 before them are a code, whose digits do not count."""


THOUSANDS = r"^\s*[-+]?[1-9]\d{0,2}(,\d{3})+(\.\d*)?\s*$"
CERTAIN = r",\d{3}[,.]"


def written_numbers(column: Any, *, thousands: bool = False) -> Any:
    """Texts as numbers; null where one is no number.

    Parameters
    ----------
    column : pyarrow.Array
    thousands : bool
        Whether commas stand between thousands.
    """
    words = text(column)
    if thousands:
        grouped = pc.match_substring_regex(words, THOUSANDS)
        words = pc.if_else(grouped, pc.replace_substring(words, ",", ""), words)
    fits = pc.match_substring_regex(words, NUMBER)
    trimmed = pc.utf8_trim_whitespace(pc.if_else(fits, words, pa.scalar(None, pa.string())))
    return trimmed.cast(pa.float64())


def has_thousands(column: Any) -> bool:
    """Whether the commas in numbers that are written as text stand between thousands.

    A comma may be a decimal one: all of them have to stand before three digits, and some number has
    to have none, or something behind these digits.
    """
    with_comma = column.filter(pc.match_substring(column, ","))
    if not len(with_comma) or not pc.all(pc.match_substring_regex(with_comma, THOUSANDS)).as_py():
        return False
    plain = pc.any(pc.match_substring_regex(column, NUMBER)).as_py()
    return bool(plain or pc.any(pc.match_substring_regex(with_comma, CERTAIN)).as_py())


def text(column: Any) -> Any:
    """Arrow column as plain strings."""
    return column.cast(pa.string())


def content_of(kind: Any) -> Content:
    """What an Arrow type holds: numbers (truth values and decimals too), moments, or text."""
    types = pa.types
    if (
        types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_boolean(kind)
        or types.is_decimal(kind)
    ):
        return "number"
    if types.is_temporal(kind) and not types.is_interval(kind):
        return "time"
    if (
        types.is_string(kind)
        or types.is_large_string(kind)
        or str(kind) == "string_view"  # its test came with pyarrow 16
        or types.is_dictionary(kind)
    ):
        return "text"
    return "nothing" if types.is_null(kind) else "other"


def missing_in(column: Any) -> int:
    """Number of missing values: null or NaN."""
    count = int(column.null_count)
    if pa.types.is_floating(column.type):
        if pa.types.is_float16(column.type):  # which pyarrow before 21 cannot compute with
            return count + int(np.isnan(numbers(column.drop_null())).sum())
        count += int(pc.sum(pc.is_nan(column)).as_py() or 0)
    return count
