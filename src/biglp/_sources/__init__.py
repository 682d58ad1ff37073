"""Where rows come from. :func:`as_source` is the only door.

=====================  ================================================================
``array``, CSR, frame  in memory
dask array, frame      chunk by chunk, where they are (:mod:`.dask`)
``.npy``               read by position (:mod:`.npy`)
Parquet, Arrow, CSV    tables with named columns (:mod:`.table`, :mod:`.tabular`)
LIBSVM                 sparse text (:mod:`.libsvm`)
``sim:…``              made up when read (:mod:`.simulated`)
=====================  ================================================================

Text and Parquet are converted once to raw rows in a temporary folder (:mod:`.cache`).
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from scipy import sparse

from biglp._core.errors import BadRowsError, ParameterError
from biglp._sources.base import Source
from biglp._sources.filled import fill_missing
from biglp._sources.formats.arrays import ArraySource, CsrSource
from biglp._sources.naming import is_path
from biglp._sources.opening import open_frame, open_source
from biglp._sources.options import ReadOptions
from biglp._sources.prepared import PreparedSource, Scaling, working_dtype

__all__ = [
    "PreparedSource",
    "ReadOptions",
    "Scaling",
    "Source",
    "as_source",
    "fingerprint",
    "open_source",
    "working_dtype",
]


def as_source(X: Any, **options: Any) -> Source:
    """Accept rows in any form and return a source.

    Parameters
    ----------
    X : array, sparse matrix, data frame, path, paths or Source
        Paths may be files, lists of files, folders, patterns (``part-*.parquet``) or ``sim:…``.
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
    if is_path(X):
        return open_source(X, **options)
    chosen = ReadOptions(**options)
    if type(X).__module__.partition(".")[0] in ("dask", "dask_expr"):
        from biglp._sources.formats.dask import open_dask  # only those who have Dask get here

        chosen.refuse("a dask array", "columns", "label_column", "drop", "categorical")
        return fill_missing(open_dask(X), chosen)
    if hasattr(X, "columns") or hasattr(X, "__arrow_c_stream__"):
        frame = open_frame(X, chosen)
        if frame is not None:
            return frame
    chosen.refuse("an array", "columns", "label_column", "drop", "categorical")
    if sparse.issparse(X):
        return fill_missing(CsrSource(X), chosen)
    array = np.asarray(X)
    if array.dtype.kind in "OUS":
        array = _numbers_from_objects(array)
    return fill_missing(ArraySource(array), chosen)


def fingerprint(source: Source) -> dict[str, Any]:
    """Facts, ready for JSON, that change when the rows of a source may have changed."""
    if isinstance(source, PreparedSource):
        return fingerprint(source.inner)
    own = getattr(source, "fingerprint", None)
    if own is not None:
        return dict(own())
    probe = source.take(np.unique(np.linspace(0, source.n_rows - 1, 1000).astype(np.int64)))
    values = probe.data if sparse.issparse(probe) else np.ascontiguousarray(probe)
    return {
        "kind": "memory",
        "shape": [source.n_rows, source.n_features],
        "dtype": np.dtype(source.dtype).str,
        "probe": hashlib.sha256(values.tobytes()).hexdigest(),
    }


def _numbers_from_objects(array: np.ndarray) -> np.ndarray:
    """Turn objects that are all numbers into float64; say which value is none."""
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise BadRowsError(
            f"X must hold real numbers, but some values are not: {error}. "
            "Encode text and categories as numbers first (for example with one-hot columns)."
        ) from error
