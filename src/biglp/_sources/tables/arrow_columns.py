"""Arrow columns turned into numbers, as an encoding says."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from biglp._core.errors import BadRowsError
from biglp._sources.tables.encoding import Encoding
from biglp._sources.tables.missing import MissingValues


def encode(
    encoding: Encoding,
    batch: Any,
    out: np.ndarray,
    rows: int | np.ndarray,
    missing: MissingValues,
) -> None:
    """Fill a (features, rows) buffer from a batch of Arrow columns.

    Missing values are filled when the encoding has means, and counted when not.

    Parameters
    ----------
    encoding : Encoding
    batch : pyarrow.RecordBatch or pyarrow.Table
        Holds the encoding's columns.
    out : ndarray of shape (features, rows)
    rows : int or ndarray
        Number of the first row, or the numbers of all.
    missing : MissingValues
    """
    place = 0
    for index, (name, width) in enumerate(
        zip(encoding.columns or (), encoding.widths, strict=True)
    ):
        column = batch.column(name)
        part = out[place : place + width]
        filling = None if encoding.means is None else encoding.means[index]
        if name in encoding.categories:
            if column.null_count and filling is None:
                missing.add(name, _numbered(rows, column.is_null()))
            _encode_categories(column, encoding.categories[name], part)
        elif column.null_count and out.dtype.kind != "f":
            missing.add(name, _numbered(rows, column.is_null()))
        else:
            try:
                part[0] = numbers(column)
            except (TypeError, ValueError, pa.ArrowException) as error:
                raise BadRowsError(
                    f"column {name!r} must hold numbers and holds {column.type}: {error}. "
                    "Give the same kind of table as the model was fitted on."
                ) from error
            empty = np.isnan(part[0]) if out.dtype.kind == "f" else np.zeros(1, dtype=bool)
            if empty.any() and filling is None:
                missing.add(name, _numbered(rows, empty))
            elif empty.any():
                part[0][empty] = filling
        place += width


def _encode_categories(column: Any, categories: tuple[str, ...], out: np.ndarray) -> None:
    values = pa.array(categories, type=pa.string())
    found = pc.index_in(text(column), value_set=values, skip_nulls=True)
    codes = found.fill_null(-1).to_numpy()
    known = np.flatnonzero(codes >= 0)
    out[:] = 0
    out[codes[known], known] = 1


def _numbered(rows: int | np.ndarray, where: Any) -> np.ndarray:
    """Row numbers of the places where ``where`` is true."""
    positions = np.flatnonzero(np.asarray(where))
    return rows[positions] if isinstance(rows, np.ndarray) else rows + positions


def numbers(column: Any) -> np.ndarray:
    """Arrow column as NumPy numbers, missing ones as NaN."""
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.uint8())
    elif pa.types.is_decimal(column.type) or pa.types.is_null(column.type):
        column = column.cast(pa.float64())
    elif content_of(column.type) != "number":
        raise TypeError("not a number type")
    if isinstance(column, pa.ChunkedArray):
        return column.to_numpy()
    return column.to_numpy(zero_copy_only=False)


def text(column: Any) -> Any:
    """Arrow column as plain strings."""
    return column.cast(pa.string())


def content_of(kind: Any) -> Literal["number", "text", "nothing", "other"]:
    """What an Arrow type holds: numbers (truth values and decimals too), text or categories."""
    types = pa.types
    if (
        types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_boolean(kind)
        or types.is_decimal(kind)
    ):
        return "number"
    if (
        types.is_string(kind)
        or types.is_large_string(kind)
        or str(kind) == "string_view"  # its test came with pyarrow 16
        or types.is_dictionary(kind)
    ):
        return "text"
    return "nothing" if types.is_null(kind) else "other"
