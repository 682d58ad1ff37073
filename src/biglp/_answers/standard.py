"""Centre and spread of features, for models that learn from the labelled rows alone."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from biglp._core.arrays import Rows

Standard = tuple[np.ndarray, np.ndarray]
"""Centre and spread of every feature."""


def centre_and_spread(rows: Rows, *, one_scale: bool = False) -> Standard:
    """Mean (zero for sparse rows) and spread of each feature; a constant feature has spread 1.

    With ``one_scale`` the features share their mean spread: principal components must not be made
    equally large, because the last of them are mostly noise.
    """
    if sparse.issparse(rows):
        square = np.asarray(rows.multiply(rows).mean(axis=0)).ravel()
        mean = np.asarray(rows.mean(axis=0)).ravel()
        spread = np.sqrt(np.maximum(square - mean**2, 0.0))
        centre = np.zeros_like(mean)
    else:
        centre, spread = rows.mean(axis=0), rows.std(axis=0)
    if one_scale:
        spread = np.full_like(spread, np.sqrt((spread**2).mean()))
    return centre, np.where(spread > 1e-12 * (spread.max() or 1.0), spread, 1.0)


def to_float64(rows: Rows) -> Rows:
    """Rows in the precision of plain models."""
    return rows.astype(np.float64) if sparse.issparse(rows) else np.asarray(rows, dtype=np.float64)
