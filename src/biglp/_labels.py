"""Labels of any type: which classes there are, which rows are labelled, and by what.

A row is unlabelled when its label is -1, None, NaN or the empty string.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from biglp._errors import LabelError


@dataclass(frozen=True)
class Labels:
    """The labelled rows of a data set.

    Attributes
    ----------
    classes : ndarray of shape (c,)
        The distinct labels, sorted.
    rows : ndarray of shape (l,)
        Indices of the labelled rows, increasing.
    codes : ndarray of shape (l,)
        Position in ``classes`` of each labelled row's label.
    n_rows : int
        Number of rows, labelled or not.
    """

    classes: np.ndarray
    rows: np.ndarray
    codes: np.ndarray
    n_rows: int

    @property
    def n_classes(self) -> int:
        """Number of classes c."""
        return len(self.classes)

    @property
    def counts(self) -> np.ndarray:
        """Labelled rows of each class.  (c,)."""
        return np.bincount(self.codes, minlength=self.n_classes)

    def within(self, start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        """Labelled rows between two rows, counted from ``start``, and their class codes."""
        first, last = np.searchsorted(self.rows, [start, stop])
        return self.rows[first:last] - start, self.codes[first:last]

    def one_hot(self, codes: np.ndarray) -> np.ndarray:
        """Rows of Y for class codes.  (l,) → (l, c)."""
        return np.eye(self.n_classes)[codes]


def encode_labels(y: Any, n_rows: int) -> Labels:
    """Find the classes and the labelled rows in ``y``.

    Raises
    ------
    LabelError
        When ``y`` has another length than X, holds no label, or labels of one class only.
    """
    values = _as_column(y)
    if len(values) != n_rows:
        raise LabelError(
            f"y has {len(values):,} entries but X has {n_rows:,} rows; give one label a row, "
            "with -1, None, NaN or '' where the label is unknown."
        )
    rows = np.flatnonzero(~unlabelled(values))
    labels = _labels(rows, values[rows], n_rows)
    if labels.n_classes < 2:
        hint = " A label of -1 counts as unlabelled: call that class something else." * bool(
            values.dtype.kind in "iuf" and (values == -1).any()
        )
        raise _one_class(labels, hint)
    return labels


def labels_from_pairs(rows: np.ndarray, values: np.ndarray, n_rows: int) -> Labels:
    """Find the classes of rows whose labels are known.

    Parameters
    ----------
    rows : ndarray of shape (l,)
        Labelled rows, increasing.
    values : ndarray of shape (l,)
        Their labels, none of which means "no label".
    n_rows : int
        Number of rows, labelled or not.

    Raises
    ------
    LabelError
        When there is no label, or labels of one class only.
    """
    labels = _labels(rows, values, n_rows)
    if labels.n_classes < 2:
        raise _one_class(labels)
    return labels


def _labels(rows: np.ndarray, values: np.ndarray, n_rows: int) -> Labels:
    if len(rows) == 0:
        raise LabelError(
            f"none of the {n_rows:,} rows has a label (all are -1, None, NaN or ''); "
            "label at least one row of each of two classes."
        )
    classes, codes = _distinct(values)
    return Labels(classes, rows, codes, n_rows)


def _one_class(labels: Labels, hint: str = "") -> LabelError:
    return LabelError(
        f"only one class, {labels.classes.tolist()[0]!r}, is among the {len(labels.rows):,} "
        f"labelled rows; the labels must hold at least two classes.{hint}"
    )


def unlabelled(values: np.ndarray) -> np.ndarray:
    """Tell which entries mean "no label"."""
    kind = values.dtype.kind
    if kind == "b":
        return np.zeros(len(values), dtype=bool)
    if kind in "iu":
        return np.asarray(values == -1)
    if kind == "f":
        return np.asarray(np.isnan(values) | (values == -1))
    if kind in "US":
        return np.asarray(values == values.dtype.type(""))
    return np.fromiter(
        (_means_unlabelled(value) for value in values), dtype=bool, count=len(values)
    )


def _as_column(y: Any) -> np.ndarray:
    """One-dimensional array of labels; a single column is accepted, as scikit-learn does."""
    if y is None:
        raise LabelError(
            "fit requires y to be passed, but the target y is None; give one label a row, "
            "with -1, None, NaN or '' where the label is unknown."
        )
    values = np.asarray(y)
    if values.dtype.kind in "US" and not hasattr(y, "dtype"):
        values = np.asarray(y, dtype=object)  # a list of text and NaN or -1 would all become text
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


def _distinct(labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
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
    place = {value: code for code, value in enumerate(distinct)}
    codes = np.fromiter((place[value] for value in plain), dtype=np.int64, count=len(labels))
    return _narrow(distinct), codes


def _narrow(values: list[Any]) -> np.ndarray:
    """An array of the values' own type where they share one, else of objects."""
    kinds = {type(value) for value in values}
    if len(kinds) == 1 and kinds <= {str, int, bool, float}:
        return np.array(values)
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column


def _means_unlabelled(value: Any) -> bool:
    if value is None or value is False or value is True:
        return value is None
    if isinstance(value, str):
        return value == ""
    try:
        return bool(value != value) or bool(value == -1)
    except TypeError:  # pandas.NA refuses to be compared
        return True
