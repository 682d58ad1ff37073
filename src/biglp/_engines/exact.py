"""Exact sums of tuples of arrays, dense ones and sparse ones.

:mod:`.slices` has the arithmetic: bits depend on the numbers alone, not on where or in which order
they were added.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from biglp._engines.slices import TILE, Slices

_DENSE_CELLS = 1 << 19
"""Sparse matrices with at most this many cells are added as dense ones, which is faster."""
_WAITING_CELLS = 1 << 21
"""Cells of sparse matrices that are added in one go, at least."""
_TABLE_CELLS, _SMALL_TABLE = 1 << 24, 1 << 22
"""Cells of which a table is made, five bytes each, to find the places of keys: where half of them
have one, and where a 64th of a few has."""


class KeyedSlices:
    """Exact sum of large sparse matrices: a sorted key for each cell that holds something."""

    def __init__(self, n_cells: int) -> None:
        self.n_cells = n_cells
        self.keys = np.empty(0, dtype=np.int64)
        self.sum = Slices(0)
        self._waiting: list[tuple[np.ndarray, np.ndarray]] = []

    def add(self, matrix: Any) -> None:
        """Add a sparse matrix; new cells are made for many matrices at a time."""
        cells = sparse.csr_array(matrix)
        cells.sum_duplicates()  # and sorts each row, so that the keys are sorted
        rows = np.repeat(np.arange(cells.shape[0], dtype=np.int64), np.diff(cells.indptr))
        self._waiting.append((rows * cells.shape[1] + cells.indices, cells.data))
        if sum(len(keys) for keys, _ in self._waiting) > max(len(self.keys), _WAITING_CELLS):
            self.settle()

    def settle(self) -> None:
        """Add what is waiting."""
        waiting, self._waiting = self._waiting, []
        place_of = self.widen(*(keys for keys, _ in waiting))
        for keys, values in waiting:
            self.sum.add_at(place_of(keys), values)

    def widen(self, *more: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        """Make room for the cells with other keys; return what finds the places of keys."""
        keys, place_of = _places(self.n_cells, [self.keys, *more])
        if len(keys) > len(self.keys):
            wider, places = Slices(len(keys)), place_of(self.keys)
            wider.units[places], wider.slices[:, places] = self.sum.units, self.sum.slices
            self.keys, self.sum = keys, wider
        return place_of

    def merge(self, other: KeyedSlices) -> None:
        """Add another sum."""
        self.settle()
        other.settle()
        self.widen(other.keys)
        other.widen(self.keys)
        self.sum.merge(other.sum)


class Layout(NamedTuple):
    """Shape of one array of a tuple, and the sparse class that its sum has, if any."""

    shape: tuple[int, ...]
    sparse_class: str


@dataclass
class ExactSum:
    """Exact sum of tuples of arrays (float64, dense or sparse).

    Attributes
    ----------
    layout : tuple of Layout, or None
        What a tuple looks like; None until the first one has been added.
    dense : Slices
        All arrays that are added as dense ones, end to end.
    keyed : dict of int to KeyedSlices
        The others by their place in the tuple.
    """

    layout: tuple[Layout, ...] | None = None
    dense: Slices = field(default_factory=lambda: Slices(0))
    keyed: dict[int, KeyedSlices] = field(default_factory=dict)
    _firsts: list[int] = field(default_factory=list)  # where each array begins in ``dense``

    def begin(self, layout: tuple[Layout, ...]) -> None:
        """Make room for tuples of a layout, or check that it is the one there is room for."""
        if self.layout is None:
            sizes = [int(np.prod(part.shape)) for part in layout]
            for i, part in enumerate(layout):
                if part.sparse_class and sizes[i] > _DENSE_CELLS:
                    self.keyed[i], sizes[i] = KeyedSlices(sizes[i]), 0
            self._firsts = list(accumulate(sizes, initial=0))
            self.dense = Slices(self._firsts[-1])
            self.layout = layout
        elif layout != self.layout:
            raise cannot_be_added(self.layout, layout)

    def add(self, parts: tuple[Any, ...]) -> None:
        """Add a tuple of float64 arrays."""
        layout = []
        for array in parts:
            kind = "csr_array" if isinstance(array, sparse.sparray) else "csr_matrix"
            layout.append(Layout(array.shape, kind if sparse.issparse(array) else ""))
        self.begin(tuple(layout))
        dense = [(self._firsts[i], a) for i, a in enumerate(parts) if i not in self.keyed]
        flat = [np.ravel(a.toarray() if sparse.issparse(a) else a) for _, a in dense]
        if flat and self._firsts[-1] <= TILE:  # few numbers: one addition, not one an array
            flat = [np.concatenate(flat)]
        for (first, _), values in zip(dense, flat, strict=False):
            self.dense.add(values, first)
        for i, keyed in self.keyed.items():
            keyed.add(parts[i])

    def merge(self, other: ExactSum) -> None:
        """Add another sum."""
        if other.layout is None:
            return
        self.begin(other.layout)
        self.dense.merge(other.dense)
        for i, keyed in self.keyed.items():
            keyed.merge(other.keyed[i])

    def result(self) -> tuple[Any, ...]:
        """Return the sums, rounded to float64; an empty tuple when nothing was added."""
        if self.layout is None:
            return ()
        flat, sums = self.dense.values(), []
        for i, part in enumerate(self.layout):
            if i in self.keyed:
                self.keyed[i].settle()
                cells = (self.keyed[i].sum.values(), np.divmod(self.keyed[i].keys, part.shape[1]))
                sums.append(sparse.coo_array(cells, shape=part.shape))
            else:
                sums.append(flat[self._firsts[i] : self._firsts[i + 1]].reshape(part.shape))
            if part.sparse_class:
                sums[i] = getattr(sparse, part.sparse_class)(sums[i])
        return tuple(sums)


def _places(
    n_cells: int, parts: list[np.ndarray]
) -> tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]:
    """Sorted keys, each once, and a function that finds the places of some of them.

    Where keys are about as many as cells, a table of all cells is several times faster than a sort.
    """
    n_keys = sum(len(part) for part in parts)
    if n_cells <= min(_TABLE_CELLS, 2 * n_keys) or n_cells <= min(_SMALL_TABLE, 64 * n_keys):
        met = np.zeros(n_cells, dtype=bool)
        for part in parts:
            met[part] = True
        found = np.flatnonzero(met)
        places = np.empty(n_cells, dtype=np.int32)  # of cells without a key nothing is asked
        places[found] = np.arange(len(found), dtype=np.int32)
        return found, places.__getitem__
    keys = np.concatenate(parts)
    keys.sort()  # numpy.unique hashes them first, which takes several times longer
    first = np.ones(len(keys), dtype=bool)
    first[1:] = keys[1:] != keys[:-1]
    keys = keys[first]
    return keys, keys.searchsorted


def cannot_be_added(one: Any, other: Any) -> ValueError:
    """Make the error for tuples of different layouts."""
    shapes = [[part.shape for part in layout] for layout in (one, other)]
    return ValueError(
        f"blocks gave arrays that cannot be added: shapes {shapes[0]} and {shapes[1]}; "
        "a block function must return the same shapes for every block."
    )
