"""Adding labels to those that are known, correcting them, and taking them back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from biglp._core.errors import LabelError, ParameterError
from biglp._labels.columns import label_array
from biglp._labels.labels import Labels, labels_from_pairs
from biglp._labels.values import unlabelled


def merged_labels(labels: Labels, rows: Any, values: Any) -> tuple[Labels, Labels | None]:
    """Join new labels to old ones.

    Parameters
    ----------
    labels : Labels
        What is known.
    rows : array of shape (q,)
        Row numbers, counted from 0.
    values : array of shape (q,)
        Their labels; -1, None, NaN or "" takes a row's label away.

    Returns
    -------
    merged : Labels
    added : Labels or None
        The rows that had no label before; None when an earlier label changed or went.
    """
    if labels.distribution is not None:
        raise ParameterError(
            "update_labels takes one label a row, but this model was fitted on label "
            "distributions; fit it again with all labels."
        )
    places = checked_rows(rows, labels.n_rows)
    given = _column(values)
    if len(given) != len(places):
        raise LabelError(
            f"{len(given):,} labels were given for {len(places):,} rows; give one label a row."
        )
    order = np.argsort(places, kind="stable")
    places, given = places[order], given[order]
    known, position = _known(labels, places)
    kept = np.ones(len(labels.rows), dtype=bool)
    kept[position[known]] = False  # what is said now replaces what was said before
    named = ~unlabelled(given)
    all_rows = np.concatenate([labels.rows[kept], places[named]])
    all_values = _joined(labels.classes[labels.codes[kept]], given[named])
    order = np.argsort(all_rows, kind="stable")
    merged = labels_from_pairs(all_rows[order], all_values[order], labels.n_rows)
    if labels.weights is not None:  # new labels count once
        weights = np.concatenate([labels.weights[kept], np.ones(int(named.sum()))])
        merged = replace(merged, weights=weights[order])
    if not kept.all() and not _only_repeats(labels, merged):
        return merged, None
    fresh = ~np.isin(merged.rows, labels.rows, assume_unique=True)
    return merged, merged.take(np.flatnonzero(fresh))


def checked_rows(rows: Any, n_rows: int) -> np.ndarray:
    """Row numbers as int64.

    Raises
    ------
    ParameterError
        When they are not distinct whole numbers from 0 to ``n_rows`` - 1.
    """
    places = np.atleast_1d(np.asarray(rows))
    if places.size == 0:
        return np.empty(0, dtype=np.int64)
    if places.ndim != 1 or places.dtype.kind not in "iu":
        raise ParameterError(
            f"rows must be row numbers, one-dimensional and whole; got an array of "
            f"{places.dtype} with shape {places.shape}."
        )
    if int(places.min()) < 0 or int(places.max()) >= n_rows:
        wrong = places[(places < 0) | (places >= n_rows)][0]
        raise ParameterError(
            f"rows holds {wrong:,}, but the training rows are numbered 0 to {n_rows - 1:,}."
        )
    places = places.astype(np.int64)
    distinct, counts = np.unique(places, return_counts=True)
    if len(distinct) < len(places):
        raise ParameterError(
            f"rows holds row {distinct[counts > 1][0]:,} more than once; give each row once."
        )
    return places


def _known(labels: Labels, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Tell which rows have a label already, and where it is."""
    position = np.searchsorted(labels.rows, places)
    inside = position < len(labels.rows)
    known = inside.copy()
    known[inside] = labels.rows[position[inside]] == places[inside]
    return known, position


def _only_repeats(before: Labels, after: Labels) -> bool:
    """Whether every earlier label is still there and the same."""
    where = np.searchsorted(after.rows, before.rows)
    if (where >= len(after.rows)).any() or (after.rows[where] != before.rows).any():
        return False
    then, now = before.classes[before.codes], after.classes[after.codes[where]]
    if before.weights is not None and after.weights is not None:
        return bool(np.all(then == now) and np.all(before.weights == after.weights[where]))
    return bool(np.all(then == now))


def _column(values: Any) -> np.ndarray:
    given = np.atleast_1d(label_array(values))
    if given.ndim != 1:
        raise LabelError(f"labels must be one-dimensional; got shape {given.shape}.")
    return given


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
