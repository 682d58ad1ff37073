"""What the values of y mean: which are no labels, which are the same, which are distributions."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from biglp._core.arrays import on_host
from biglp._core.errors import LabelError, ParameterError

PIECE_ROWS = 1 << 16
"""Rows of a table of label distributions that are looked at together."""
MOST_WEIGHT = 1e12
"""Heaviest label: its square, times the number of rows, must remain a number like others."""


def label_array(y: Any) -> np.ndarray:
    """Labels of any library as one array that keeps their type.

    NumPy has no missing integer, so a column of integers of which some are missing becomes
    floating-point numbers on its way from most libraries. Here they are integers again, with -1,
    which means "no label", where one is missing; other floating-point numbers stay as they are.
    """
    # A column of integers with gaps, from a library that knows them.
    library, dtype = type(y).__module__.partition(".")[0], getattr(y, "dtype", None)
    if library == "pandas" and not isinstance(dtype, np.dtype):
        if getattr(dtype, "kind", None) in ("i", "u") and y.isna().any():
            return np.asarray(y.to_numpy(dtype=np.int64, na_value=-1))
    elif library == "polars" and dtype is not None and hasattr(dtype, "is_integer"):
        if dtype.is_integer() and y.null_count():
            return np.asarray(y.cast(int).fill_null(-1).to_numpy())
    elif library == "pyarrow" and str(getattr(y, "type", "")).startswith(("int", "uint")):
        if y.null_count:
            return np.asarray(y.cast("int64").fill_null(-1))
    elif isinstance(y, np.ma.MaskedArray):  # DuckDB's fetchnumpy; NumPy would forget the mask
        masked, y = np.ma.getmaskarray(y), np.array(y.data, dtype=object)
        y[masked] = None
    plain = on_host(y, "y")
    values = np.asarray(plain)
    if values.dtype.kind in "US" and not hasattr(plain, "dtype"):
        return np.asarray(y, dtype=object)  # a list of text and NaN or -1 would all become text
    if values.dtype.kind == "O":
        kinds = {type(value) for value in values.ravel()}
        if type(None) in kinds and kinds <= {float, np.float64, np.float32, type(None)}:
            values = values.astype(np.float64)
    absent = np.isnan(values) if values.dtype.kind == "f" else np.zeros(0, dtype=bool)
    if absent.any() and (values[~absent] == np.floor(values[~absent])).all():
        with np.errstate(invalid="ignore"):
            whole = np.where(absent, -1, values).astype(np.int64)
        if (whole[~absent] == values[~absent]).all():  # neither infinite nor out of range
            return whole
    return values


def unlabelled(values: np.ndarray) -> np.ndarray:
    """Tell which entries mean "no label".  (n,) → (n,) of bool."""
    kind = values.dtype.kind
    if kind == "b":
        return np.zeros(len(values), dtype=bool)
    if kind in "iu":
        return np.asarray(values == -1)
    if kind == "f":
        return np.asarray(np.isnan(values) | (values == -1))
    if kind in "US":
        return np.isin(values, np.array(["", "-1"], dtype=values.dtype.kind))
    return np.fromiter(map(_means_unlabelled, values), dtype=bool, count=len(values))


def _means_unlabelled(value: Any) -> bool:
    if value is None or value is False or value is True:
        return value is None
    if isinstance(value, str):
        return value in ("", "-1")
    try:
        return bool(value != value) or bool(value == -1)
    except TypeError:  # pandas.NA refuses to be compared
        return True


def n_columns(y: Any) -> int:
    """Columns of a table of label distributions; 1 for anything else."""
    shape: tuple[int, ...] = getattr(y, "shape", ())
    if isinstance(y, (list, tuple)) and len(y) and isinstance(y[0], (list, tuple, np.ndarray)):
        shape = np.shape(y)
    return int(shape[1]) if len(shape) == 2 else 1


def as_column(y: Any) -> np.ndarray:
    """One-dimensional array of labels; a single column is accepted, as scikit-learn does."""
    if y is None:
        raise LabelError(
            "fit requires y to be passed, but the target y is None; give one label a row, "
            "with -1, None, NaN or '' where the label is unknown."
        )
    values = label_array(y)
    if values.ndim == 2 and values.shape[1] == 1:
        import warnings

        from sklearn.exceptions import DataConversionWarning

        warnings.warn(
            "A column-vector y was passed when a 1d array was expected; "
            "change the shape of y to (n_samples,), for example with ravel().",
            DataConversionWarning,
            stacklevel=5,
        )
        values = values.ravel()
    if values.ndim != 1:
        raise LabelError(f"y must be one-dimensional, one label a row; got shape {values.shape}.")
    if values.dtype.kind == "c":
        raise LabelError("Complex data not supported as labels; use integers or text.")
    return values


def distinct_labels(labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sorted distinct labels and the code of each entry; mixed types sort by type, then text."""
    if labels.dtype.kind == "f":
        if not np.isfinite(labels).all():
            raise LabelError("y holds infinity; labels must be finite numbers, text or None.")
        if (labels != np.floor(labels)).any():
            raise LabelError(
                "Unknown label type: y holds numbers with fractions, such as "
                f"{labels[labels != np.floor(labels)][0]}, which are measurements and not classes; "
                "give integers or text."
            )
    if labels.dtype.kind != "O":
        return np.unique(labels, return_inverse=True)
    plain = [value.item() if isinstance(value, np.generic) else value for value in labels]
    distinct = list(dict.fromkeys(plain))
    try:
        distinct.sort()
    except TypeError:
        distinct.sort(key=lambda value: (type(value).__name__, str(value)))
    code_of = {value: code for code, value in enumerate(distinct)}
    codes = np.fromiter((code_of[value] for value in plain), dtype=np.int64, count=len(labels))
    return _narrow(distinct), codes


