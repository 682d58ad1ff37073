"""Random rows of a source, drawn once and shared by all that learn from a sample.

The order is drawn from the seed alone: no cut into blocks, engine or number of threads changes it.
Who needs n random rows takes the first n of it, so that every smaller sample is a part of the
larger ones, and a row is read and prepared once. It lives here, below the graph and what is learnt
on it, because all of them take rows of it.

Rows are read in stretches of the order, whose ends are known beforehand: products of rows round by
how many are multiplied together, and so a row has the same bits whoever asks for it first, in a
run that is resumed as well.
"""

from __future__ import annotations

import threading
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from biglp._core.arrays import Rows, to_numpy
from biglp._rows.prepared import PreparedRows
from biglp._rows.source import Source, take_rows
from biglp._transforms import Chain
from biglp._transforms.project import PROJECT_ABOVE

SAMPLE_ROWS = 20_000
SAMPLE_BYTES = 16 << 20
"""Rows behind the scaling and the automatic bandwidth: so many, or so much of wide rows."""
WIDE_SAMPLE_ROWS = 2000
"""Rows behind them where there are hundreds of features: more would take longer than a sweep."""
LEAST, MOST = 2000, 10_000
"""Rows that the members of a committee learn from, and those that a report shows."""
KEPT_BYTES = 8 << 20
"""Rows that are looked at again once the graph is made: so much of them stays, and ``LEAST``."""
NAMED_BYTES = 2 << 20
"""Chosen rows, those with labels, that are kept as well."""
ROUNDS, MIXING = 8, np.uint64(0xBF58476D1CE4E5B9)
"""Of the network that shuffles, and the factor of its mixing (that of SplitMix64)."""


