"""From anything that holds rows to the source that reads it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from biglp._core.arrays import device_tensor, on_host
from biglp._core.errors import BadRowsError, ParameterError
from biglp._core.registry import Registry
from biglp._files.copies import copying_to, keep_alive, origin
from biglp._sources.base import Source
from biglp._sources.formats import without_pyarrow
from biglp._sources.formats.arrays import ArraySource, CsrSource
from biglp._sources.formats.tensors import TensorSource
from biglp._sources.naming import InputFiles
from biglp._sources.options import ReadOptions
from biglp._sources.prepared import fill_missing

_NAMED = ("columns", "label_column", "drop", "categorical", "text")
"""Options that mean nothing without named columns."""
_TABLES = ("columns", "__arrow_c_stream__", "__arrow_c_array__", "sink_ipc", "to_reader", "scanner")
"""What only tables have: data frames, Arrow's interfaces, polars queries, scanners, data sets."""


FRAMES: Registry[Any] = Registry({"frame": "biglp._sources.formats.frame:open_frame"})
"""How a data frame is opened: tables, and pyarrow with them, are loaded for the first one."""


def as_source(X: Any, **options: Any) -> Source:
    """Accept rows in any form and return a source.

    Parameters
    ----------
    X : array, sparse matrix, data frame, path, paths, InputFiles or Source
        Paths may be files, lists of files, folders, patterns (``part-*.parquet``), URIs of these
        (``s3://bucket/part-*.parquet``), Delta and Iceberg tables, or ``sim:…``.
        Data frames may also be polars LazyFrames, DuckDB relations, pyarrow data sets, scanners
        and readers, and whatever has Arrow's PyCapsule interface; arrays also torch tensors, and
        those of CuPy, JAX or Numba on a GPU, where they stay.
    **options
        See :class:`ReadOptions`.
    """
    if isinstance(X, Source):
        if options:
            raise ParameterError(
                f"{', '.join(options)}: these options say how to read, but {X.name} is open "
                "already; give them where it is opened."
            )
        return X
    chosen = ReadOptions(**options)
    listed = X if isinstance(X, (list, tuple)) and len(X) > 0 else [X]
    if all(isinstance(path, (str, os.PathLike, InputFiles)) for path in listed):
        return _open_files(X, chosen)
    if type(X).__module__.partition(".")[0] in ("dask", "dask_expr"):
        from biglp._sources.formats.dask import open_dask  # Dask is loaded: X is made of it

        chosen.refuse("a dask array", *_NAMED)
        return fill_missing(open_dask(X), chosen)
    # Asked of the type: a LazyFrame works its columns out when it is asked for them.
    if any(hasattr(type(X), mark) for mark in _TABLES) or hasattr(X, "__arrow_c_stream__"):
        frame = _open_frame(X, chosen)
        if frame is not None:
            return frame
    chosen.refuse("an array", *_NAMED)
    tensor = device_tensor(X)
    if tensor is not None:
        return fill_missing(TensorSource(tensor, "X"), chosen)
    if sparse.issparse(X):
        return fill_missing(CsrSource(X), chosen)
    if isinstance(X, np.ma.MaskedArray) and np.ma.is_masked(X):
        masked, X = np.ma.getmaskarray(X), X.data.astype(np.result_type(X.dtype, np.float32))
        X[masked] = np.nan  # missing, where NumPy would forget the mask
    array = np.asarray(on_host(X, "X"))
    if array.dtype.kind in "OUS":
        array = _numbers_from_objects(array)
    return fill_missing(ArraySource(array, feature_names=_column_names(X)), chosen)


def _open_files(paths: Any, options: ReadOptions) -> Source:
    """Open files; those of a store are copied first, and called by their own names in messages."""
    folder = None if options.cache in ("auto", "never") else Path(options.cache)
    with copying_to(folder, options.progress):
        files = InputFiles.of(paths)
        source = files.open(options)
    keep_alive(source, files)
    source.name = origin(source.name)
    return source


def _open_frame(frame: Any, options: ReadOptions) -> Source | None:
    """Open a data frame as a table; None for one of plain features, which is as good an array."""
    no_options = ReadOptions(cache=options.cache, progress=options.progress) == options
    pandas = type(frame).__module__.partition(".")[0] == "pandas" and hasattr(frame, "dtypes")
    plain = (
        no_options
        and pandas
        and all(isinstance(dtype, np.dtype) and dtype.kind in "fiub" for dtype in frame.dtypes)
    )
    if plain and len(set(frame.columns)) < len(frame.columns):  # names that tell nothing apart
        return None
    try:
        open_frame = FRAMES["frame"]
    except ImportError as error:
        if plain:  # an array can be made without pyarrow
            return None
        raise without_pyarrow("this data frame", error) from error
    return open_frame(frame, options, keep_plain=not no_options)


def _column_names(X: Any) -> tuple[str, ...] | None:
    """Names of a data frame's columns, where all of them are text."""
    if isinstance(X, np.ndarray) or not hasattr(X, "columns"):
        return None
    names = tuple(X.column_names if hasattr(X, "column_names") else X.columns)
    return names if all(isinstance(name, str) for name in names) else None


def _numbers_from_objects(array: np.ndarray) -> np.ndarray:
    """Turn objects that are all numbers into float64; say which value is none."""
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise BadRowsError(
            f"X must hold real numbers, but some values are not: {error}. "
            "Encode text and categories as numbers first (for example with one-hot columns)."
        ) from error
