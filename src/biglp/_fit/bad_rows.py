"""Why rows cannot be used: which of them hold NaN, infinity, or values too large to square."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import numpy as np
from scipy import sparse

from biglp._core.arrays import Rows, squared_norms, to_numpy
from biglp._core.blocks import cut_rows
from biglp._core.errors import BadRowsError, BigLPError, ModelFileError, NonFiniteRowsError
from biglp._sources.base import Source, working_dtype

ROWS_AT_ONCE = 10_000


@contextmanager
def explained(source: Source) -> Iterator[None]:
    """Turn the discovery of a bad row, in any sweep over a source, into an error that names it.

    What was found in files is believed if they are still what they were.
    """
    try:
        yield
    except NonFiniteRowsError:
        source.check_unchanged()
        explain_bad_rows(source)
    source.check_unchanged()


@contextmanager
def explained_model(path: Any) -> Iterator[None]:
    """Say that a model file is damaged where its arrays do not fit each other, in any sweep."""
    try:
        yield
    except (BigLPError, OSError, MemoryError, ImportError, AssertionError, NameError):
        raise
    except Exception as error:
        raise ModelFileError(
            f"{path} cannot be used: its parts do not fit each other ({type(error).__name__}: "
            f"{error}). Copy it again, or fit and save it anew."
        ) from error


def explain_bad_rows(source: Source) -> NoReturn:
    """Count the rows that hold NaN, infinity or too large values, and raise an error saying so."""
    counts, first = [0, 0], (list[int](), list[int]())
    for block in cut_rows(source, ROWS_AT_ONCE):
        for kind, rows in enumerate(_bad_rows(to_numpy(block.rows()))):
            counts[kind] += len(rows)
            first[kind].extend(int(block.start + row) for row in rows[: 5 - len(first[kind])])
    examples = [f"first: rows {', '.join(map(str, rows))}" for rows in first]
    if counts[0]:
        error = BadRowsError(
            f"Input X contains NaN or infinity in {counts[0]:,} of {source.n_rows:,} rows of "
            f"{source.name} ({examples[0]}). Fill them (for example with "
            "sklearn.impute.SimpleImputer) or drop these rows."
        )
        error.rows = tuple(first[0])
        raise error
    dtype = working_dtype(source.dtype)
    precise = "give X as float64, " if dtype == np.float32 else ""
    if counts[1]:
        error = BadRowsError(
            f"Input X has {counts[1]:,} of {source.n_rows:,} rows with values too large for "
            f"{dtype} arithmetic, because their squares overflow ({examples[1]}); {precise}divide "
            "its features by their size, or drop these rows."
        )
        error.rows = tuple(first[1])
        raise error
    raise BadRowsError(
        "Input X has rows so far from the others that, once its features are scaled, their "
        f"squared distance overflows {dtype}; {precise}clip the outliers, or use scaling='none'."
    )


def _bad_rows(values: Rows) -> tuple[np.ndarray, np.ndarray]:
    """Rows with NaN or infinity, and finite rows whose squared length is not finite."""
    with np.errstate(over="ignore", invalid="ignore"):
        norms = squared_norms(values.astype(working_dtype(values.dtype), copy=False))
    if sparse.issparse(values):
        marks = sparse.csr_matrix(values, dtype=np.float64)
        marks.data = (~np.isfinite(marks.data)).astype(np.float64)
        broken = np.asarray(marks.sum(axis=1)).ravel() > 0
    else:
        broken = ~np.isfinite(values).all(axis=1)
    return np.flatnonzero(broken), np.flatnonzero(~np.isfinite(norms) & ~broken)
