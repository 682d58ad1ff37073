"""Arrow columns turned into numbers, as an encoding says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from scipy import sparse

from biglp._core.arrays import Rows
from biglp._core.errors import BadRowsError
from biglp._rows.encoding import Encoding
from biglp._sources.tables.kinds.base import WrongRowsError
from biglp._sources.tables.kinds.embedding import Embedding, number_type, numpy_type
from biglp._sources.tables.missing import MissingValues


def encode(
    encoding: Encoding,
    batch: Any,
    out: np.ndarray,
    rows: int | np.ndarray,
    missing: MissingValues,
) -> None:
    """Fill a (features, rows) buffer from a batch of Arrow columns.

    Missing values that are not filled, and wrong ones, are counted.

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
        if column.sparse:
            continue
        values = batch.column(column.name)
        try:
            refused = column.fill(values, out[place : place + column.width])
        except WrongRowsError as error:
            missing.add_wrong(column.name, str(error), _numbered(rows, error.where))
            refused = None
        except (TypeError, ValueError, pa.ArrowException) as error:
            raise BadRowsError(
                f"column {column.name!r} must hold {column.expects} and holds {values.type}: "
                f"{error}. Give the same kind of table as the model was fitted on."
            ) from error
        if refused is not None:
            missing.add(column.name, _numbered(rows, refused))
        place += column.width


def encode_sparse(
    encoding: Encoding, batch: Any, rows: int | np.ndarray, missing: MissingValues
) -> Rows:
    """Turn a batch of Arrow columns into CSR rows, where some columns are sparse.

    Parameters
    ----------
    encoding : Encoding
    batch : pyarrow.RecordBatch or pyarrow.Table
    rows : int or ndarray
        Number of the first row, or the numbers of all.
    missing : MissingValues
    """
    dtype = np.dtype(encoding.dtype)
    dense = np.empty((encoding.words_from or 0, batch.num_rows), dtype=dtype)
    encode(encoding, batch, dense, rows, missing)
    words = [c.sparse_rows(batch.column(c.name)) for c in encoding.columns or () if c.sparse]
    return sparse.hstack([sparse.csr_matrix(dense.T), *words], format="csr", dtype=dtype)


def ready_rows(encoding: Encoding, batch: Any) -> np.ndarray | None:
    """Rows of a table of one embedding column, without a copy.

    Returns
    -------
    found : ndarray of shape (rows, features) or None
        None where there is more to do, or something wrong that :func:`encode` will tell.
    """
    columns = encoding.columns or ()
    if len(columns) != 1 or not isinstance(columns[0], Embedding):
        return None
    values = batch.column(columns[0].name)
    kind = number_type(values.type)
    if kind is None or numpy_type(kind) != np.dtype(encoding.dtype):
        return None
    try:
        return columns[0].rows(values)
    except WrongRowsError:
        return None


def _numbered(rows: int | np.ndarray, where: Any) -> np.ndarray:
    """Row numbers of the places where ``where`` is true."""
    positions = np.flatnonzero(np.asarray(where))
    return rows[positions] if isinstance(rows, np.ndarray) else rows + positions
