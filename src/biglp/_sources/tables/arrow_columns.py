"""Arrow columns turned into numbers, as an encoding says."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pyarrow as pa

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

    Missing values that are not filled are counted.

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
    for column in encoding.columns or ():
        values = batch.column(column.name)
        try:
            refused = column.fill(values, out[place : place + column.width])
        except (TypeError, ValueError, pa.ArrowException) as error:
            raise BadRowsError(
                f"column {column.name!r} must hold {column.expects} and holds {values.type}: "
                f"{error}. Give the same kind of table as the model was fitted on."
            ) from error
        if refused is not None:
            missing.add(column.name, _numbered(rows, refused))
        place += column.width


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
