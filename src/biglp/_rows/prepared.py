"""Rows that went through a chain of transforms, in one type, on one device; a sample of them."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
from scipy import sparse

from biglp._core.arrays import Rows, is_torch, to_device, to_numpy, torch_type
from biglp._core.device import upload
from biglp._core.size import Cost, Size
from biglp._rows.source import DECODED_BYTES, Source, take_rows
from biglp._transforms.base import Chain, are_there
from biglp._transforms.project import PROJECT_ABOVE

PLAIN = Chain()
KEPT_BYTES = 16 << 20
"""Projected rows are stored when all of them take no more than this. A projection from hundreds of
features to a few dozen is the slowest step of preparing rows, and its result is small: 20,000
images become 3 MB. Otherwise each sweep would project them again."""
HALVES = ("torch.float16", "torch.bfloat16")
PART_COPIES = 5
"""What decoding a row group in the middle of a sweep takes, counted in its size."""


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
        last = self._own.__dict__.get("last")  # nothing yet in a thread that has not read
        if last is not None and last[0] == key:
            return last[1]
        self._own.last = last = None
        with self._locks[key % self.N_LOCKS]:
            part = self._alive.get(key)
            if part is None:
                self._alive[key] = part = load()
        self._own.last = (key, part)
        return part

    def __getstate__(self) -> dict[str, Any]:
        """Parts stay where they were read."""
        return {}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Begin empty."""
        PartCache.__init__(self)


class PreparedRows(Source):
    """Another source's rows in one floating type, through a chain of transforms, on one device.

    On a device rows are cast and transformed there, after they were copied as they are. With
    ``stay``, blocks keep their rows there once they have been brought.
    """

    def __init__(
        self,
        inner: Source,
        dtype: np.dtype[Any],
        chain: Chain = PLAIN,
        device: str = "cpu",
        stay: bool = False,
    ) -> None:
        self.inner = inner
        self.chain = chain
        self.n_rows = inner.n_rows
        self.n_features = chain.width(inner.n_features)
        if not inner.is_sparse:  # of which a row holds few
            self.n_input_features = max(inner.n_features, inner.n_input_features)
        self.dtype = dtype
        self.device = device
        self.stay = stay and not are_there(inner, dtype, chain)
        self.name = inner.name
        self.is_sparse = inner.is_sparse and chain.keeps_sparse
        self.stamps = inner.stamps
        self.encoding = inner.encoding
        self.feature_names = None if chain.embeds else inner.feature_names
        self.part_bytes = inner.part_bytes
        self.decoding_bytes = inner.decoding_bytes
        # Rows and which of them are there, filled as they are read; two threads may fill the same
        # rows, with the same numbers.
        self._stored: tuple[np.ndarray, np.ndarray] | None = None
        small = self.n_rows * self.n_features * dtype.itemsize <= KEPT_BYTES
        if chain.embeds and not self.is_sparse and device == "cpu" and small:
            shape = (self.n_rows, self.n_features)
            self._stored = np.empty(shape, dtype), np.zeros(self.n_rows, dtype=bool)

    @staticmethod
    def cost(size: Size) -> Cost:
        """Decoding, and rows as they are read, in the type of the arithmetic, and scaled."""
        library = min(size.decoding, DECODED_BYTES)
        return Cost(
            libraries={"formats": library},
            opening=size.decoding - library,
            read_row=3 * size.row_bytes,
            block=PART_COPIES * size.part_bytes,
        )

    def read(self, start: int, stop: int) -> Rows:
        if self.device != "cpu":
            return self.as_read(self.stored(start, stop))
        if self._stored is None:
            return self.prepared(self.inner.read(start, stop))
        stored, there = self._stored
        if not there[start:stop].all():
            stored[start:stop] = self.prepared(self.inner.read(start, stop))
            there[start:stop] = True
        rows = stored[start:stop]
        rows.flags.writeable = False  # a view: a caller that wants to change rows has to copy them
        return rows

    def stored(self, start: int, stop: int) -> Rows:
        """Return prepared rows in the type in which they stay on a device."""
        if self.device == "cpu":
            return self.read(start, stop)
        inner = self.inner
        kind = None if inner.is_sparse else torch_type(inner.dtype)
        if inner.device != "cpu" or kind is None:
            rows = inner.read(start, stop)
        else:
            device = self.device.removeprefix("torch:")
            shape = (stop - start, inner.n_features)
            rows = sys.modules["torch"].empty(shape, dtype=kind, device=device)
            upload(lambda first, last: inner.read(start + first, start + last), rows)
        is_half = is_torch(rows) and str(rows.dtype) in HALVES
        return rows if is_half and not self.chain.changes_rows else self.prepared(rows)

    def as_read(self, stored: Rows) -> Rows:
        """Return rows that are stored on a device in the type of the arithmetic."""
        return stored.to(torch_type(self.dtype))

    def take(self, indices: np.ndarray) -> Rows:
        if self._stored is not None and self._stored[1][indices].all():
            return self._stored[0][indices]
        return self.prepared(self.inner.take(indices))

    def __getstate__(self) -> dict[str, Any]:
        """Leave stored rows behind: they can be made again."""
        return {**self.__dict__, "_stored": None}

    def prepared(self, rows: Rows) -> Rows:
        """Prepare rows that were read from the inner source, or are like those."""
        if self.device == "cpu":
            # Rows too large to be scaled are found out by what comes of them, and explained then.
            with np.errstate(over="ignore", invalid="ignore"):
                return self.chain.apply(to_numpy(rows).astype(self.dtype, copy=False))
        if not is_torch(rows):
            if self.inner.is_sparse or torch_type(rows.dtype) is None:
                rows = rows.astype(self.dtype, copy=False)
            if self.inner.is_sparse:
                return to_device(self.chain.apply(rows), self.device)
            rows = to_device(rows, self.device)
        return self.chain.apply(rows.to(torch_type(self.dtype)))


