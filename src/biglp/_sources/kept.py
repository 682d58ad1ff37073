"""Rows that are kept, because reading or preparing them again takes longer than holding them.

A projection from hundreds of features to a few dozen is the slowest step of preparing rows, and
its result is small: 20,000 images become 3 MB. Otherwise each sweep would project them again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any
from weakref import WeakValueDictionary

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


class PartCache:
    """The part that each thread read last, shared between threads that read the same one.

    Memory is bounded by one part a thread, and neighbouring blocks of one row group, worked on by
    different threads, decode it once.
    """

    N_LOCKS = 16

    def __init__(self) -> None:
        self._own = threading.local()
        self._alive: WeakValueDictionary[int, Any] = WeakValueDictionary()
        self._locks = [threading.Lock() for _ in range(self.N_LOCKS)]

    def get(self, key: int, load: Callable[[], Any]) -> Any:
        """Return the part ``key``, loading it where no thread holds it."""
        held = self._own.__dict__.get("held")  # nothing yet in a thread that has not read
        if held is not None and held[0] == key:
            return held[1]
        self._own.held = held = None
        with self._locks[key % self.N_LOCKS]:
            part = self._alive.get(key)
            if part is None:
                self._alive[key] = part = load()
        self._own.held = (key, part)
        return part

    def __getstate__(self) -> dict[str, Any]:
        """Parts stay where they were read."""
        return {}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Begin empty."""
        PartCache.__init__(self)
