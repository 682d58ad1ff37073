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
from biglp._core.errors import LabelError, LabelWarning, ParameterError
from biglp._labels.values import (
    as_column,
    check_weights,
    class_names,
    distinct_labels,
    given_weights,
    label_array,
    n_columns,
    read_distributions,
    unlabelled,
)


class OwnLabels(NamedTuple):
    """Labelled rows of a block, counted from its first, (l,), with distributions, (l, c)."""

    rows: np.ndarray
    shares: np.ndarray
    weights: np.ndarray


@dataclass(frozen=True)
class Labels:
    """The l labelled rows of a data set, and its c classes.

    A label of weight 2 is a label twice; without ``weights`` all weigh 1. ``codes`` are positions
    in ``classes``, of a label distribution the likeliest; without ``distribution`` all is on them.
    """

    classes: np.ndarray  # (c,), sorted
    rows: np.ndarray  # (l,), increasing
    codes: np.ndarray  # (l,)
    n_rows: int  # labelled or not
    weights: np.ndarray | None = None  # (l,), above 0
    distribution: np.ndarray | None = None  # (l, c), adding up to 1

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
        """All that is known about the labelled rows between two rows."""
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
        """Some of the labelled rows, by their index among them, increasing."""
        return replace(
            self,
            rows=self.rows[chosen],
            codes=self.codes[chosen],
            weights=None if self.weights is None else self.weights[chosen],
            distribution=None if self.distribution is None else self.distribution[chosen],
        )


def encode_labels(y: Any, n_rows: int, sample_weight: Any = None, classes: Any = None) -> Labels:
    """Find the classes and the labelled rows in ``y``.

    ``y`` holds labels, (n_rows,), or label distributions, (n_rows, c), also as a sparse matrix;
    their columns stand for ``classes``, 0 to c - 1 by default. Weights of unlabelled rows are not
    looked at.
    """
    if n_columns(y) > 1:
        names = class_names(classes, n_columns(y))
        rows, shares = read_distributions(y, n_rows)
        if not len(rows):
            raise _no_labels(n_rows)
        labels = Labels(names, rows, shares.argmax(axis=1), n_rows)
        if not ((shares == 0) | (shares == 1)).all():  # else hard labels, written as a table
            labels = replace(labels, distribution=shares)
        if sample_weight is not None:
            labels = weighted(labels, given_weights(sample_weight, labels.rows, n_rows))
        empty = labels.classes[labels.counts == 0].tolist()
        if empty:
            raise LabelError(
                f"y gives class {empty[0]!r} no share in any of the {len(labels.rows):,} labelled "
                f"rows ({len(empty)} of {labels.n_classes} classes have none), so nothing is known "
                "about it; label a row of it, or leave its column out of y."
            )
        return labels
    if classes is not None:
        raise ParameterError(
            "classes= says what the columns of label distributions stand for, but y has one label "
            "a row, which names its class; leave classes out."
        )
    tensor = device_tensor(y)
    if tensor is not None:  # on a GPU: only the labels that are known leave it
        if tuple(tensor.shape) != (n_rows,):
            raise LabelError(
                f"y has shape {tuple(tensor.shape)} but X has {n_rows:,} rows; give one label a "
                "row, with -1 or NaN where the label is unknown."
            )
        # NaN is not equal to itself.
        on_device = ((tensor != -1) & (tensor == tensor)).nonzero()[:, 0]
        values, rows = to_numpy(tensor[on_device]), to_numpy(on_device)
        whole = values.astype(np.int64) if values.dtype.kind == "f" else values
        values = whole if (whole == values).all() else values
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
    labels = weighted(_coded(rows, values[rows], n_rows), weights)
    if labels.n_classes < 2:
        hint = " A label of -1 counts as unlabelled: call that class something else." * bool(
            np.isin(values[unlabelled(values)].astype(str), ["-1", "-1.0"]).any()
        )
        raise _one_class(labels, hint)
    return labels


