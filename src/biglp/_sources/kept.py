"""Prepared rows that are kept, because preparing them again takes longer than holding them.

A projection from hundreds of features to a few dozen is the dearest step of preparing rows, and
what comes of it is small: 20,000 images become 3 MB. Each sweep would project them anew.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

KEPT_BYTES = 16 << 20
"""Rows are kept when all of them take no more than this."""


class KeptRows:
    """An array that is filled as its rows are asked for, by any number of threads.

    Two threads may fill the same rows; they write the same numbers.
    """

    def __init__(self, n_rows: int, n_features: int, dtype: np.dtype[Any]) -> None:
        self._rows = np.empty((n_rows, n_features), dtype=dtype)
        self._filled = np.zeros(n_rows, dtype=bool)

    @staticmethod
    def fit(n_rows: int, n_features: int, dtype: np.dtype[Any]) -> bool:
        """Whether rows of that shape are few enough."""
        return n_rows * n_features * dtype.itemsize <= KEPT_BYTES

    def read(self, start: int, stop: int, make: Callable[[int, int], np.ndarray]) -> np.ndarray:
        """Return rows ``start`` to ``stop`` (exclusive), made where they are missing."""
        if not self._filled[start:stop].all():
            self._rows[start:stop] = make(start, stop)
            self._filled[start:stop] = True
        part = self._rows[start:stop]
        part.flags.writeable = False  # whoever wants to change rows has to copy them
        return part

    def take(self, indices: np.ndarray, make: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """Return some rows, made where one of them is missing."""
        return self._rows[indices] if self._filled[indices].all() else make(indices)
