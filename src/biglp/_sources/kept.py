"""Prepared rows that are kept, because preparing them again takes longer than holding them.

A projection from hundreds of features to a few dozen is the slowest step of preparing rows, and
its result is small: 20,000 images become 3 MB. Otherwise each sweep would project them again.
"""

from __future__ import annotations

from typing import Any

import numpy as np

KEPT_BYTES = 16 << 20
"""Rows are kept when all of them take no more than this."""


class KeptRows:
    """An array that is filled as its rows are read, by any number of threads.

    Two threads may fill the same rows; they write the same numbers.
    """

    def __init__(self, n_rows: int, n_features: int, dtype: np.dtype[Any]) -> None:
        self._rows = np.empty((n_rows, n_features), dtype=dtype)
        self._filled = np.zeros(n_rows, dtype=bool)

    @classmethod
    def if_small(cls, n_rows: int, n_features: int, dtype: np.dtype[Any]) -> KeptRows | None:
        """Return room for rows of that shape, or None when they take too much."""
        small = n_rows * n_features * dtype.itemsize <= KEPT_BYTES
        return cls(n_rows, n_features, dtype) if small else None

    def find(self, which: slice | np.ndarray) -> np.ndarray | None:
        """Return the rows at a slice or at indices, or None when one of them is missing."""
        if not self._filled[which].all():
            return None
        rows = self._rows[which]
        if isinstance(which, slice):  # a view: a caller that wants to change rows has to copy them
            rows.flags.writeable = False
        return rows

    def keep(self, start: int, rows: np.ndarray) -> None:
        """Keep rows that begin at ``start``."""
        self._rows[start : start + len(rows)] = rows
        self._filled[start : start + len(rows)] = True