def labels_from_pairs(
    rows: np.ndarray, values: np.ndarray, n_rows: int, weights: np.ndarray | None = None
) -> Labels:
    """Find the classes of rows, (l,), increasing, whose labels, (l,), are known.

    With weights, (l,), a row may occur several times: equal labels add their weights up, and
    different ones make a label distribution.
    """
    if weights is not None:
        check_weights(weights, rows)
        rows, values, weights = rows[weights > 0], values[weights > 0], weights[weights > 0]
    labels = _coded(rows, values, n_rows)
    if labels.n_classes < 2:
        raise _one_class(labels)
    if weights is None or (np.diff(rows) > 0).all():
        return weighted(labels, weights)
    distinct, indices = np.unique(labels.rows, return_inverse=True)
    sums = np.zeros((len(distinct), labels.n_classes))
    np.add.at(sums, (indices, labels.codes), weights)
    totals = sums.sum(axis=1)
    soft = bool(((sums > 0).sum(axis=1) > 1).any())
    distribution = sums / totals[:, None] if soft else None
    labels = Labels(labels.classes, distinct, sums.argmax(axis=1), n_rows, None, distribution)
    # Shares such as 0.3 + 0.7 are meant to weigh 1, and do but for rounding.
    return weighted(labels, np.where(np.abs(totals - 1.0) < 1e-9, 1.0, totals))


def weighted(labels: Labels, weights: np.ndarray | None) -> Labels:
    """Give labels weights; a weight of zero takes a label away, and weights of 1 are none."""
    if weights is None or (weights == 1.0).all():
        return labels
    known = np.flatnonzero(weights > 0)
    if not len(known):
        raise _no_labels(labels.n_rows)
    return replace(labels.take(known), weights=weights[known])


def _coded(rows: np.ndarray, values: np.ndarray, n_rows: int) -> Labels:
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


# --------------------------------------------------------------------------------------------------
# What people write where a row has no label, and labels that look as if they meant that.


_WORDS = """unknown, unk, none, null, nil, nan, na, n/a, n.a., ?, ??, -, --, ., unlabeled,
unlabelled, nolabel, no label, not labeled, not labelled, not available, not applicable, missing,
undefined, unspecified, unassigned, tbd, todo, to do, empty, blank"""
LOOKS_UNLABELLED = frozenset(word.strip() for word in _WORDS.split(","))
"""What people write. A class may be called so, too: the user is asked."""
NEARLY_ALL = 0.95
"""Share of all rows from which on a label is suspected to mean "no label"."""
FEWEST_ROWS = 50
"""Rows below which nearly all of them are too few to suspect anything."""
MOST_SHOWN = 5


def suspicions(labels: Labels, *, names: bool = True) -> list[LabelWarning]:
    """Classes that may stand for "no label", by their sizes and, if so wanted, their names."""
    warnings, counts, n_rows = list[str](), labels.rows_each.tolist(), labels.n_rows
    classes = labels.classes.tolist()
    for name, count in zip(classes, counts, strict=True):
        if names and looks_unlabelled(name):
            warnings.append(
                f"{count:,} of {n_rows:,} rows have the label {name!r}, which usually "
                "means that there is none, and is taken as a class here. If these rows have no "
                f"label, give --unlabelled {_quoted(name)} (in Python None or -1 for them); if "
                "it is a class, --unlabelled -1 says so."
            )
    largest = max(range(len(counts)), key=counts.__getitem__)
    name, share = classes[largest], counts[largest] / n_rows
    if n_rows >= FEWEST_ROWS and share > NEARLY_ALL and not looks_unlabelled(name):
        warnings.append(
            f"{share:.1%} of all {n_rows:,} rows have the label {name!r}. If it means "
            f"that a row has no label, give --unlabelled {_quoted(name)} (in Python None or "
            "-1 for them)."
        )
    alike: dict[str, list[str]] = {}
    for name in classes:
        if isinstance(name, str):
            alike.setdefault(" ".join(name.casefold().split()), []).append(name)
    several = [spellings for spellings in alike.values() if len(spellings) > 1]
    if several:
        shown = "; ".join(", ".join(map(repr, spellings)) for spellings in several[:MOST_SHOWN])
        more = f" and {len(several) - MOST_SHOWN} more" if len(several) > MOST_SHOWN else ""
        warnings.append(
            f"classes that differ in capital letters or blanks only are taken as different ones: "
            f"{shown}{more}. If they mean the same, write them alike."
        )
    return list(map(LabelWarning, warnings))


def looks_unlabelled(value: Any) -> bool:
    """Whether a class has a name that usually means "no label"."""
    if not isinstance(value, str):
        return False
    plain = value.strip().casefold().strip("<>()[]{}\"'")
    return " ".join(plain.replace("_", " ").split()) in LOOKS_UNLABELLED


def _quoted(value: Any) -> str:
    text = str(value)
    return text if text.replace("_", "").replace("-", "").isalnum() else f"{text!r}"


