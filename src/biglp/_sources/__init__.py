"""Where rows come from. :func:`as_source` is the only door."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from biglp._errors import BadRowsError
from biglp._sources.arrays import ArraySource, CsrSource, open_npy
from biglp._sources.base import Source
from biglp._sources.prepared import PreparedSource, Scaling, working_dtype

__all__ = ["PreparedSource", "Scaling", "Source", "as_source", "working_dtype"]


def as_source(X: Any) -> Source:
    """Accept an array, a sparse matrix, a data frame, a path or a source, and return a source."""
    if isinstance(X, Source):
        return X
    if isinstance(X, (str, os.PathLike)):
        return open_path(Path(X))
    if sparse.issparse(X):
        return CsrSource(X)
    array = np.asarray(X)
    if array.dtype.kind in "OUS":
        array = _numbers_from_objects(array)
    return ArraySource(array)


def open_path(path: Path) -> Source:
    """Open a file of rows by its ending."""
    if not path.exists():
        raise BadRowsError(f"there is no file {path}; check the path (relative to {Path.cwd()}).")
    if path.suffix == ".npy":
        return open_npy(path)
    raise BadRowsError(f"{path}: files ending in {path.suffix!r} cannot be read; use .npy.")


def _numbers_from_objects(array: np.ndarray) -> np.ndarray:
    """Turn objects that are all numbers into float64; say which value is none."""
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise BadRowsError(
            f"X must hold real numbers, but some values are not: {error}. "
            "Encode text and categories as numbers first (for example with one-hot columns)."
        ) from error
