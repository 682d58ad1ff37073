"""The compiled search for the landmarks nearest to each row.

A matrix product that writes all distances, from which others then take the smallest few, spends a
third of its time on taking them. Here the distances of a few rows to a panel of landmarks are
compared with each row's farthest neighbour so far while they are in registers, and after the first
panel few are nearer. Landmarks of a panel stay in the first cache while rows pass by. Every sum
runs over its terms in order, each added with one rounding: the bits of a row's distances depend
neither on its neighbours nor on the width of the vectors. Of equally near landmarks the first is
taken, as everywhere.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir

from biglp._core.instructions import DOUBLE, INT, LONG, SINGLE, Instructions
from biglp._core.jit import Compiled, compiled_once, vector_lanes

ROWS = 6
"""Rows whose distances are found at once. With 4 vectors (AVX-512) or 2 (AVX2) of each, sums and
operands just fit the 32 or 16 registers."""
ROWS_AT_ONCE = 16 * ROWS
"""Rows that pass a panel before the next one comes: what the second cache holds."""


class Panels(NamedTuple):
    """Landmarks as they are searched."""

    landmarks: np.ndarray  # (panels, m, width), times −2
    lengths: np.ndarray  # (panels · width,), ‖l‖²; infinite where there is no landmark


def panels(landmarks: np.ndarray) -> Panels:
    """Cut landmarks into panels, in their own type."""
    k, m = landmarks.shape
    width = compiled_search(landmarks.dtype.itemsize == 8).width
    n_panels = -(-k // width)
    padded = np.zeros((n_panels * width, m), landmarks.dtype)
    padded[:k] = landmarks * landmarks.dtype.type(-2)
    lengths = np.full(n_panels * width, np.inf, landmarks.dtype)
    lengths[:k] = np.einsum("ij,ij->i", landmarks, landmarks)
    cut = padded.reshape(n_panels, width, m).transpose(0, 2, 1)
    return Panels(np.ascontiguousarray(cut), lengths)


def nearest(rows: np.ndarray, searched: Panels, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of the ``count`` nearest landmarks of each row, and ‖x − l‖² − ‖x‖².

    Where a row is not finite, neither are its distances.
    """
    dtype, n_rows = searched.landmarks.dtype, len(rows)
    if n_rows < ROWS:
        longer = np.zeros((ROWS, rows.shape[1]), dtype)
        longer[:n_rows] = rows
        columns, values = nearest(longer, searched, count)
        return columns[:n_rows], values[:n_rows]
    columns = np.zeros((n_rows, count), np.int32)
    values = np.full((n_rows, count), np.inf, dtype)
    sizes = np.array([*rows.shape, len(searched.landmarks), count], dtype=np.int64)
    search = compiled_search(dtype.itemsize == 8).function
    search(np.require(rows, dtype, ["C", "A"]), *searched, values, columns, sizes)
    return columns, values


class Search(NamedTuple):
    """The search for one type of numbers."""

    width: int
    """Landmarks of a panel."""
    function: Compiled


@compiled_once
def compiled_search(double: bool) -> Search:
    """Compile the search for this processor."""
    writer = _Writer(DOUBLE if double else SINGLE, vector_lanes())
    return Search(writer.width, Compiled(writer.function))


