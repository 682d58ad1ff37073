"""Exact sums ZᵀZ of sparse features, of which each row has a few between 0 and 1 that add up to 1.

A product of two of them is rounded to whole units of 2^−bits, and units are added as 64-bit
integers: exactly, in any order, by any number of threads or processes, in C or by NumPy, with the
same bits. No cell of the sum is larger than the number of rows, from which the unit follows.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from biglp._compiled import native

BITS = 62
"""Of the largest sum there can be: one less than an integer has."""
TABLE_WIDTH = 4096
"""Columns up to which there is a place for every cell: 128 MB, of which the upper half is used."""
FEWEST_PLACES = 1 << 16
"""Of the table of cells otherwise; a power of two."""
MIRRORED = 256
"""Columns that are mirrored at once: they stay in the cache."""
ROWS_AT_ONCE = 1 << 12
"""Rows whose pairs NumPy holds."""


@dataclass(frozen=True)
class Pairs:
    """The rows of Z of a block, of which ZᵀZ is to be added."""

    columns: np.ndarray  # (b, s), int32
    weights: np.ndarray  # (b, s)
    width: int
    n_rows: int  # in all blocks

    @classmethod
    def of(cls, features: Any, n_rows: int) -> Pairs:
        """Of a CSR matrix with as many entries in each row."""
        shape = features.shape[0], features.nnz // max(features.shape[0], 1)
        weights, columns = features.data.reshape(shape), features.indices.reshape(shape)
        return cls(columns.astype(np.int32, copy=False), weights, features.shape[1], n_rows)

    def none(self) -> Pairs:
        """No row of them: what is left when they have been added."""
        return replace(self, columns=self.columns[:0], weights=self.weights[:0])

    @property
    def bits(self) -> int:
        return BITS - self.n_rows.bit_length()


class PairSums:
    """Sum of :class:`Pairs`, which threads may add to at the same time."""

    def __init__(self, width: int, bits: int) -> None:
        self.width, self.bits = width, bits
        self._lock = threading.Lock()
        # A number for each cell of the upper triangle; where there are too many, for each of
        # `keys`, increasing. `_table` and `_waiting` hold what is not among them yet.
        self.keys: np.ndarray | None = None
        self.units = np.zeros(width**2 if width <= TABLE_WIDTH else 0, dtype=np.int64)
        self._waiting: list[tuple[np.ndarray, np.ndarray]] = []
        self._table, self._used = np.empty((0, 2), dtype=np.int64), 0
        if width > TABLE_WIDTH:
            self.keys = np.empty(0, dtype=np.int64)

    def add(self, pairs: Pairs) -> None:
        """Add the rows of a block."""
        columns = np.require(pairs.columns, requirements=["C", "A"])
        weights = np.require(pairs.weights, requirements=["C", "A"])
        with self._lock:
            if not native.can_run():
                self._add_by_numpy(columns, weights)
                return
            given = columns, weights, *columns.shape, self.width, 2.0**self.bits
            if self.keys is None:
                native.call("pairs", weights.dtype, *given, self.units)
                return
            at = np.array([0, self._used])
            while at[0] < len(columns):
                if at[1] > len(self._table) // 2 - columns.shape[1] * (columns.shape[1] + 1) // 2:
                    self._widen_table(columns.shape[1] ** 2)
                table = self._table, len(self._table)
                native.call("many_pairs", weights.dtype, *given, *table, at)
            self._used = int(at[1])

    def _add_by_numpy(self, columns: np.ndarray, weights: np.ndarray) -> None:
        one, other = np.triu_indices(columns.shape[1])
        for start in range(0, len(columns), ROWS_AT_ONCE):
            some = columns[start : start + ROWS_AT_ONCE].astype(np.int64)
            exact = weights[start : start + ROWS_AT_ONCE].astype(np.float64)
            low, high = some[:, one], some[:, other]
            cells = (np.minimum(low, high) * self.width + np.maximum(low, high)).ravel()
            products = (exact * 2.0**self.bits)[:, one] * exact[:, other]
            units = (products + 0.5).astype(np.int64).ravel()
            if self.keys is None:
                np.add.at(self.units, cells, units)
            else:
                self._wait(cells, units)

    def _widen_table(self, least: int) -> None:
        larger = np.empty((max(2 * len(self._table), FEWEST_PLACES, 4 * least), 2), np.int64)
        larger = larger[: 1 << (len(larger).bit_length() - 1)]
        larger[:] = -1, 0
        sizes = len(self._table), larger, len(larger)
        native.call("move_pairs", np.dtype(np.float64), self._table, *sizes)
        self._table = larger

    def _wait(self, keys: np.ndarray, units: np.ndarray) -> None:
        """Keep cells to be added, which are sorted many at a time."""
        assert self.keys is not None
        self._waiting.append((keys, units))
        if sum(len(keys) for keys, _ in self._waiting) > max(len(self.keys), 1 << 20):
            self._sort()

    def _sort(self) -> None:
        assert self.keys is not None
        keys, units = zip((self.keys, self.units), *self._waiting, strict=True)
        self._waiting = []
        order = np.argsort(np.concatenate(keys))
        ordered, numbers = np.concatenate(keys)[order], np.concatenate(units)[order]
        firsts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
        if len(ordered):
            self.keys, self.units = ordered[firsts], np.add.reduceat(numbers, firsts)

    def settle(self) -> None:
        """Bring everything that was added to ``keys`` and ``units``."""
        with self._lock:
            if self._used:
                table, self._table, self._used = self._table, self._table[:0], 0
                filled = table[table[:, 0] >= 0]
                self._waiting.append((filled[:, 0], filled[:, 1]))
            if self._waiting:
                self._sort()

    def widen(self, *more: np.ndarray) -> None:
        """Make room for the cells with other keys."""
        self.settle()
        self._waiting += [(keys, np.zeros(len(keys), np.int64)) for keys in more]
        self.settle()

    def merge(self, other: PairSums) -> None:
        """Add another sum."""
        self.settle()
        other.settle()
        if self.keys is None:
            self.units += other.units
        else:
            assert other.keys is not None
            self._waiting.append((other.keys, other.units))
            self.settle()

    def result(self) -> Any:
        """ZᵀZ in float64; CSR where less than half of its cells hold something.  (k, k)."""
        self.settle()
        if self.keys is None and 4 * np.count_nonzero(self.units) > self.width**2:
            full = np.ldexp(self.units, -self.bits).reshape(self.width, self.width)
            for start in range(0, self.width, MIRRORED):  # the lower half is still empty
                stop = start + MIRRORED
                full[stop:, start:stop] = full[start:stop, stop:].T
                square = full[start:stop, start:stop]
                square += np.triu(square, 1).T
            return full
        keys = np.flatnonzero(self.units) if self.keys is None else self.keys
        units = self.units[keys] if self.keys is None else self.units
        rows, columns = np.divmod(keys, self.width)
        shape = (self.width, self.width)
        upper = sparse.csr_array((np.ldexp(units, -self.bits), (rows, columns)), shape=shape)
        return sparse.csr_array(upper + sparse.triu(upper, 1).T)

    def __getstate__(self) -> dict[str, Any]:
        self.settle()
        return {name: value for name, value in self.__dict__.items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=threading.Lock())
