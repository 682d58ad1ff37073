"""Labels of any type: which classes there are, which rows are labelled, by what and how surely.

A row is unlabelled when its label is -1 (as a number or as text), None, NaN or the empty string,
when its label distribution is all zeros or NaN, or when its weight is zero. Only labelled rows are
kept, so that a handful of labels is a handful of numbers however many rows there are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from biglp._core.arrays import device_tensor, to_numpy
from biglp._core.errors import LabelError, ParameterError
from biglp._labels.values import (
    as_column,
    check_weights,
    class_names,
    distinct_labels,
    given_weights,
    n_columns,
    read_distributions,
    unlabelled,
)


class OwnLabels(NamedTuple):
    """The labels of a block's rows.

    Attributes
    ----------
    rows : ndarray of shape (l,)
        Labelled rows, counted from the block's first.
    shares : ndarray of shape (l, c)
        Their label distributions; each row adds up to 1.
    weights : ndarray of shape (l,)
        How much each label counts.
    """

    rows: np.ndarray
    shares: np.ndarray
    weights: np.ndarray


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
        Position in ``classes`` of each labelled row's label; the likeliest of a distribution.
    n_rows : int
        Number of rows, labelled or not.
    weights : ndarray of shape (l,), optional
        Confidence of each label, above 0; 1 by default. A label of weight 2 is a label twice.
    distribution : ndarray of shape (l, c), optional
        Label distributions, adding up to 1; by default all is on ``codes``.
    """

    classes: np.ndarray
    rows: np.ndarray
    codes: np.ndarray
    n_rows: int
    weights: np.ndarray | None = None
    distribution: np.ndarray | None = None

    @property
    def n_classes(self) -> int:
        """Number of classes c."""
        return len(self.classes)

    @property
    def n_columns(self) -> int:
        """Columns of Y, which is one for each class."""
        return self.n_classes

    @property
    def counts(self) -> np.ndarray:
        """Weight of the labels of each class: their number, where none has a weight.  (c,)."""
        if self.distribution is None:
            return np.bincount(self.codes, self.weights, minlength=self.n_classes)
        weights = np.ones(len(self.rows)) if self.weights is None else self.weights
        return np.asarray(self.distribution.T @ weights)

    @property
    def rows_each(self) -> np.ndarray:
        """Labelled rows of each class, whatever they weigh.  (c,)."""
        return np.bincount(self.codes, minlength=self.n_classes)

    @property
    def given(self) -> np.ndarray | None:
        """Labelled rows of w·Y where they are not simply one-hot.  (l, c)."""
        if self.weights is None and self.distribution is None:
            return None
        return self.targets_within(0, self.n_rows)[1]

    def own(self, start: int, stop: int) -> OwnLabels:
        """Return all that is known about the labelled rows between two rows."""
        first, last = np.searchsorted(self.rows, [start, stop])
        shares, weights = self.distribution, self.weights
        return OwnLabels(
            self.rows[first:last] - start,
            self.one_hot(self.codes[first:last]) if shares is None else shares[first:last],
            np.ones(last - first) if weights is None else weights[first:last],
        )

    def targets_within(self, start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        """Labelled rows between two rows, counted from ``start``, and their rows of w·Y."""
        rows, shares, weights = self.own(start, stop)
        return rows, shares if self.weights is None else shares * weights[:, None]

    def one_hot(self, codes: np.ndarray) -> np.ndarray:
        """Rows of Y for class codes.  (l,) → (l, c)."""
        return np.eye(self.n_classes)[codes]

    def take(self, chosen: np.ndarray) -> Labels:
        """Some of the labelled rows, by their place among them, increasing."""
        return replace(
            self,
            rows=self.rows[chosen],
            codes=self.codes[chosen],
            weights=None if self.weights is None else self.weights[chosen],
            distribution=None if self.distribution is None else self.distribution[chosen],
        )


def encode_labels(y: Any, n_rows: int, sample_weight: Any = None, classes: Any = None) -> Labels:
    """Find the classes and the labelled rows in ``y``.

    Parameters
    ----------
    y : array of shape (n_rows,) or (n_rows, c)
        Labels, or label distributions (also as a sparse matrix).
    n_rows : int
        Rows that there must be labels for.
    sample_weight : array of shape (n_rows,), optional
        Weights; those of unlabelled rows are not looked at.
    classes : array of shape (c,), optional
        What the columns of label distributions stand for; 0 to c − 1 by default.

    Raises
    ------
    LabelError
        When ``y`` has another length than X, holds no label, or labels of one class only.
    """
    if n_columns(y) > 1:
        labels = _from_distributions(y, n_rows, classes)
        if sample_weight is not None:
            labels = weighted(labels, given_weights(sample_weight, labels.rows, n_rows))
        _refuse_empty_classes(labels)
        return labels
    if classes is not None:
        raise ParameterError(
            "classes= says what the columns of label distributions stand for, but y has one label "
            "a row, which names its class; leave classes out."
        )
    tensor = device_tensor(y)
    if tensor is not None:
        rows, values = _known_on_device(tensor, n_rows)
        weights = None if sample_weight is None else given_weights(sample_weight, rows, n_rows)
        return labels_from_pairs(rows, values, n_rows, weights)
    values = as_column(y)
    if len(values) != n_rows:
        raise LabelError(
            f"y has {len(values):,} entries but X has {n_rows:,} rows; give one label a row, "
            "with -1, None, NaN or '' where the label is unknown."
        )
    rows = np.flatnonzero(~unlabelled(values))
    weights = None
    if sample_weight is not None:
        weights = given_weights(sample_weight, rows, n_rows)
        rows, weights = rows[weights > 0], weights[weights > 0]
    labels = weighted(_labels(rows, values[rows], n_rows), weights)
    if labels.n_classes < 2:
        hint = " A label of -1 counts as unlabelled: call that class something else." * bool(
            np.isin(values[unlabelled(values)].astype(str), ["-1", "-1.0"]).any()
        )
        raise _one_class(labels, hint)
    return labels


def labels_from_pairs(
    rows: np.ndarray, values: np.ndarray, n_rows: int, weights: np.ndarray | None = None
) -> Labels:
    """Find the classes of rows whose labels are known.

    Parameters
    ----------
    rows : ndarray of shape (l,)
        Labelled rows, increasing.
    values : ndarray of shape (l,)
        Their labels, none of which means "no label".
    n_rows : int
        Number of rows, labelled or not.
    weights : ndarray of shape (l,), optional
        Their weights. With weights a row may occur several times: equal labels add their weights
        up, and different ones make a label distribution.

    Raises
    ------
    LabelError
        When there is no label, or labels of one class only.
    """
    if weights is not None:
        check_weights(weights, rows)
        rows, values, weights = rows[weights > 0], values[weights > 0], weights[weights > 0]
    labels = _labels(rows, values, n_rows)
    if labels.n_classes < 2:
        raise _one_class(labels)
    if weights is None:
        return labels
    return weighted(labels, weights) if (np.diff(rows) > 0).all() else _gathered(labels, weights)


def _known_on_device(y: Any, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Labelled rows and their labels, of labels on a GPU: only these leave it."""
    if tuple(y.shape) != (n_rows,):
        raise LabelError(
            f"y has shape {tuple(y.shape)} but X has {n_rows:,} rows; give one label a row, with "
            "-1 or NaN where the label is unknown."
        )
    known = (y != -1) & (y == y)  # NaN is not equal to itself
    rows = known.nonzero()[:, 0]
    values = to_numpy(y[rows])
    whole = values.astype(np.int64) if values.dtype.kind == "f" else values
    return to_numpy(rows), whole if (whole == values).all() else values


def weighted(labels: Labels, weights: np.ndarray | None) -> Labels:
    """Give labels weights; a weight of zero takes a label away, and weights of 1 are none."""
    if weights is None or (weights == 1.0).all():
        return labels
    kept = np.flatnonzero(weights > 0)
    if not len(kept):
        raise _no_labels(labels.n_rows)
    return replace(labels.take(kept), weights=weights[kept])


def _gathered(labels: Labels, weights: np.ndarray) -> Labels:
    """Bring the labels of rows that occur several times together."""
    rows, places = np.unique(labels.rows, return_inverse=True)
    sums = np.zeros((len(rows), labels.n_classes))
    np.add.at(sums, (places, labels.codes), weights)
    totals = sums.sum(axis=1)
    codes = sums.argmax(axis=1)
    soft = bool(((sums > 0).sum(axis=1) > 1).any())
    distribution = sums / totals[:, None] if soft else None
    found = Labels(labels.classes, rows, codes, labels.n_rows, distribution=distribution)
    # Shares such as 0.3 + 0.7 are meant to weigh 1, and do but for rounding.
    return weighted(found, np.where(np.abs(totals - 1.0) < 1e-9, 1.0, totals))


def _from_distributions(y: Any, n_rows: int, classes: Any) -> Labels:
    names = class_names(classes, n_columns(y))
    rows, shares = read_distributions(y, n_rows)
    if not len(rows):
        raise _no_labels(n_rows)
    codes = shares.argmax(axis=1)
    if ((shares == 0) | (shares == 1)).all():  # hard labels, written as a table
        return Labels(names, rows, codes, n_rows)
    return Labels(names, rows, codes, n_rows, distribution=shares)


def _refuse_empty_classes(labels: Labels) -> None:
    empty = labels.classes[labels.counts == 0].tolist()
    if empty:
        raise LabelError(
            f"y gives class {empty[0]!r} no share in any of the {len(labels.rows):,} labelled rows "
            f"({len(empty)} of {labels.n_classes} classes have none), so nothing is known about "
            "it; label a row of it, or leave its column out of y."
        )


def _labels(rows: np.ndarray, values: np.ndarray, n_rows: int) -> Labels:
    if len(rows) == 0:
        raise _no_labels(n_rows)
    classes, codes = distinct_labels(values)
    return Labels(classes, rows, codes, n_rows)


def _no_labels(n_rows: int) -> LabelError:
    return LabelError(
        f"none of the {n_rows:,} rows has a label (all are -1, None, NaN or '', or of weight "
        "zero); label at least one row of each of two classes."
    )


def _one_class(labels: Labels, hint: str = "") -> LabelError:
    return LabelError(
        f"only one class, {labels.classes.tolist()[0]!r}, is among the {len(labels.rows):,} "
        f"labelled rows; the labels must hold at least two classes.{hint}"
    )
