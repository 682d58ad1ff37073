"""The rows that the labelling loop works on: a bounded number, in memory, with all labelled ones.

Suggestions and estimates hardly change with more rows than these; time and memory do. Rows that
get a label without being among them (on the map, or by number) are added at the end: their features
are those of any new row, and the graph stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from scipy import sparse

from biglp._core.arrays import Rows
from biglp._rows import Source
from biglp._rows.source import sample_indices

POOL_ROWS = 100_000
"""Rows of the pool, where memory allows."""
LEAST_ROWS = 1000
MEMORY_SHARE = 0.25
"""Share of the budget that the pool's rows may take."""
LABELLED_SHARE = 0.5
"""Share of the pool that labelled rows may take; of more of them, a random part."""
FETCHED_AT_ONCE = 10_000


def pool_size(n_rows: int, row_bytes: float, memory: int) -> int:
    """Rows that there is room for."""
    fitting = int(MEMORY_SHARE * memory / row_bytes)
    return min(n_rows, POOL_ROWS, max(fitting, LEAST_ROWS))


def stored_bytes(source: Source) -> float:
    """Memory of a row, as it is stored."""
    if not source.is_sparse:
        return source.n_features * source.dtype.itemsize
    some = source.read(0, min(source.n_rows, LEAST_ROWS))
    return (some.data.nbytes + some.indices.nbytes) / some.shape[0] + some.indptr.itemsize


def draw_pool(n_rows: int, size: int, labelled: np.ndarray, seed: int) -> np.ndarray:
    """Row numbers of the pool, increasing: the labelled rows, and others by lot."""
    if size >= n_rows:
        return np.arange(n_rows)
    known = np.unique(labelled)
    most = int(LABELLED_SHARE * size)
    if len(known) > most:
        known = known[sample_indices(len(known), most, seed)]
    drawn = np.setdiff1d(sample_indices(n_rows, size, seed), known)
    drawn = drawn[sample_indices(len(drawn), size - len(known), seed)]
    return np.sort(np.concatenate([known, drawn]))


class PoolSource(Source):
    """Some rows of another source, held in memory; a few more can be added at the end.

    Parameters
    ----------
    whole : Source
    rows : ndarray of shape (p,)
        Row numbers in ``whole``, increasing.

    Attributes
    ----------
    rows : ndarray of shape (p,)
        Row number in ``whole`` of each row of the pool.
    """

    def __init__(self, whole: Source, rows: np.ndarray) -> None:
        self.whole, self.rows = whole, rows
        self.n_features, self.dtype = whole.n_features, whole.dtype
        self.name, self.is_sparse = whole.name, whole.is_sparse
        self.encoding, self.words_from = whole.encoding, whole.words_from
        self.feature_names = whole.feature_names
        self.n_rows = len(rows)
        self._parts = [fetch(whole, rows)]
        self._places: dict[int, int] | None = None

    def extended(self, rows: np.ndarray) -> PoolSource:
        """The same pool with more rows; those it has are shared."""
        more = object.__new__(PoolSource)
        more.__dict__.update(self.__dict__)
        more.rows = np.concatenate([self.rows, rows])
        more._parts = [*self._parts, self.whole.take(np.sort(rows))[np.argsort(np.argsort(rows))]]
        self.whole.check_unchanged()
        more.n_rows = len(more.rows)
        more._places = None
        return more

    def places_of(self, rows: Iterable[int]) -> np.ndarray:
        """Places in the pool of rows of the whole; -1 for those that are not in it."""
        if self._places is None:
            self._places = dict(zip(self.rows.tolist(), range(self.n_rows), strict=True))
        return np.array([self._places.get(row, -1) for row in rows], dtype=np.int64)

    def read(self, start: int, stop: int) -> Rows:
        """Return rows; they never reach over from one part to the next."""
        first = 0
        for part in self._parts:
            if start < first + part.shape[0]:
                return part[start - first : stop - first]
            first += part.shape[0]
        return self._parts[-1][:0]

    def take(self, indices: np.ndarray) -> Rows:
        """Return a copy of the rows."""
        if len(self._parts) == 1:
            return self._parts[0][indices]
        starts = np.cumsum([0, *(part.shape[0] for part in self._parts)])
        cuts = np.searchsorted(indices, starts)  # increasing
        found = [
            part[indices[cuts[place] : cuts[place + 1]] - starts[place]]
            for place, part in enumerate(self._parts)
        ]
        return _stacked(found)


def fetch(source: Source, rows: np.ndarray) -> Any:
    """Rows of a source in memory, fetched a few at a time."""
    starts = range(0, len(rows), FETCHED_AT_ONCE)
    parts = (source.take(rows[start : start + FETCHED_AT_ONCE]) for start in starts)
    if source.is_sparse:
        found = _stacked(list(parts))
    else:
        found = np.empty((len(rows), source.n_features), dtype=source.dtype)
        for start, part in zip(starts, parts, strict=True):  # never a second copy of all of them
            found[start : start + len(part)] = part
    source.check_unchanged()
    return found


def _stacked(parts: list[Any]) -> Any:
    if len(parts) == 1:
        return parts[0]
    return sparse.vstack(parts).tocsr() if sparse.issparse(parts[0]) else np.concatenate(parts)
