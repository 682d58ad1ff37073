"""From columns of labels to their distinct values."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np

from biglp._core.arrays import as_places

MAX_CLASSES = 100_000


def distinct_of(column: Any) -> tuple[list[Any], np.ndarray]:
    """Distinct labels, and for each row the place of its label among them (-1 where null)."""
    if isinstance(column, list):
        known: dict[str, int] = {}
        codes = [known.setdefault(text, len(known)) for text in column]
        return list(known), np.array(codes, dtype=np.int64)
    if isinstance(column, np.ndarray):
        if column.dtype.kind in "iu" and len(column):
            low, high = int(column.min()), int(column.max())
            if high - low <= MAX_CLASSES:  # counting is quicker than sorting
                wide = np.uint64 if column.dtype.kind == "u" else np.int64
                shifted = (column.astype(wide) - wide(low)).astype(np.int64)
                seen = np.bincount(shifted) > 0
                found = [low + place for place in np.flatnonzero(seen).tolist()]
                return found, (np.cumsum(seen) - 1)[shifted]
        distinct, places = np.unique(column, return_inverse=True)
        return distinct.tolist(), places
    encoded = column.dictionary_encode()
    if hasattr(encoded, "combine_chunks"):
        encoded = encoded.combine_chunks()
    indices = as_places(encoded.indices)
    return encoded.dictionary.to_pylist(), indices


def whole_number(text: Any) -> int | None:
    """The integer that a text reads as; None where it is none."""
    if isinstance(text, str):
        with suppress(ValueError):
            return int(text)  # floating-point numbers would round it beyond 2⁵³
    try:
        value = float(text)
    except ValueError:
        return None
    return int(value) if np.isfinite(value) and value == int(value) else None


def smallest_integers(values: np.ndarray) -> np.dtype[Any]:
    """The smallest signed type that holds all values."""
    for kind in (np.int8, np.int16, np.int32):
        limits = np.iinfo(kind)
        if limits.min <= values.min() and values.max() <= limits.max:
            return np.dtype(kind)
    return np.dtype(np.int64)
