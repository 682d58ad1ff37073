"""Columns of numbers from Arrow to NumPy and back, as they lie in memory.

pyarrow's own ways, ``to_numpy``, ``pyarrow.array`` and ``to_pandas_dtype``, load
pandas wherever it is installed, which takes longer than a small fit.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np


def as_numpy(column: Any) -> np.ndarray:
    """Values of an Arrow array or chunked array; missing numbers as NaN."""
    pa = sys.modules["pyarrow"]
    chunked = isinstance(column, pa.ChunkedArray)
    kind = column.type
    plain = pa.types.is_integer(kind) or pa.types.is_floating(kind)
    if not plain or column.null_count or not len(column):
        found: np.ndarray = column.to_numpy(**({} if chunked else {"zero_copy_only": False}))
        return found
    parts = [_view(part) for part in (column.chunks if chunked else [column]) if len(part)]
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _view(column: Any) -> np.ndarray:
    types, kind = sys.modules["pyarrow"].types, column.type
    letter = "f" if types.is_floating(kind) else "u" if types.is_unsigned_integer(kind) else "i"
    values = np.frombuffer(column.buffers()[1], f"{letter}{kind.bit_width // 8}")
    return values[column.offset : column.offset + len(column)]


def as_places(column: Any) -> np.ndarray:
    """Whole numbers of an Arrow array, -1 where one is missing."""
    if not len(column):
        return np.empty(0, dtype=np.int64)
    places, known = _view(column), column.buffers()[0]
    if not column.null_count:
        return places
    bits = np.unpackbits(np.frombuffer(known, np.uint8), bitorder="little")
    return np.where(bits[column.offset : column.offset + len(column)] == 1, places, -1)


def as_arrow(column: np.ndarray) -> Any:
    """An Arrow array of the same values."""
    pa = sys.modules["pyarrow"]
    if column.dtype.kind not in "iuf" or not column.dtype.isnative or not len(column):
        return pa.array(column)
    kind, held = pa.from_numpy_dtype(column.dtype), pa.py_buffer(np.ascontiguousarray(column))
    return pa.Array.from_buffers(kind, len(column), [None, held])