def _narrow(values: list[Any]) -> np.ndarray:
    """An array of the values' own type where they share one, else of objects."""
    kinds = {type(value) for value in values}
    if len(kinds) == 1 and kinds <= {str, int, bool, float}:
        return np.array(values)
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column


def class_names(classes: Any, n_classes: int) -> np.ndarray:
    """Check the names of the columns of label distributions."""
    if classes is None:
        return np.arange(n_classes)
    values = np.asarray(classes)
    if values.dtype.kind in "US" and not hasattr(classes, "dtype"):
        values = _narrow(list(classes))
    if values.shape != (n_classes,) or len(set(values.tolist())) < n_classes:
        raise ParameterError(
            f"classes={classes!r} cannot be used; give {n_classes} different names, one for each "
            "column of y."
        )
    return values


def read_distributions(y: Any, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of a table that hold a label distribution, (l,), and these, adding up to 1, (l, c)."""
    table = y.tocsr() if sparse.issparse(y) else np.asarray(on_host(y, "y"))
    if table.shape[0] != n_rows:
        raise LabelError(
            f"y has {table.shape[0]:,} rows of label distributions but X has {n_rows:,} rows; give "
            "one distribution a row, with zeros or NaN where the label is unknown."
        )
    if table.dtype.kind not in "biuf":
        try:
            table = table.astype(np.float64)
        except (TypeError, ValueError):
            raise LabelError(
                f"y has shape {table.shape} and holds {table.dtype}; a table is taken as label "
                "distributions, which are numbers of 0 or more. Give one label a row otherwise."
            ) from None
    rows, parts = [np.empty(0, dtype=np.int64)], [np.empty((0, table.shape[1]))]
    for start in range(0, n_rows, PIECE_ROWS):  # never a second table of all rows
        piece = table[start : start + PIECE_ROWS]
        indices = _distribution_rows(piece, start)
        known = piece[indices]
        rows.append(start + indices)
        parts.append(np.asarray(known.toarray() if sparse.issparse(known) else known, np.float64))
    known_rows, shares = np.concatenate(rows), np.concatenate(parts)
    sums = shares.sum(axis=1, keepdims=True)
    # Zeros and ones alone are classes or tags: a table of shares or votes has other numbers too.
    if (sums > 1).any() and ((shares == 0) | (shares == 1)).all():
        several = np.flatnonzero(sums > 1)
        raise LabelError(
            f"y holds zeros and ones only, and {len(several):,} of {len(known_rows):,} labelled "
            f"rows have several ones, such as row {known_rows[several[0]]:,}. Give one class a "
            "row; divide each row by its sum for a distribution; several tags a row are not "
            "supported yet."
        )
    return known_rows, shares / sums


def _distribution_rows(piece: Any, start: int) -> np.ndarray:
    """Rows of a piece of a table that hold a label distribution."""
    if sparse.issparse(piece):
        piece = piece.copy()
        piece.eliminate_zeros()
        used = np.flatnonzero(np.diff(piece.indptr))
        return used[_distribution_rows(piece[used].toarray(), start)] if len(used) else used
    empty = np.isnan(piece).all(axis=1) | (piece == 0).all(axis=1)
    bad = ~empty & (~np.isfinite(piece) | (piece < 0)).any(axis=1)
    if bad.any():
        first = int(np.flatnonzero(bad)[0])
        raise LabelError(
            f"y has no label distribution in row {start + first:,}: {piece[first].tolist()[:10]}. "
            "Give numbers of 0 or more for each class, or zeros or NaN throughout where the label "
            "is unknown."
        )
    return np.flatnonzero(~empty)


def given_weights(sample_weight: Any, rows: np.ndarray, n_rows: int) -> np.ndarray:
    """Check weights and return those of the labelled rows.  (l,)."""
    sample_weight = on_host(sample_weight, "sample_weight")
    try:
        values = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError):
        values = np.empty((0, 0))
    if values.ndim == 0 and np.isfinite(values):
        values = np.broadcast_to(values, (n_rows,))
    if values.shape != (n_rows,):
        raise LabelError(
            f"sample_weight has shape {np.shape(sample_weight)}, but must be 1D with {n_rows:,} "
            "numbers, one a row."
        )
    check_weights(values[rows], rows)
    return values[rows]


def check_weights(weights: np.ndarray, rows: np.ndarray) -> None:
    """Refuse weights below zero, NaN, infinity, and what is as good as that in sums of squares."""
    bad = np.flatnonzero(~((weights <= MOST_WEIGHT) & (weights >= 0)))
    if len(bad):
        raise LabelError(
            f"the label of row {int(rows[bad[0]]):,} has weight {float(weights[bad[0]])}; give "
            f"finite weights from 0 (which leaves the label out) to {MOST_WEIGHT:g}."
        )
