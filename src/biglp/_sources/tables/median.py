"""The median of numbers that come a few at a time, in bounded memory.

Numbers are counted by their leading bits: all of them at first, one fewer each time there are more
than :data:`MOST` different ones. How many bits are left at the end depends on the numbers alone, so
that any order and any cut of the same numbers gives the same median.
"""

from __future__ import annotations

import numpy as np

MOST = 1 << 16
"""Different numbers up to which the median is exact; of more it has some five digits."""
WAITING = 1 << 18
"""Numbers that are counted at once, as each time all that were counted before are sorted again."""
_MAGNITUDE = np.int64((1 << 63) - 1)


class Median:
    """Counts numbers, and tells their median."""

    def __init__(self) -> None:
        self._keys = np.empty(0, dtype=np.int64)
        self._counts = np.empty(0, dtype=np.int64)
        self._shift = 0
        self._waiting: list[np.ndarray] = []
        self._n_waiting = 0

    def add(self, values: np.ndarray) -> None:
        """Count float64 numbers, none of them missing."""
        self._waiting.append(_ordered(values))
        self._n_waiting += len(values)
        if self._n_waiting >= WAITING:
            self._count()

    @property
    def value(self) -> float | None:
        """The median, or the mean of the two in the middle; None where there are no numbers."""
        self._count()
        if not len(self._keys):
            return None
        ends = np.cumsum(self._counts)
        total = int(ends[-1])
        places = np.searchsorted(ends, [(total - 1) // 2, total // 2], side="right")
        keys = self._keys[places] << self._shift
        if self._shift:
            keys += 1 << (self._shift - 1)  # the middle of the numbers that share these bits
        low, high = _numbers(keys)
        return float(low if low == high else (low + high) / 2)

    def _count(self) -> None:
        keys = np.concatenate([self._keys, *(new >> self._shift for new in self._waiting)])
        counts = np.ones(len(keys), dtype=np.int64)
        counts[: len(self._counts)] = self._counts
        self._waiting, self._n_waiting = [], 0
        order = np.argsort(keys, kind="stable")
        self._keys, self._counts = _merged(keys[order], counts[order])
        while len(self._keys) > MOST:
            self._shift += 1
            self._keys, self._counts = _merged(self._keys >> 1, self._counts)


def _merged(keys: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Equal ones among sorted keys as one."""
    if not len(keys):
        return keys, counts
    first = np.flatnonzero(np.r_[True, keys[1:] != keys[:-1]])
    return keys[first], np.add.reduceat(counts, first)


def _ordered(values: np.ndarray) -> np.ndarray:
    """Whole numbers in the order of float64 numbers."""
    bits = (values + 0.0).view(np.int64)  # −0 is 0
    return np.where(bits < 0, bits ^ _MAGNITUDE, bits)


def _numbers(keys: np.ndarray) -> np.ndarray:
    """The float64 numbers of whole numbers."""
    return np.where(keys < 0, keys ^ _MAGNITUDE, keys).view(np.float64)
