"""The compiled Gram matrix of a block's features, which are normalised on the way.

Some hundred rows are normalised, summed, and copied to a tile that stays in the second cache. Of
their Gram matrix the upper triangle is made, four rows by a few vectors at once in registers, and
added in float64. Where the columns do not fill their vectors, the gap comes before the first one:
the first rows of the triangle are the longest, and so the fewest cells are made for nothing.
"""

from __future__ import annotations

import math
import threading
from typing import TYPE_CHECKING, Any

import numpy as np
from llvmlite import ir

from biglp._core.instructions import DOUBLE, LONG
from biglp._core.jit import Compiled, compiled_once
from biglp._lowrank.compiled.vectors import VECTOR_BYTES, Vectors, registers

if TYPE_CHECKING:
    from biglp._propagate.normalise import Normalisation

SQUARES_ROWS = 64
"""Rows of a tile: the second cache holds it, and each is worth a float64 addition of the matrix."""
CELLS = 4
"""Rows of the triangle whose sums are in registers, for some vectors."""
MOST_VECTORS = 6 if registers() == 32 else 1

_own = threading.local()  # what a thread works in


def gram(features: np.ndarray, normalisation: Normalisation) -> tuple[np.ndarray, np.ndarray, int]:
    """Normalise features in place; return F̄ᵀF̄, F̄ᵀ1 and how many rows were repaired."""
    dtype, (n_rows, p) = features.dtype, features.shape
    lanes = VECTOR_BYTES // dtype.itemsize
    width = -(-p // lanes) * lanes
    tile, wide, weights = _room(width, dtype)
    wide[:], found, factors = 0, np.empty((p, p)), np.empty(n_rows + lanes, dtype)
    weights[width - p :] = normalisation.weights
    least = np.array([normalisation.least], dtype)
    sizes, n_repaired = np.array([n_rows, p, 0, 0], dtype=np.int64), 0
    function = compiled_gram(dtype.itemsize == 8)
    while True:
        function(features, weights, least, factors, tile, wide, found, sizes)
        begin = int(sizes[2])
        if begin >= n_rows:
            return found, wide[width, width - p :].copy(), n_repaired
        # The loops have come to rows that are to be looked at more closely, and go on after that.
        end, sizes[3] = min(begin + SQUARES_ROWS, n_rows), 1
        factors[begin:end], n_more = normalisation.factors(features[begin:end])
        n_repaired += n_more


def _room(width: int, dtype: np.dtype[Any]) -> tuple[np.ndarray, ...]:
    """A tile, sums in float64 whose last line is the totals, and weights; the same for a thread."""
    rooms: dict[Any, tuple[np.ndarray, ...]] = _own.__dict__
    key = f"{width}, {dtype}"
    if key not in rooms:
        wide = _aligned((width + 1, width), np.dtype(np.float64))
        rooms[key] = _aligned((SQUARES_ROWS, width), dtype), wide, _aligned((width,), dtype)
    return rooms[key]


def _aligned(shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
    """Room that begins on a cache line: a vector across two of them is read twice."""
    n_bytes = math.prod(shape) * dtype.itemsize
    room = np.zeros(n_bytes + VECTOR_BYTES, dtype=np.uint8)
    first = -room.ctypes.data % VECTOR_BYTES
    return room[first : first + n_bytes].view(dtype).reshape(shape)


@compiled_once
def compiled_gram(double: bool) -> Compiled:
    """Compile the loops for this processor."""
    return Compiled(_SquaresWriter(double).function)


class _SquaresWriter(Vectors):
    """Writes the function for one type of numbers."""

    def __init__(self, double: bool) -> None:
        super().__init__("gram", [*[None] * 5, DOUBLE, DOUBLE, LONG], double)
        self.write()
        self.builder.ret_void()

    def write(self) -> None:
        """Go over tiles of rows, then write the matrix from its upper triangle."""
        b, lanes = self.builder, LONG(self.lanes)
        arguments = self.function.args
        self.features, self.weights, least, self.factors, self.tile, self.wide = arguments[:6]
        out, sizes = arguments[6:]
        n_rows, self.p, first, given = (b.load(self.at(sizes, i)) for i in range(4))
        self.n_vectors = b.udiv(b.add(self.p, b.sub(lanes, LONG(1))), lanes)
        self.width = b.mul(self.n_vectors, lanes)
        self.gap = b.sub(self.width, self.p)
        self.mask = self.lanes_from(self.gap)
        limit = b.load(least)

        def part(begin: Any, given: list[Any]) -> list[Any]:
            count = self.smaller(b.sub(n_rows, begin), LONG(SQUARES_ROWS))
            with b.if_then(b.icmp_unsigned("==", given[0], LONG(0))):
                low = self.find_factors(begin, count, limit)
                with b.if_then(low):
                    b.store(begin, self.at(sizes, 2))
                    b.ret_void()
            self.scale(begin, count)
            self.multiply(begin, count)
            return [LONG(0)]

        self.loop(first, n_rows, part, [given], step=LONG(SQUARES_ROWS))
        b.store(n_rows, self.at(sizes, 2))

        def row(i: Any, _: Any) -> None:
            line = self.at(self.wide, b.add(b.mul(b.add(i, self.gap), self.width), self.gap))

            def cell(j: Any, _: Any) -> None:
                value = b.load(self.at(line, j))
                b.store(value, self.at(out, b.add(b.mul(i, self.p), j)))
                b.store(value, self.at(out, b.add(b.mul(j, self.p), i)))

            self.loop(i, self.p, cell)

        self.loop(LONG(0), self.p, row)

    def find_factors(self, first: Any, count: Any, limit: Any) -> Any:
        """Keep 1/√d of some rows; return whether a degree d is too low, or not a number."""
        b = self.builder
        end = b.add(first, count)

        def degree(r: Any, _: Any) -> None:
            line = self.at(self.features, b.sub(b.mul(r, self.p), self.gap))
            begun = b.fmul(self.load_some(line, 0, self.mask), self.load(self.weights, 0))

            def term(_: Any, sums: list[Any]) -> list[Any]:
                column, total = sums
                x, y = self.load(line, column), self.load(self.weights, column)
                return [b.add(column, LONG(self.lanes)), self.fma(x, y, total)]

            def going(sums: list[Any]) -> Any:
                return b.icmp_signed("<", sums[0], self.width)

            _, total = self.loop_while([LONG(self.lanes), begun], going, term)
            b.store(self.halved(total), self.at(self.factors, r))

        def invert(r: Any, low: list[Any]) -> list[Any]:
            degrees = self.load(self.factors, r)
            high = b.fcmp_ordered(">", degrees, self.repeated(limit, self.numbers))
            bad = b.and_(b.not_(high), b.not_(self.lanes_from(b.sub(end, r))))
            root = self.call(f"llvm.sqrt.{self.name}", self.numbers, degrees)
            self.store(b.fdiv(self.constant(1.0), root), self.factors, r)
            return [b.or_(low[0], b.bitcast(bad, ir.IntType(self.lanes)))]

        none = ir.IntType(self.lanes)(0)
        self.loop(first, end, degree)
        (low,) = self.loop(first, end, invert, [none], step=LONG(self.lanes))
        return b.icmp_unsigned("!=", low, none)

    def scale(self, first: Any, count: Any) -> None:
        """Normalise some rows, copy them to the tile, and add them to the totals."""
        b = self.builder

        def vector(v: Any, masked: bool) -> None:
            column = b.mul(v, LONG(self.lanes))

            def row(r: Any, total: list[Any]) -> list[Any]:
                number = b.add(first, r)
                place = b.add(b.sub(b.mul(number, self.p), self.gap), column)
                factor = self.repeated(b.load(self.at(self.factors, number)), self.numbers)
                if masked:
                    x = b.fmul(self.load_some(self.features, place, self.mask), factor)
                    self.store_some(x, self.features, place, self.mask)
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

    def multiply(self, begin: Any, count: Any) -> None:
        """Add the upper triangle of the tile's Gram matrix to the sums."""
        b = self.builder
        following = b.mul(b.add(begin, LONG(SQUARES_ROWS)), self.p)

        def cells(i: Any, _: Any) -> None:
            # The next tile comes from memory meanwhile.
            some = b.add(following, b.mul(i, LONG(SQUARES_ROWS)))
            end = b.add(some, LONG(CELLS * SQUARES_ROWS))
            self.loop(some, end, lambda j, _: self.fetch(self.features, j), step=LONG(self.lanes))

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
