"""A column of moments or lengths of time: one number.

Dates and timestamps become days since 1970, times of the day hours since midnight, and lengths of
time days.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from biglp._sources.tables.arrow_columns import content_of, numbers, text
from biglp._sources.tables.kinds.number import Number

_DATES = ("%Y/%m/%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y")
_TIMED = tuple(date + time for time in (" %H:%M", " %H:%M:%S") for date in _DATES)
FORMATS = ("%Y-%m-%d", *_DATES, "%Y%m%dT%H%M%S", *_TIMED)
"""How dates are written, beside ISO 8601 with a time, which Arrow reads itself."""
ISO = "ISO 8601"
_DAY = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}


@dataclass(frozen=True)
class Date(Number):
    """Days since 1970, hours since midnight, or days.

    Attributes
    ----------
    format : str or None
        How texts are written; None where the column's type is one of moments.
    """

    kind = "date"
    expects = "dates or times"
    format: str | None = None

    @property
    def plain(self) -> bool:
        """A number of an array is not known to be one of days."""
        return False

    def describe(self) -> str:
        """Say what it is, and what becomes of missing values."""
        shown = "date or time as a number (days, or hours of a time of day)"
        return super().describe().replace(self.kind, shown, 1)

    def takes(self, kind: Any) -> bool:
        """Moments, and texts that may be moments."""
        return content_of(kind) in ("time", "text", "nothing")

    def read_as(self, found: Any) -> Any:
        """Text where it was text, else moments."""
        if self.format is not None:
            return pa.string()
        return found if content_of(found) == "time" else pa.timestamp("s")

    def numbers(self, values: Any) -> np.ndarray:
        """Values as numbers, missing ones as NaN."""
        content = content_of(values.type)
        if content in ("text", "nothing"):
            values = moments(values, self.format or ISO)
        elif content != "time":
            raise TypeError("neither dates nor times")
        return as_numbers(values)


def moments(values: Any, format: str) -> Any:
    """Texts as timestamps; null where one cannot be read.

    Raises
    ------
    pyarrow.ArrowInvalid
        When a text is not ISO 8601, if that is the format.
    """
    if format == ISO:
        return pc.utf8_trim_whitespace(text(values)).cast(pa.timestamp("s"))
    trimmed = pc.utf8_trim_whitespace(text(values))
    return pc.strptime(trimmed, format=format, unit="s", error_is_null=True)


def date_format(values: Any) -> str | None:
    """How texts that are all dates are written; None when some are not.

    Parameters
    ----------
    values : pyarrow.Array
        Different texts, none of them missing.
    """
    if len(values) == 0 or not _begins_like_a_date(values[0].as_py()):
        return None
    for format in FORMATS:
        if moments(values, format).null_count == 0:
            return format
    try:
        moments(values, ISO)
    except pa.ArrowInvalid:
        return None
    return ISO


def _begins_like_a_date(word: str) -> bool:
    word = word.strip()
    return 8 <= len(word) <= 32 and sum(letter.isdigit() for letter in word) >= 6


def as_numbers(values: Any) -> np.ndarray:
    """Numbers as they are and moments as numbers; missing ones as NaN."""
    kind, types = values.type, pa.types
    each: float
    if content_of(kind) != "time":
        return numbers(values)
    if types.is_date(kind):
        days, each = values.cast(pa.date32()).cast(pa.int32()), 1
    elif types.is_time(kind):
        whole = pa.int32() if types.is_time32(kind) else pa.int64()
        days, each = values.cast(whole), _DAY[kind.unit] / 24
    else:
        days, each = values.cast(pa.int64()), _DAY[kind.unit]
    found = days.cast(pa.float64(), safe=False)
    if isinstance(found, pa.ChunkedArray):
        return np.asarray(found.to_numpy() / each)
    return np.asarray(found.to_numpy(zero_copy_only=False) / each)
