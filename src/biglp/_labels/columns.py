"""Labels of any library as one NumPy array that keeps their type.

NumPy has no missing integer, so a column of integers of which some are missing becomes
floating-point numbers on its way from most libraries. Here integers stay integers, with -1, which
means "no label", where one is missing.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from biglp._core.arrays import on_host


def label_array(y: Any) -> np.ndarray:
    """Labels as an array: integers, truth values, text or objects.

    Floating-point numbers stay as they are unless some are NaN and the others are whole: those
    were integers before some of them went missing.
    """
    values = _whole_column(y)
    if values is not None:
        return values
    if isinstance(y, np.ma.MaskedArray):  # DuckDB's fetchnumpy; NumPy would forget the mask
        masked, y = np.ma.getmaskarray(y), np.array(y.data, dtype=object)
        y[masked] = None
    plain = on_host(y, "y")
    values = np.asarray(plain)
    if values.dtype.kind in "US" and not hasattr(plain, "dtype"):
        return np.asarray(y, dtype=object)  # a list of text and NaN or -1 would all become text
    if values.dtype.kind == "O":
        values = _numbers_with_gaps(values)
    absent = np.isnan(values) if values.dtype.kind == "f" else np.zeros(0, dtype=bool)
    if absent.any() and (values[~absent] == np.floor(values[~absent])).all():
        with np.errstate(invalid="ignore"):
            whole = np.where(absent, -1, values).astype(np.int64)
        if (whole[~absent] == values[~absent]).all():  # neither infinite nor out of range
            return whole
    return values


def _whole_column(y: Any) -> np.ndarray | None:
    """A column of integers with gaps, from a library that knows them; None for any other."""
    library = type(y).__module__.partition(".")[0]
    dtype: Any = getattr(y, "dtype", None)
    if library == "pandas" and not isinstance(dtype, np.dtype):
        whole = getattr(dtype, "kind", None) in ("i", "u") and y.isna().any()
        return np.asarray(y.to_numpy(dtype=np.int64, na_value=-1)) if whole else None
    if library == "polars" and hasattr(dtype, "is_integer"):
        whole = dtype.is_integer() and y.null_count()
        return np.asarray(y.cast(int).fill_null(-1).to_numpy()) if whole else None
    if library == "pyarrow" and str(getattr(y, "type", "")).startswith(("int", "uint")):
        return np.asarray(y.cast("int64").fill_null(-1)) if y.null_count else None
    return None


def _numbers_with_gaps(values: np.ndarray) -> np.ndarray:
    """Objects that are floating-point numbers and None as numbers and NaN; others as they are."""
    kinds = {type(value) for value in values.ravel()}
    if kinds - {float, np.float64, np.float32, type(None)} or type(None) not in kinds:
        return values
    return values.astype(np.float64)