def kept_rows(n_rows: int, row_bytes: float) -> int:
    """Rows of a sample that stay when the graph is made."""
    return min(n_rows, MOST, max(LEAST, int(KEPT_BYTES // max(row_bytes, 1.0))))


def shuffled(count: int, n_rows: int, seed: int) -> np.ndarray:
    """First rows of a random order of all rows, of which no more than these are made.

    A Feistel network turns the numbers below a power of four into each other, one to one; what
    falls beyond the rows goes through it again.
    """
    half = np.uint64(max((n_rows - 1).bit_length() + 1, 2) // 2)
    mask = (np.uint64(1) << half) - np.uint64(1)
    keys = np.random.default_rng(seed).integers(0, 1 << 63, (ROUNDS, 2), dtype=np.uint64)
    rows = np.arange(count, dtype=np.uint64)
    todo = np.arange(len(rows))
    while len(todo):
        left, right = rows[todo] >> half, rows[todo] & mask
        for added, factor in keys:
            mixed = (right + added) * (factor | np.uint64(1))
            mixed ^= mixed >> np.uint64(29)
            mixed *= MIXING
            left, right = right, left ^ (mixed >> np.uint64(32)) & mask
        rows[todo] = left << half | right
        todo = todo[rows[todo] >= n_rows]
    return rows.astype(np.int64)


class Sample:
    """A random order of a source's rows, and the first of them.

    ``largest`` is the size of the largest sample, ``n_kept`` that of what :meth:`let_go` leaves.
    Rows are in the memory of the processor, in the order in which the source has them.
    """

    def __init__(
        self,
        source: Source,
        dtype: np.dtype[Any],
        seed: int,
        largest: int = 0,
        chain: Chain | None = None,
    ) -> None:
        self.source, self.dtype, self.seed = source, dtype, seed
        self.n_rows, self.n_kept = source.n_rows, 0
        self.chain = chain or Chain()
        first = SAMPLE_ROWS
        if not source.is_sparse:
            first = min(first, max(SAMPLE_BYTES // (source.n_features * dtype.itemsize), 100))
            first = min(first, WIDE_SAMPLE_ROWS) if source.n_features >= PROJECT_ABOVE else first
        sizes = (first, LEAST, MOST, largest)
        self.ends = sorted({min(max(size, first), self.n_rows) for size in sizes})
        self._settled = False
        self._forget()

    @classmethod
    def of_prepared(cls, rows: PreparedRows, seed: int) -> Sample:
        """A sample of rows whose chain is known."""
        return cls(rows.inner, rows.dtype, seed, chain=rows.chain)

    def _forget(self) -> None:
        self._raw: Rows | None = None
        self._numbers = np.empty(0, dtype=np.int64)  # of the prepared rows, increasing
        self._ranks = self._numbers  # places of these in the order
        self._prepared: Rows = None
        self._named: tuple[np.ndarray, Rows] | None = None
        self._lock = threading.RLock()

    @cached_property
    def order(self) -> np.ndarray:
        """Row numbers in random order, as many as the largest sample has."""
        return shuffled(self.ends[-1], self.n_rows, self.seed)

    def rows(self, n: int) -> np.ndarray:
        """Numbers of the first n rows, increasing."""
        return np.arange(self.n_rows) if n >= self.n_rows else np.sort(self.order[:n])

    def raw(self) -> Rows:
        """The first stretch as it is before the chain, behind what the chain learns."""
        with self._lock:
            if self._raw is None:
                plain = PreparedRows(self.source, self.dtype)
                self._raw = take_rows(plain, self.rows(self.ends[0]))
            return self._raw

    def prepared(self, n: int, n_threads: int = 1) -> Rows:
        """The first n rows, through the chain; read by several threads where these are given."""
        n = min(n, self.ends[-1])
        with self._lock:
            while len(self._numbers) < n:
                self._read_on(n_threads)
            rows = self._prepared
            if n < len(self._numbers):
                rows = rows[self._ranks < n]
            if self._settled:
                self.let_go()
            return rows

    def keeps(self, n: int) -> bool:
        """Whether the first n rows stay in memory once the graph is made."""
        return min(n, self.n_rows) <= self.n_kept

    def take(self, rows: np.ndarray) -> Rows | None:
        """Prepared rows by their numbers, where none of them has to be read; else None."""
        with self._lock:
            if self.keeps(self.n_rows):
                numbers, stored = np.arange(self.n_rows), self.prepared(self.n_rows)
            elif self._named is not None:
                numbers, stored = self._named
            else:
                return None
            places = np.minimum(np.searchsorted(numbers, rows), len(numbers) - 1)
            return stored[places] if (numbers[places] == rows).all() else None

    def remember(self, numbers: np.ndarray, rows: Rows) -> None:
        """Keep chosen rows, by increasing numbers, where they are small."""
        n_bytes = rows.data.nbytes if sparse.issparse(rows) else rows.nbytes
        if self.n_kept and len(numbers) and n_bytes <= NAMED_BYTES:
            self._named = (numbers, rows)

    def let_go(self) -> None:
        """Forget what only the chain and the landmarks have needed."""
        with self._lock:
            self._settled, self._raw = True, None
            if len(self._numbers) > self.n_kept:
                first = self._ranks < self.n_kept
                self._prepared = self._prepared[first] if self.n_kept else None
                self._numbers, self._ranks = self._numbers[first], self._ranks[first]

    def let_go_after_fit(self) -> None:
        """Forget all rows where they take much memory."""
        with self._lock:
            self._named = None
            stored = self._prepared
            if stored is not None:
                n_bytes = stored.data.nbytes if sparse.issparse(stored) else stored.nbytes
                self.n_kept = self.n_kept if n_bytes <= KEPT_BYTES else 0
            self.let_go()

    def _read_on(self, n_threads: int) -> None:
        """Read and prepare the next stretch."""
        if len(self._numbers) not in (0, *self.ends):  # some of it was let go
            self._numbers = self._ranks = np.empty(0, dtype=np.int64)
            self._prepared = None
        first = len(self._numbers)
        last = next(end for end in self.ends if end > first)
        chosen = self.order[first:last]
        within = np.argsort(chosen)
        if first == 0:
            # Rows too large to be scaled are found out by what comes of them, and explained then.
            with np.errstate(over="ignore", invalid="ignore"):
                rows = self.chain.apply(self.raw())
            self._raw = None
            self._numbers, self._ranks, self._prepared = chosen[within], within, rows
            return
        source = PreparedRows(self.source, self.dtype, self.chain)
        rows = to_numpy(take_rows(source, chosen[within], n_threads))
        numbers = np.concatenate([self._numbers, chosen[within]])
        ranks = np.concatenate([self._ranks, first + within])
        order = np.argsort(numbers)
        if sparse.issparse(rows):
            merged = sparse.vstack([self._prepared, rows], format="csr")[order]
        else:
            merged = np.empty((last, rows.shape[1]), dtype=rows.dtype)
            back = np.argsort(order)
            merged[back[:first]], merged[back[first:]] = self._prepared, rows
        self._numbers, self._ranks, self._prepared = numbers[order], ranks[order], merged

    def __getstate__(self) -> dict[str, Any]:
        """Leave rows behind: they can be read again."""
        stored = ("_raw", "_numbers", "_ranks", "_prepared", "_named", "_lock")
        return {name: value for name, value in self.__dict__.items() if name not in stored}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Begin without rows."""
        self.__dict__.update(state)
        self._forget()
