"""What the sweeps hand over to the small algebra: sums of r × r, r × c and r numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class GramSums:
    """Sums over all rows of the normalised features Φ̄ (n × r) and the labels Y (n × c).

    Attributes
    ----------
    gram : ndarray of shape (r, r)
        H = Φ̄ᵀΦ̄.
    targets : ndarray of shape (r, c)
        B = Φ̄ᵀY.
    totals : ndarray of shape (r,)
        t = Φ̄ᵀ1.
    counts : ndarray of shape (c,)
        Labelled rows of each class.
    n_rows : int
        Number of rows.
    n_repaired : int
        Rows whose degree had to be repaired.
    """

    gram: np.ndarray
    targets: np.ndarray
    totals: np.ndarray
    counts: np.ndarray
    n_rows: int
    n_repaired: int = 0

    def scaled(self, column_scale: np.ndarray) -> GramSums:
        """The same sums for features whose columns are multiplied by ``column_scale``."""
        return GramSums(
            self.gram * column_scale[:, None] * column_scale,
            self.targets * column_scale[:, None],
            self.totals * column_scale,
            self.counts,
            self.n_rows,
            self.n_repaired,
        )
