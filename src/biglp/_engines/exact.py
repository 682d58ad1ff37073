"""Exact sums of tuples of arrays, dense and sparse ones, and of :mod:`biglp._compiled.pairs`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from biglp._compiled.pairs import Pairs, PairSums

# --------------------------------------------------------------------------------------------------
# Sums whose bits depend on the numbers alone, not on where or in which order they were added.
#
# Floating-point addition rounds, so (a + b) + c and a + (b + c) differ, and a sum shared out over
# processes would change with their number. Here nothing rounds until the end. Every number x is cut
# on one fixed grid of binary digits, level L having the unit u_L = 2^(32·L):
#
#     x = q_T + q_(T−1) + q_(T−2) + rest,      q_L a multiple of u_L,  |rest| ≤ u_(T−2) / 2,
#
# where T is the level of the largest number met so far in that place of the array. Slices of one
# level are multiples of one unit and at most 2³² of them, so 2²⁰ of them add up below 2⁵³ units:
# each addition is exact, hence in any order the same. When a larger number moves T up, the lowest
# slices are dropped; they would have been dropped in any other order too.
#
# What is lost is known: the rest is at most 2⁻⁶⁵ of the largest number in that place, 4,000 times
# finer than float64 itself, so a single number comes back as it was. Numbers from 2⁹⁹² (4·10²⁹⁸) on
# count as infinite, and whatever is not finite makes its place of the sum NaN.
#
# The grid and the cutting follow the idea of Demmel and Nguyen, "Parallel reproducible summation"
# (IEEE Transactions on Computers, 2015), with levels kept for each place of the array.


WIDTH = 32
SLICES = 3
MAX_TERMS = 2**20
"""Numbers that may be added in one place; base.py cuts its runs so that there are never more."""
_LOWEST_LEVEL = -31  # two levels lower the unit is 2⁻¹⁰⁵⁶, still above the smallest float64
_LOWEST_UNIT = 2.0 ** (WIDTH * _LOWEST_LEVEL)
_HIGHEST = 2.0**992  # from here on the constant that rounds to a unit would overflow
_ROUNDER = 3.0 * 2.0**51  # x + r·u − r·u rounds x to a multiple of u
TILE = 1 << 14  # numbers worked on at a time: the temporaries stay in the cache


class Slices:
    """Exact sum of flat arrays of one size."""

    def __init__(self, size: int) -> None:
        self.units = np.full(size, _LOWEST_UNIT)
        self.slices = np.zeros((SLICES, size))

    def add(self, values: np.ndarray, at: int | np.ndarray = 0) -> None:
        """Cut float64 ``values`` and add them from a place on, or each at a place of its own."""
        for start in range(0, len(values), TILE):
            rest = values[start : start + TILE]
            stop = start + len(rest)
            if isinstance(at, int):  # in place
                units, slices = (
                    self.units[at + start : at + stop],
                    self.slices[:, at + start : at + stop],
                )
            else:
                places = at[start:stop]
                units, slices = self.units[places], self.slices.take(places, axis=1)
            size = np.abs(rest)
            too_large = size >= units * 2.0**WIDTH
            if too_large.any():
                infinite = size >= _HIGHEST
                if infinite.any():
                    rest = np.where(infinite, np.nan, rest)
                too_large &= ~infinite
                # The unit of a number's level: its exponent, rounded down to a multiple of 32.
                exponents = (size.view(np.int64) >> 52) - 1023
                wanted = (((exponents & -WIDTH) + 1023) << 52).view(np.float64)
                _lift(units, slices, np.where(too_large, wanted, units))
            rounder, part = units * _ROUNDER, size
            for level in range(SLICES):
                np.add(rest, rounder, out=part)
                np.subtract(part, rounder, out=part)
                slices[level] += part
                if level < SLICES - 1:
                    rest = np.subtract(rest, part, out=None if level == 0 else rest)
                    rounder *= 2.0**-WIDTH
            if not isinstance(at, int):
                self.units[places] = units
                # Twice as fast as all levels at once.
                for level_slices, changed in zip(self.slices, slices, strict=True):
                    level_slices[places] = changed

    def lift(self, units: np.ndarray) -> None:
        """Move every place up to the level of ``units``, where that is higher than its own."""
        _lift(self.units, self.slices, np.maximum(units, self.units))

    def merge(self, other: Slices) -> None:
        """Add another sum; both end at the higher level."""
        self.lift(other.units)
        other.lift(self.units)
        self.slices += other.slices

    def levels(self) -> np.ndarray:
        """Levels of the highest slices as int8, for sending."""
        # 2⁵ is the width, and a shift rounds down; dividing is several times slower.
        return (((self.units.view(np.int64) >> 52) - 1023) >> 5).astype(np.int8)

    def lift_to_levels(self, levels: np.ndarray) -> None:
        """As :meth:`lift`, with levels as they were sent."""
        self.lift(((levels.astype(np.int64) * WIDTH + 1023) << 52).view(np.float64))

    def values(self) -> np.ndarray:
        """Return the sum, rounded to float64.

        A number just below a unit counts as that unit or as 2³² of the next, depending on the level
        when it came. The total is the same; carrying upwards makes its digits the same too.
        """
        values = np.empty(len(self.units))
        for start in range(0, len(values), TILE):
            here = slice(start, start + TILE)
            units = self.units[here]
            lower_units = units * 2.0**-WIDTH
            highest, middle, lowest = self.slices[:, here]
            # Units are powers of two, so that rounding down to a multiple of one is exact.
            carry = np.floor(lowest / lower_units) * lower_units
            middle, lowest = middle + carry, lowest - carry
            carry = np.floor(middle / units) * units
            highest, middle = highest + carry, middle - carry
            lower = middle + lowest
            total = highest + lower
            # What the two additions lost matters when the highest slice and the lower ones cancel.
            lost = (lowest - (lower - middle)) + (lower - (total - highest))
            values[here] = total + lost
        return values


def _lift(units: np.ndarray, slices: np.ndarray, raised: np.ndarray) -> None:
    """Move places up to the units ``raised``, dropping the slices that fall off, in place."""
    if slices.any():  # the first numbers meet empty slices
        moved = np.flatnonzero(raised != units)
        old = slices[:, moved]
        # Of a unit 2^(32·L) the bits are (32·L + 1023) << 52, so that levels differ by those above.
        steps = (raised[moved].view(np.int64) - units[moved].view(np.int64)) >> 57
        steps = np.minimum(steps, SLICES)
        # Times zero rather than zero, so that a place that is NaN remains so.
        stacked = np.concatenate([old[:1] * 0.0] * SLICES + [old])
        rows = np.arange(SLICES)[:, None] + SLICES - steps
        slices[:, moved] = np.take_along_axis(stacked, rows, axis=0)
    units[:] = raised


# --------------------------------------------------------------------------------------------------


_DENSE_CELLS = 1 << 19
"""Sparse matrices with at most this many cells are added as dense ones, which is faster."""
_WAITING_CELLS = 1 << 21
"""Cells of sparse matrices that are added in one go, at least."""
_TABLE_CELLS, _SMALL_TABLE = 1 << 24, 1 << 22
"""Cells of which a table is made, five bytes each, to find the places of keys: where half of them
have one, and where a 64th of a few has."""


@dataclass
class KeyedSlices:
    """Exact sum of large sparse matrices: a sorted key for each cell that holds something."""

    n_cells: int
    keys: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    sum: Slices = field(default_factory=lambda: Slices(0))
    _waiting: list[tuple[np.ndarray, np.ndarray]] = field(default_factory=list)

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
            self.sum.add(values, place_of(keys))

    def widen(self, *more: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        """Make room for the cells with other keys; return what finds the places of keys."""
        parts, n_cells = [self.keys, *more], self.n_cells
        n_keys = sum(len(part) for part in parts)
        place_of: Callable[[np.ndarray], np.ndarray]
        # Where keys are about as many as cells, a table of all is several times faster than a sort.
        if n_cells <= min(_TABLE_CELLS, 2 * n_keys) or n_cells <= min(_SMALL_TABLE, 64 * n_keys):
            met = np.zeros(n_cells, dtype=bool)
            for part in parts:
                met[part] = True
            keys = np.flatnonzero(met)
            table = np.empty(n_cells, dtype=np.int32)  # of cells without a key nothing is asked
            table[keys] = np.arange(len(keys), dtype=np.int32)
            place_of = table.__getitem__
        else:
            keys = np.concatenate(parts)
            keys.sort()  # numpy.unique hashes them first, which takes several times longer
            first = np.ones(len(keys), dtype=bool)
            first[1:] = keys[1:] != keys[:-1]
            keys = keys[first]
            place_of = keys.searchsorted
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
    bits: int = 0  # of pairs, of which shape is that of the sum

    @classmethod
    def of(cls, array: Any) -> Layout:
        """That of a dense or sparse array, or of pairs."""
        if isinstance(array, Pairs):
            return cls((array.width, array.width), "", array.bits)
        kind = "csr_array" if isinstance(array, sparse.sparray) else "csr_matrix"
        return cls(array.shape, kind if sparse.issparse(array) else "")


@dataclass
class ExactSum:
    """Exact sum of tuples of arrays (float64, dense or sparse) and of pairs."""

    layout: tuple[Layout, ...] | None = None  # None until the first tuple has been added
    dense: Slices = field(default_factory=lambda: Slices(0))  # all dense arrays, end to end
    keyed: dict[int, KeyedSlices] = field(default_factory=dict)  # large ones, by position
    pairs: dict[int, PairSums] = field(default_factory=dict)  # by position
    _firsts: list[int] = field(default_factory=list)  # where each array begins in ``dense``

    def begin(self, layout: tuple[Layout, ...]) -> None:
        """Make room for tuples of a layout, or check that it is the one there is room for."""
        if self.layout is None:
            sizes = [int(np.prod(part.shape)) for part in layout]
            for i, part in enumerate(layout):
                if part.bits:
                    self._sum_of_pairs(i, part)
                    sizes[i] = 0
                elif part.sparse_class and sizes[i] > _DENSE_CELLS:
                    self.keyed[i], sizes[i] = KeyedSlices(sizes[i]), 0
            self._firsts = list(accumulate(sizes, initial=0))
            self.dense = Slices(self._firsts[-1])
            self.layout = layout
        elif layout != self.layout:
            raise cannot_be_added(self.layout, layout)

    def add(self, parts: tuple[Any, ...]) -> None:
        """Add a tuple of float64 arrays and pairs."""
        self.begin(tuple(Layout.of(array) for array in parts))
        parts = tuple(self.add_pairs(i, array) for i, array in enumerate(parts))
        others = self.keyed.keys() | self.pairs.keys()
        dense = [(self._firsts[i], a) for i, a in enumerate(parts) if i not in others]
        flat = [np.ravel(a.toarray() if sparse.issparse(a) else a) for _, a in dense]
        if flat and self._firsts[-1] <= TILE:  # few numbers: one addition, not one an array
            flat = [np.concatenate(flat)]
        for (first, _), values in zip(dense, flat, strict=False):
            self.dense.add(values, first)
        for i, keyed in self.keyed.items():
            keyed.add(parts[i])

    def add_pairs(self, position: int, part: Any) -> Any:
        """Add a part that is pairs, from any thread; return what is left of it to be added."""
        if not isinstance(part, Pairs):
            return part
        if len(part.columns):
            self._sum_of_pairs(position, Layout.of(part)).add(part)
        return part.none()

    def _sum_of_pairs(self, position: int, layout: Layout) -> PairSums:
        # At once for all threads: the first comes first.
        return self.pairs.setdefault(position, PairSums(layout.shape[0], layout.bits))

    def merge(self, other: ExactSum) -> None:
        """Add another sum."""
        if other.layout is None:
            return
        self.begin(other.layout)
        self.dense.merge(other.dense)
        for i, keyed in self.keyed.items():
            keyed.merge(other.keyed[i])
        for i, pairs in self.pairs.items():
            pairs.merge(other.pairs[i])

    def result(self) -> tuple[Any, ...]:
        """Return the sums, rounded to float64; an empty tuple when nothing was added."""
        if self.layout is None:
            return ()
        flat, sums = self.dense.values(), []
        for i, part in enumerate(self.layout):
            if i in self.pairs:
                sums.append(self.pairs[i].result())
            elif i in self.keyed:
                self.keyed[i].settle()
                cells = (self.keyed[i].sum.values(), np.divmod(self.keyed[i].keys, part.shape[1]))
                sums.append(sparse.coo_array(cells, shape=part.shape))
            else:
                sums.append(flat[self._firsts[i] : self._firsts[i + 1]].reshape(part.shape))
            if part.sparse_class:
                sums[i] = getattr(sparse, part.sparse_class)(sums[i])
        return tuple(sums)


def cannot_be_added(one: Any, other: Any) -> ValueError:
    """Make the error for tuples of different layouts."""
    shapes = [[part.shape for part in layout] for layout in (one, other)]
    return ValueError(
        f"blocks gave arrays that cannot be added: shapes {shapes[0]} and {shapes[1]}; "
        "a block function must return the same shapes for every block."
    )
