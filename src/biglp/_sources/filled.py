"""Missing values of arrays replaced by the mean of their feature."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from biglp._core.errors import BadRowsError


def fill(rows: np.ndarray, means: np.ndarray) -> np.ndarray:
    """Put the mean of its feature in the place of each NaN."""
    missing = np.isnan(rows)
    return np.where(missing, means, rows) if missing.any() else rows


def means_of(pieces: Iterable[np.ndarray], n_features: int, name: str) -> np.ndarray:
    """Mean of what is there of each feature, over all pieces of the rows.  (m,)."""
    sums, counts = np.zeros(n_features), np.zeros(n_features)
    for rows in pieces:
        there = ~np.isnan(rows)
        with np.errstate(over="ignore", invalid="ignore"):  # infinite rows are refused later
            sums += np.sum(rows, axis=0, where=there, dtype=np.float64)
        counts += there.sum(axis=0)
    empty = np.flatnonzero(counts == 0)
    if empty.size:
        raise BadRowsError(
            f"{name}: features {', '.join(map(str, empty[:8]))} (counted from 0) have no "
            "value at all, so there is no mean to fill them with; leave them out."
        )
    return np.asarray(sums / counts)