class _Writer(Instructions):
    """Writes the function."""

    def __init__(self, kind: Any, lanes: int) -> None:
        self.n_vectors = 4 if lanes == 16 else 2
        bits = 64 if kind == DOUBLE else 32
        lanes = lanes * 32 // bits
        self.kind, self.width = kind, self.n_vectors * lanes
        numbers = kind.as_pointer()
        arguments = [*[numbers] * 4, INT.as_pointer(), LONG.as_pointer()]
        module = ir.Module("search")
        self.function = ir.Function(module, ir.FunctionType(ir.VoidType(), arguments), "search")
        for argument in self.function.args:
            argument.add_attribute("noalias")
        super().__init__(self.function, lanes)
        self.numbers = ir.VectorType(kind, lanes)
        signature = ir.FunctionType(self.numbers, [self.numbers] * 3)
        self.fma = ir.Function(module, signature, f"llvm.fma.v{lanes}f{bits}")
        signature = ir.FunctionType(kind, [self.numbers])
        self.least = ir.Function(module, signature, f"llvm.vector.reduce.fmin.v{lanes}f{bits}")
        signature = ir.FunctionType(LONG, [LONG, ir.IntType(1)])
        self.lowest_bit = ir.Function(module, signature, "llvm.cttz.i64")
        self.tile = self.builder.alloca(kind, ROWS * self.width)
        self.below = self.builder.alloca(LONG, ROWS)
        self.tile.align = 64
        self.write()
        self.builder.ret_void()

    def write(self) -> None:
        """Go over parts of the rows, panels, and groups of rows."""
        b = self.builder
        rows, landmarks, lengths, values, columns, sizes = self.function.args
        n_rows, m, n_panels, self.count = (b.load(self.at(sizes, i)) for i in range(4))
        last = b.sub(n_rows, LONG(ROWS))

        def part(begin: Any, _: Any) -> None:
            end = self.smaller(b.add(begin, LONG(ROWS_AT_ONCE)), n_rows)

            def panel(number: Any, _: Any) -> None:
                first = b.mul(number, LONG(self.width))
                searched = self.at(landmarks, b.mul(first, m)), self.at(lengths, first)

                def group(begin: Any, _: Any) -> None:
                    # A last group that is too short is moved up; rows that were looked at are done.
                    moved = self.smaller(begin, last)
                    to = b.mul(moved, self.count)
                    kept = self.at(values, to), self.at(columns, to)
                    some = self.compare((self.at(rows, b.mul(moved, m)), m), searched, kept[0])
                    with b.if_then(b.icmp_unsigned("!=", some, LONG(0))):
                        self.loop(b.sub(begin, moved), LONG(ROWS), lambda r, _: look(r, kept))

                def look(r: Any, kept: tuple[Any, Any]) -> None:
                    to = b.mul(r, self.count)
                    here = self.at(kept[0], to), self.at(kept[1], to)
                    is_first = b.icmp_unsigned("==", number, LONG(0))
                    with b.if_else(is_first) as (at_first, later):
                        with at_first:
                            self.take_out(r, here)
                        with later:
                            self.put_in(r, first, here)

                self.loop(begin, end, group, step=LONG(ROWS))

            self.loop(LONG(0), n_panels, panel)

        self.loop(LONG(0), n_rows, part, step=LONG(ROWS_AT_ONCE))

    def compare(self, rows: tuple[Any, Any], searched: tuple[Any, Any], values: Any) -> Any:
        """Find the distances of a tile, and which are below the row's last value; return all bits.

        ``lengths[c] + Σ_p rows[r, p] · panel[p, c]``.
        """
        b = self.builder
        first, m = rows
        panel, lengths = searched

        def term(p: Any, sums: list[Any]) -> list[Any]:
            place = self.at(panel, b.mul(p, LONG(self.width)))
            vectors, added = self.loaded(place), []
            for row in range(ROWS):
                number = b.load(self.at(first, b.add(b.mul(LONG(row), m), p)))
                x = self.repeated(number, self.numbers)
                here = sums[row * self.n_vectors : (row + 1) * self.n_vectors]
                added += [b.call(self.fma, [x, y, z]) for y, z in zip(vectors, here, strict=True)]
            return added

        found = self.loop(LONG(0), m, term, self.loaded(lengths) * ROWS)
        some = LONG(0)
        for row in range(ROWS):
            here = found[row * self.n_vectors : (row + 1) * self.n_vectors]
            for v, vector in enumerate(here):
                place = self.vector(self.tile, row * self.width + v * self.lanes, self.numbers)
                b.store(vector, place, align=8)
            last = b.sub(b.mul(LONG(row + 1), self.count), LONG(1))
            limit = self.repeated(b.load(self.at(values, last)), self.numbers)
            bits = self.bits_of("<", here, limit)  # NaN is not
            b.store(bits, self.at(self.below, row))
            some = b.or_(some, bits)
        return some

    def take_out(self, r: Any, to: tuple[Any, Any]) -> None:
        """Of the first panel all are nearer than none: take the least out, one after the other."""
        b = self.builder
        row = self.at(self.tile, b.mul(r, LONG(self.width)))

        def one(j: Any, _: Any) -> None:
            vectors = self.loaded(row)
            least = vectors[0]
            for vector in vectors[1:]:
                least = b.select(b.fcmp_ordered("<", vector, least), vector, least)
            value = b.call(self.least, [least])
            bits = self.bits_of("==", vectors, self.repeated(value, self.numbers))
            # No bit is set in a row of NaN, of which one column is as good as another.
            column = self.smaller(self.lowest(bits), LONG(self.width - 1))
            b.store(ir.Constant(self.kind, float("inf")), self.at(row, column))
            b.store(value, self.at(to[0], j))
            b.store(b.trunc(column, INT), self.at(to[1], j))

        self.loop(LONG(0), self.count, one)

    def put_in(self, r: Any, first: Any, to: tuple[Any, Any]) -> None:
        """Put the distances of a later panel that are near enough where they belong."""
        b = self.builder
        values, columns = to
        row, one = self.at(self.tile, b.mul(r, LONG(self.width))), LONG(1)
        last = b.sub(self.count, one)

        def next_bit(_: Any, left: list[Any]) -> list[Any]:
            column = self.lowest(left[0])
            distance = b.load(self.at(row, column))

            def before(j: Any) -> Any:
                return self.larger(b.sub(j, one), LONG(0))

            def is_farther(j: list[Any]) -> Any:
                farther = b.fcmp_ordered(">", b.load(self.at(values, before(j[0]))), distance)
                return b.and_(farther, b.icmp_signed(">", j[0], LONG(0)))

            def move(_: Any, j: list[Any]) -> list[Any]:
                for array in (values, columns):
                    b.store(b.load(self.at(array, before(j[0]))), self.at(array, j[0]))
                return [before(j[0])]

            with b.if_then(b.fcmp_ordered("<", distance, b.load(self.at(values, last)))):
                (place,) = self.loop_while([last], is_farther, move)
                b.store(distance, self.at(values, place))
                b.store(b.trunc(b.add(first, column), INT), self.at(columns, place))
            return [b.and_(left[0], b.sub(left[0], one))]

        def any_left(left: list[Any]) -> Any:
            return b.icmp_unsigned("!=", left[0], LONG(0))

        self.loop_while([b.load(self.at(self.below, r))], any_left, next_bit)

    def loaded(self, place: Any) -> list[Any]:
        """The vectors of a panel's width that begin at a place."""
        b = self.builder
        places = (self.vector(place, v * self.lanes, self.numbers) for v in range(self.n_vectors))
        return [b.load(one, align=4) for one in places]

    def bits_of(self, comparison: str, found: list[Any], other: Any) -> Any:
        """Bits of the numbers in some vectors that compare so with those of another one."""
        b, bits = self.builder, LONG(0)
        for v, vector in enumerate(found):
            holds = b.fcmp_ordered(comparison, vector, other)
            part = b.zext(b.bitcast(holds, ir.IntType(self.lanes)), LONG)
            bits = b.or_(bits, b.shl(part, LONG(v * self.lanes)))
        return bits

    def lowest(self, bits: Any) -> Any:
        """Number of the lowest bit that is set; 64 where none is."""
        return self.builder.call(self.lowest_bit, [bits, ir.IntType(1)(0)])
