"""Measured targets of some rows, for regression: which rows have them, and what goes into the sums.

A row is unlabelled when its targets are NaN, or its weight is zero.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from biglp._core.arrays import on_host
from biglp._core.errors import LabelError
from biglp._labels.values import given_weights

LARGEST = 1e150
"""Targets are squared."""


@dataclass(frozen=True)
class Targets:
    """The rows of a data set whose targets are known.

    Attributes
    ----------
    rows : ndarray of shape (l,)
        Their indices, increasing.
    values : ndarray of shape (l, q)
        Their targets, in units of their spread around their mean.
    weights : ndarray of shape (l,)
        How much each counts; above 0.
    n_rows : int
        Number of rows, known or not.
    mean, spread : ndarrays of shape (q,)
        Weighted mean and standard deviation of each target over all known rows.
    """

    rows: np.ndarray
    values: np.ndarray
    weights: np.ndarray
    n_rows: int
    mean: np.ndarray
    spread: np.ndarray

    @property
    def classes(self) -> np.ndarray:
        """The numbers of the targets.  (q,)."""
        return np.arange(len(self.mean))

    @property
    def n_columns(self) -> int:
        """Columns that are summed: one for each target, and one for the weights."""
        return self.values.shape[1] + 1

    @property
    def columns(self) -> np.ndarray:
        """w·(y − mean)/spread of each target, and w.  (l, q + 1)."""
        return np.column_stack([self.values, np.ones(len(self.rows))]) * self.weights[:, None]

    @property
    def counts(self) -> np.ndarray:
        """Sums of the columns.  (q + 1,)."""
        return np.asarray(self.columns.sum(axis=0))

    def own(self, start: int, stop: int) -> None:
        """Nothing: a row's own target counts through its features alone, as for a new row."""

    def targets_within(self, start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        """Known rows between two rows, counted from ``start``, and their columns."""
        first, last = np.searchsorted(self.rows, [start, stop])
        part = self.take(np.arange(first, last))
        return part.rows - start, part.columns

    def take(self, chosen: np.ndarray) -> Targets:
        """Some of the known rows, by their place among them, increasing."""
        return replace(
            self,
            rows=self.rows[chosen],
            values=self.values[chosen],
            weights=self.weights[chosen],
        )


def encode_targets(y: Any, n_rows: int, sample_weight: Any = None) -> Targets:
    """Find the rows whose targets are known.

    Parameters
    ----------
    y : array of shape (n_rows,) or (n_rows, q)
        Numbers, NaN where unknown.
    n_rows : int
        Rows that there must be targets for.
    sample_weight : array of shape (n_rows,), optional
        Weights; those of unlabelled rows are not looked at.

    Raises
    ------
    LabelError
        When ``y`` is no table of numbers for all rows, or all of it is unknown.
    """
    table = _as_table(y)
    if len(table) != n_rows:
        raise LabelError(
            f"y has {len(table):,} rows but X has {n_rows:,} rows; give one target (or one row of "
            "targets) a row, NaN where it is unknown."
        )
    absent = np.isnan(table)
    rows = np.flatnonzero(~absent.all(axis=1))
    values = table[rows]
    if not np.isfinite(values).all():
        first = rows[~np.isfinite(values).all(axis=1)][0]
        raise LabelError(
            f"Input y contains infinity, or NaN beside a number, in row {first:,}: "
            f"{table[first].tolist()[:5]}. Give finite numbers, or NaN for all targets of a row."
        )
    if np.abs(values).max(initial=0.0) > LARGEST:
        first = rows[(np.abs(values) > LARGEST).any(axis=1)][0]
        raise LabelError(
            f"y is {table[first].tolist()[:5]} in row {first:,}; squares of numbers above "
            f"{LARGEST:g} cannot be computed with. Give targets in another unit."
        )
    weights = np.ones(len(rows))
    if sample_weight is not None:
        weights = given_weights(sample_weight, rows, n_rows)
        rows, values, weights = rows[weights > 0], values[weights > 0], weights[weights > 0]
    if not len(rows):
        raise LabelError(
            f"none of the {n_rows:,} rows has a target (all are NaN or of weight zero); give at "
            "least one, better a few dozen."
        )
    # Squares of tiny numbers are zero. A power of two leaves the digits of all others alone.
    unit = 2.0 ** np.frexp(np.abs(values).max())[1]
    mean = np.average(values / unit, axis=0, weights=weights)
    spread = np.sqrt(np.average((values / unit - mean) ** 2, axis=0, weights=weights))
    spread = np.where(spread > 0, spread, 1.0)
    values = (values / unit - mean) / spread
    return Targets(rows, values, weights, n_rows, mean * unit, spread * unit)


def _as_table(y: Any) -> np.ndarray:
    if y is None:
        raise LabelError(
            "fit requires y to be passed, but the target y is None; give one number a row, NaN "
            "where it is unknown."
        )
    values = np.asarray(on_host(y, "y"))
    if values.dtype.kind == "c":
        raise LabelError("Complex data not supported as targets; use real numbers.")
    try:
        values = values.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise LabelError(
            f"y holds {values.dtype} that are no numbers ({error}); regression needs numbers, NaN "
            "where unknown. For classes use LowRankLabelPropagation."
        ) from None
    if values.ndim == 1:
        return values[:, None]
    if values.ndim != 2 or values.shape[1] == 0:
        raise LabelError(
            f"y must have one column, or one for each target; got shape {values.shape}."
        )
    return values