# --------------------------------------------------------------------------------------------------
# Random rows of a source, drawn once and shared by all that learn from a sample.
#
# The order is drawn from the seed alone: no cut into blocks, engine or number of threads changes
# it. Who needs n random rows takes the first n of it, so that every smaller sample is a part of
# the larger ones, and a row is read and prepared once. It lives here, below the graph and what is
# learnt on it, because all of them take rows of it.
#
# Rows are read in stretches of the order, whose ends are known beforehand: products of rows round
# by how many are multiplied together, and so a row has the same bits whoever asks for it first,
# in a run that is resumed as well.


SAMPLE_ROWS = 20_000
SAMPLE_BYTES = 16 << 20
"""Rows behind the scaling and the automatic bandwidth: so many, or so much of wide rows."""
WIDE_SAMPLE_ROWS = 2000
"""Rows behind them where there are hundreds of features: more would take longer than a sweep."""
LEAST, MOST = 2000, 10_000
"""Rows that the members of a committee learn from, and those that a report shows."""
SAMPLE_KEPT_BYTES = 8 << 20
"""Rows that are looked at again once the graph is made: so much of them stays, and ``LEAST``."""
NAMED_BYTES = 2 << 20
"""Chosen rows, those with labels, that are kept as well."""
ROUNDS, MIXING = 8, np.uint64(0xBF58476D1CE4E5B9)
"""Of the network that shuffles, and the factor of its mixing (that of SplitMix64)."""


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

    _raw: Rows | None = None
    _numbers = np.empty(0, dtype=np.int64)  # of the prepared rows, increasing
    _ranks = _numbers  # places of these in the order
    _prepared: Rows = None
    _named: tuple[np.ndarray, Rows] | None = None

    def __init__(
        self,
        source: Source,
        dtype: np.dtype[Any],
        seed: int,
        largest: int = 0,
        chain: Chain = PLAIN,
    ) -> None:
        self.source, self.dtype, self.seed = source, dtype, seed
        self.n_rows, self.n_kept = source.n_rows, 0
        self.chain = chain
        first = SAMPLE_ROWS
        if not source.is_sparse:
            first = min(first, max(SAMPLE_BYTES // (source.n_features * dtype.itemsize), 100))
            first = min(first, WIDE_SAMPLE_ROWS) if source.n_features >= PROJECT_ABOVE else first
        sizes = (first, LEAST, MOST, largest)
        self.ends = sorted({min(max(size, first), self.n_rows) for size in sizes})
        self.order = shuffled(self.ends[-1], self.n_rows, seed)  # as many as the largest has
        self._settled = False
        self._lock = threading.RLock()

    @classmethod
    def of_prepared(cls, rows: PreparedRows, seed: int) -> Sample:
        """A sample of rows whose chain is known."""
        return cls(rows.inner, rows.dtype, seed, chain=rows.chain)

    def rows(self, n: int) -> np.ndarray:
        """Numbers of the first n rows, increasing."""
        return np.arange(self.n_rows) if n >= self.n_rows else np.sort(self.order[:n])

    def raw(self) -> Rows:
        """The first stretch as it is before the chain, behind what the chain learns."""
        with self._lock:
            if self._raw is None:
                rows = to_numpy(take_rows(self.source, self.rows(self.ends[0])))
                self._raw = rows.astype(self.dtype, copy=False)
            return self._raw

    def counts(self) -> Rows:
        """As :meth:`raw`, of dense rows that are mostly zeros: as many as of CSR rows, as CSR."""
        plain, rows = PreparedRows(self.source, self.dtype), self.rows(SAMPLE_ROWS)
        pieces = np.array_split(rows, -(-len(rows) // LEAST))
        return sparse.vstack([sparse.csr_matrix(take_rows(plain, some)) for some in pieces])

    def prepared(self, n: int, n_threads: int = 1) -> Rows:
        """The first n rows, through the chain; read by several threads where these are given."""
        n = min(n, self.ends[-1])
        with self._lock:
            while len(self._numbers) < n:  # the next stretch
                if len(self._numbers) not in (0, *self.ends):  # some of it was let go
                    self._numbers = self._ranks = np.empty(0, dtype=np.int64)
                    self._prepared = None
                first = len(self._numbers)
                last = next(end for end in self.ends if end > first)
                chosen = self.order[first:last]
                within = np.argsort(chosen)
                if first == 0:
                    # Rows too large to be scaled are found out by what comes of them.
                    with np.errstate(over="ignore", invalid="ignore"):
                        rows = self.chain.apply(self.raw())
                    self._raw = None
                    self._numbers, self._ranks, self._prepared = chosen[within], within, rows
                    continue
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
            stored = self._prepared
            if n < len(self._numbers):
                stored = stored[self._ranks < n]
            if self._settled:
                self.let_go()
            return stored

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

    def let_go(self, *, after_fit: bool = False) -> None:
        """Forget what only the chain and the landmarks need; after a fit all that is large."""
        with self._lock:
            self._settled, self._raw = True, None
            stored = self._prepared
            if after_fit:
                self._named = None
            if after_fit and stored is not None:
                n_bytes = stored.data.nbytes if sparse.issparse(stored) else stored.nbytes
                self.n_kept = self.n_kept if n_bytes <= SAMPLE_KEPT_BYTES else 0
            if len(self._numbers) > self.n_kept:
                first = self._ranks < self.n_kept
                self._prepared = stored[first] if self.n_kept else None
                self._numbers, self._ranks = self._numbers[first], self._ranks[first]

    def __getstate__(self) -> dict[str, Any]:
        """Leave rows behind: they can be read again."""
        stored = ("_raw", "_numbers", "_ranks", "_prepared", "_named", "_lock")
        return {name: value for name, value in self.__dict__.items() if name not in stored}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Begin without rows."""
        self.__dict__.update(state, _lock=threading.RLock())
