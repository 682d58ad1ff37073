"""The compiled Gram matrix of a block's features, which are normalised on the way.

Some hundred rows are normalised, summed, and copied to a tile that stays in the second cache. Of
their Gram matrix the upper triangle is made, four rows by a few vectors at once in registers, and
added in float64. Where the columns do not fill their vectors, the gap comes before the first one:
the first rows of the triangle are the longest, and so the fewest cells are made for nothing.
"""

from __future__ import annotations

import threading
from functools import cache
from typing import Any

import numpy as np

from biglp._core.instructions import DOUBLE, LONG
from biglp._core.jit import Compiled
from biglp._lowrank.compiled.vectors import VECTOR_BYTES, Vectors, registers

ROWS_AT_ONCE = 256
"""Rows of a tile: the second cache holds it, and each is worth a float64 addition of the matrix."""
CELLS = 4
"""Rows of the triangle whose sums are in registers, for some vectors."""
MOST_VECTORS = 6 if registers() == 32 else 1

_own = threading.local()  # what a thread works in


def normalised_gram(features: np.ndarray, factors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Multiply each row of features by its factor, in place; return F̄ᵀF̄ and F̄ᵀ1 in float64."""
    dtype, (n_rows, p) = features.dtype, features.shape
    lanes = VECTOR_BYTES // dtype.itemsize
    width = -(-p // lanes) * lanes
    tile, wide = _room(width, dtype)
    wide[:] = 0
    found = np.empty((p, p))
    if n_rows == 0:
        return np.zeros((p, p)), np.zeros(p)
    sizes = np.array([n_rows, p], dtype=np.int64)
    compiled_gram(dtype.itemsize == 8)(features, factors, tile, wide, found, sizes)
    return found, wide[width, width - p :].copy()


def _room(width: int, dtype: np.dtype[Any]) -> tuple[np.ndarray, np.ndarray]:
    """A tile, and sums in float64 whose last line is the totals; the same for all of a thread."""
    rooms: dict[Any, tuple[np.ndarray, np.ndarray]] = _own.__dict__
    key = f"{width}, {dtype}"
    if key not in rooms:
        rooms[key] = (
            _aligned((ROWS_AT_ONCE, width), dtype),
            _aligned((width + 1, width), np.dtype(float)),
        )
    return rooms[key]


def _aligned(shape: tuple[int, int], dtype: np.dtype[Any]) -> np.ndarray:
    """Room that begins on a cache line: a vector across two of them is read twice."""
    n_bytes = shape[0] * shape[1] * dtype.itemsize
    room = np.zeros(n_bytes + VECTOR_BYTES, dtype=np.uint8)
    first = -room.ctypes.data % VECTOR_BYTES
    return room[first : first + n_bytes].view(dtype).reshape(shape)


@cache
def compiled_gram(double: bool) -> Compiled:
    """Compile the loops for this processor."""
    return Compiled(_Writer(double).function)


class _Writer(Vectors):
    """Writes the function for one type of numbers."""

    def __init__(self, double: bool) -> None:
        super().__init__("gram", [None, None, None, DOUBLE, DOUBLE, LONG], double)
        self.write()
        self.builder.ret_void()

    def write(self) -> None:
        """Go over tiles of rows, then write the matrix from its upper triangle."""
        b, lanes = self.builder, LONG(self.lanes)
        self.features, self.factors, self.tile, self.wide, out, sizes = self.function.args
        n_rows, self.p = (b.load(self.at(sizes, i)) for i in range(2))
        self.n_vectors = b.udiv(b.add(self.p, b.sub(lanes, LONG(1))), lanes)
        self.width = b.mul(self.n_vectors, lanes)
        self.gap = b.sub(self.width, self.p)

        def part(begin: Any, _: Any) -> None:
            count = self.smaller(b.sub(n_rows, begin), LONG(ROWS_AT_ONCE))
            self.scale(begin, count)
            self.multiply(count)

        self.loop(LONG(0), n_rows, part, step=LONG(ROWS_AT_ONCE))

        def row(i: Any, _: Any) -> None:
            line = self.at(self.wide, b.add(b.mul(b.add(i, self.gap), self.width), self.gap))

            def cell(j: Any, _: Any) -> None:
                value = b.load(self.at(line, j))
                b.store(value, self.at(out, b.add(b.mul(i, self.p), j)))
                b.store(value, self.at(out, b.add(b.mul(j, self.p), i)))

            self.loop(i, self.p, cell)

        self.loop(LONG(0), self.p, row)

    def scale(self, first: Any, count: Any) -> None:
        """Normalise some rows, copy them to the tile, and add them to the totals."""
        b = self.builder
        mask = self.lanes_from(self.gap)

        def vector(v: Any, masked: bool) -> None:
            column = b.mul(v, LONG(self.lanes))

            def row(r: Any, total: list[Any]) -> list[Any]:
                number = b.add(first, r)
                place = b.add(b.sub(b.mul(number, self.p), self.gap), column)
                factor = self.repeated(b.load(self.at(self.factors, number)), self.numbers)
                if masked:
                    x = b.fmul(self.load_some(self.features, place, mask), factor)
                    self.store_some(x, self.features, place, mask)
                else:
                    x = b.fmul(self.load(self.features, place), factor)
                    self.store(x, self.features, place)
                self.store(x, self.tile, b.add(b.mul(r, self.width), column))
                return [b.fadd(total[0], x)]

            (total,) = self.loop(LONG(0), count, row, [self.constant(0.0)])
            self.add_to_doubles(total, self.wide, b.add(b.mul(self.width, self.width), column))

        vector(LONG(0), masked=True)
        with b.if_then(b.icmp_unsigned(">", self.n_vectors, LONG(1))):
            self.loop(LONG(1), self.n_vectors, lambda v, _: vector(v, masked=False))

    def multiply(self, count: Any) -> None:
        """Add the upper triangle of the tile's Gram matrix to the sums."""
        b = self.builder

        def cells(i: Any, _: Any) -> None:
            def tile(n: int, v: Any) -> None:
                column = b.mul(v, LONG(self.lanes))

                def term(r: Any, sums: list[Any]) -> list[Any]:
                    line = self.at(self.tile, b.mul(r, self.width))
                    others = self.at(line, column)
                    vectors = [self.load(others, j * self.lanes) for j in range(n)]
                    added = []
                    for c in range(CELLS):
                        number = b.load(self.at(line, b.add(i, LONG(c))))
                        x = self.repeated(number, self.numbers)
                        here = sums[c * n : (c + 1) * n]
                        added += [self.fma(x, y, z) for y, z in zip(vectors, here, strict=True)]
                    return added

                found = self.loop(LONG(0), count, term, [self.constant(0.0)] * (CELLS * n))
                for c in range(CELLS):
                    line = b.add(b.mul(b.add(i, LONG(c)), self.width), column)
                    for j in range(n):
                        place = b.add(line, LONG(j * self.lanes))
                        self.add_to_doubles(found[c * n + j], self.wide, place)

            first = b.udiv(i, LONG(self.lanes))
            self.in_groups(first, self.n_vectors, MOST_VECTORS, tile)

        first = b.mul(b.udiv(self.gap, LONG(CELLS)), LONG(CELLS))
        self.loop(first, self.width, cells, step=LONG(CELLS))