# --------------------------------------------------------------------------------------------------
# Adding labels to those that are known, correcting them, and taking them back.


def merged_labels(labels: Labels, rows: Any, values: Any) -> tuple[Labels, Labels | None]:
    """Join labels (q,) of rows (q,) to those that are known; -1, None, NaN or "" takes one away.

    Also returns the rows that had no label before; None when an earlier label changed or went.
    """
    if labels.distribution is not None:
        raise ParameterError(
            "update_labels takes one label a row, but this model was fitted on label "
            "distributions; fit it again with all labels."
        )
    indices, given = _row_numbers(rows, labels.n_rows), np.atleast_1d(label_array(values))
    if given.ndim != 1:
        raise LabelError(f"labels must be one-dimensional; got shape {given.shape}.")
    if len(given) != len(indices):
        raise LabelError(
            f"{len(given):,} labels were given for {len(indices):,} rows; give one label a row."
        )
    order = np.argsort(indices, kind="stable")
    indices, given = indices[order], given[order]
    stays = ~np.isin(labels.rows, indices)  # what is said now replaces what was said before
    named = ~unlabelled(given)
    all_rows = np.concatenate([labels.rows[stays], indices[named]])
    all_values = _joined(labels.classes[labels.codes[stays]], given[named])
    order = np.argsort(all_rows, kind="stable")
    merged = labels_from_pairs(all_rows[order], all_values[order], labels.n_rows)
    if labels.weights is not None:  # new labels count once
        weights = np.concatenate([labels.weights[stays], np.ones(int(named.sum()))])
        merged = replace(merged, weights=weights[order])
    if not stays.all() and not _only_repeats(labels, merged):
        return merged, None
    fresh = ~np.isin(merged.rows, labels.rows, assume_unique=True)
    return merged, merged.take(np.flatnonzero(fresh))


def _row_numbers(rows: Any, n_rows: int) -> np.ndarray:
    """Row numbers as int64; refused unless distinct whole numbers from 0 to ``n_rows`` - 1."""
    numbers = np.atleast_1d(np.asarray(rows))
    if numbers.size == 0:
        return np.empty(0, dtype=np.int64)
    if numbers.ndim != 1 or numbers.dtype.kind not in "iu":
        raise ParameterError(
            f"rows must be row numbers, one-dimensional and whole; got an array of "
            f"{numbers.dtype} with shape {numbers.shape}."
        )
    if int(numbers.min()) < 0 or int(numbers.max()) >= n_rows:
        wrong = numbers[(numbers < 0) | (numbers >= n_rows)][0]
        raise ParameterError(
            f"rows holds {wrong:,}, but the training rows are numbered 0 to {n_rows - 1:,}."
        )
    numbers = numbers.astype(np.int64)
    distinct, counts = np.unique(numbers, return_counts=True)
    if len(distinct) < len(numbers):
        raise ParameterError(
            f"rows holds row {distinct[counts > 1][0]:,} more than once; give each row once."
        )
    return numbers


def _only_repeats(before: Labels, after: Labels) -> bool:
    """Whether every earlier label is still there and the same."""
    where = np.searchsorted(after.rows, before.rows)
    if (where >= len(after.rows)).any() or (after.rows[where] != before.rows).any():
        return False
    same = before.classes[before.codes] == after.classes[after.codes[where]]
    if before.weights is not None and after.weights is not None:
        return bool(np.all(same) and np.all(before.weights == after.weights[where]))
    return bool(np.all(same))


def _joined(known: np.ndarray, given: np.ndarray) -> np.ndarray:
    """One array of labels, of the type of the known ones where that holds the new ones."""
    if len(given) == 0 or known.dtype.kind == "O":
        return np.concatenate([known, given.astype(known.dtype)]) if len(given) else known
    plain = np.array(given.tolist()) if given.dtype.kind == "O" else given
    is_text = plain.dtype.kind in "US"
    if is_text == (known.dtype.kind in "US") and plain.dtype.kind != "O":
        if is_text:
            return np.concatenate([known, plain])
        if (known.dtype.kind in "mM") != (plain.dtype.kind in "mM"):
            raise LabelError(
                f"the new labels are of type {plain.dtype} and the classes of type {known.dtype}; "
                "give labels of the same kind."
            )
        with np.errstate(invalid="ignore"):
            cast = plain.astype(known.dtype)
        return np.concatenate([known, cast if (cast == plain).all() else plain])
    return np.concatenate([known.astype(object), given.astype(object)])
