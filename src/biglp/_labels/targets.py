"""Measured targets of some rows, for regression: which rows have them, and what goes into the sums.

A row is unlabelled when its targets are NaN, or its weight is zero.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from biglp._core.arrays import on_host
from biglp._core.errors import LabelError
from biglp._labels.labels import given_weights

LARGEST = 1e150
"""Targets are squared."""


@dataclass(frozen=True)
class Targets:
    """The l rows of a data set whose q targets are known.

    ``values`` are in units of the weighted ``spread`` of all known rows around their ``mean``.
    """

    rows: np.ndarray  # (l,), increasing
    values: np.ndarray  # (l, q)
    weights: np.ndarray  # (l,), above 0
    n_rows: int  # known or not
    mean: np.ndarray  # (q,)
    spread: np.ndarray  # (q,)

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

    @property
    def by_people(self) -> Targets:
        """All of them: numbers are not guessed from names."""
        return self

    def own(self, start: int, stop: int) -> None:
        """Nothing: a row's own target counts through its features alone, as for a new row."""

    def targets_within(self, start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        """Known rows between two rows, counted from ``start``, and their columns."""
        first, last = np.searchsorted(self.rows, [start, stop])
        part = self.take(np.arange(first, last))
        return part.rows - start, part.columns

    def take(self, chosen: np.ndarray) -> Targets:
        """Some of the known rows, by their index among them, increasing."""
        return replace(
            self,
            rows=self.rows[chosen],
            values=self.values[chosen],
            weights=self.weights[chosen],
        )


def encode_targets(y: Any, n_rows: int, sample_weight: Any = None) -> Targets:
    """Find the rows whose targets, (n_rows,) or (n_rows, q), are numbers and not NaN."""
    if y is None:
        raise LabelError(
            "fit requires y to be passed, but the target y is None; give one number a row, NaN "
            "where it is unknown."
        )
    table = np.asarray(on_host(y, "y"))
    if table.dtype.kind == "c":
        raise LabelError("Complex data not supported as targets; use real numbers.")
    try:
        table = table.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise LabelError(
            f"y holds {table.dtype} that are no numbers ({error}); regression needs numbers, NaN "
            "where unknown. For classes use LowRankLabelPropagation."
        ) from None
    if table.ndim == 1:
        table = table[:, None]
    if table.ndim != 2 or table.shape[1] == 0:
        raise LabelError(
            f"y must have one column, or one for each target; got shape {table.shape}."
        )
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
