"""Distances of a few rows to a panel of landmarks, in vector registers, and which of them matter.

A matrix product that writes all distances, from which others then take the smallest few, spends a
third of its time on taking them. Here the distances of a tile are compared with what each of its
rows has as its farthest neighbour so far while they are still in registers. After the first
panels few are nearer.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from biglp._lowrank.compiled.registers import INDEX, MOST_VECTORS, ROWS, Product

BIT = ir.IntType(1)


@intrinsic  # type: ignore[untyped-decorator]
def distances(
    typing_context: Any, rows: Any, searched: Any, places: Any, limits: Any, tile: Any
) -> Any:
    """Find ``lengths[c] + Σ_p rows[r, p] · panels[p, c]``; return whether one is below its limit.

    ``searched`` is a tuple of panels and lengths; a panel has ``MOST_VECTORS`` vectors. ``places``
    holds seven integers: where the rows begin and the step from one to the next; where the panel
    begins, and its lengths; the number of terms, 1 or more; where the limits begin and the step
    from row to row. ``tile`` is a tuple of an array (ROWS, columns of a panel) for the distances
    and one of ROWS integers, of which bit c says that distance c is below the limit of the row.
    """

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return _Distances(context, builder, signature.args).write_tile(values)

    return types.int64(rows, searched, places, limits, tile), generate


@intrinsic  # type: ignore[untyped-decorator]
def take_least(typing_context: Any, tile: Any, first: Any) -> Any:
    """Column and value of the least number of a row of a tile, the first of equals.

    It is infinite in the tile afterwards. ``first`` is where the row begins. Of a row that is not a
    number one column is as good as another.
    """

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        found = _Distances(context, builder, signature.args).take_least(*values)
        return context.make_tuple(builder, signature.return_type, found)

    return types.Tuple((types.int64, tile.dtype))(tile, first), generate


@intrinsic  # type: ignore[untyped-decorator]
def lowest_bit(typing_context: Any, bits: Any) -> Any:
    """Number of the lowest bit that is set; there is one."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return trailing_zeros(builder, values[0])

    return types.int64(types.int64), generate


def trailing_zeros(builder: Any, bits: Any) -> Any:
    """Number of the lowest bit that is set; 64 where none is."""
    kind = ir.FunctionType(INDEX, [INDEX, BIT])
    count = cgutils.get_or_insert_function(builder.module, kind, "llvm.cttz.i64")
    return builder.call(count, [bits, BIT(0)])


class _Distances(Product):
    """A product that begins with the lengths of landmarks and ends with a comparison."""

    def write_tile(self, values: Any) -> Any:
        """Sum, compare, store."""
        builder = self.builder
        rows, searched, places, limits, tile = values
        panels, lengths, whole, bits = (
            builder.extract_value(pair, i) for pair in (searched, tile) for i in range(2)
        )
        at = [builder.extract_value(places, i) for i in range(7)]
        kinds, width = self.types, INDEX(MOST_VECTORS * self.lanes)
        self.types = (kinds[0], *kinds[1], kinds[3], kinds[4][0])
        a = (self.pointer(0, rows, at[0]), at[1], INDEX(1))
        b = (self.pointer(1, panels, at[2]), width)
        found = self.summed(a, b, at[4], self.loaded(self.pointer(2, lengths, at[3])) * ROWS)
        limits = self.pointer(3, limits, at[5])
        self.store(found, self.pointer(4, whole, INDEX(0)), width)
        array = self.context.make_array(kinds[4][1])(self.context, builder, bits)
        some = INDEX(0)
        for row in range(ROWS):
            place = self.moved(limits, INDEX(row), at[6])
            limit = self.repeated(builder.load(place, align=self.bytes))
            of_row = found[row * MOST_VECTORS : (row + 1) * MOST_VECTORS]
            below = self.bits_of("<", of_row, limit)  # NaN is not
            builder.store(below, builder.gep(array.data, [INDEX(row)]))
            some = builder.or_(some, below)
        return some

    def loaded(self, place: Any) -> list[Any]:
        """The vectors of a panel's width that begin at a place."""
        places = (self.vector_at(place, v) for v in range(MOST_VECTORS))
        return [self.builder.load(one, align=self.bytes) for one in places]

    def take_least(self, tile: Any, first: Any) -> tuple[Any, Any]:
        """Find the least of all vectors, then where it is."""
        builder = self.builder
        row = self.pointer(0, tile, first)
        found = self.loaded(row)
        least = found[0]
        for vector in found[1:]:
            least = builder.select(builder.fcmp_ordered("<", vector, least), vector, least)
        kind = ir.FunctionType(self.element, [self.vector])
        name = f"llvm.vector.reduce.fmin.v{self.lanes}f{self.bits}"
        value = builder.call(cgutils.get_or_insert_function(builder.module, kind, name), [least])
        column = trailing_zeros(builder, self.bits_of("==", found, self.repeated(value)))
        # No bit is set in a row of NaN.
        last = INDEX(MOST_VECTORS * self.lanes - 1)
        column = builder.select(builder.icmp_signed("<", column, last), column, last)
        builder.store(ir.Constant(self.element, float("inf")), builder.gep(row, [column]))
        return column, value

    def bits_of(self, comparison: str, found: list[Any], other: Any) -> Any:
        """Bits of the numbers in some vectors that compare so with those of another one."""
        builder, bits = self.builder, INDEX(0)
        for v, vector in enumerate(found):
            holds = builder.fcmp_ordered(comparison, vector, other)
            part = builder.zext(builder.bitcast(holds, ir.IntType(self.lanes)), INDEX)
            bits = builder.or_(bits, builder.shl(part, INDEX(v * self.lanes)))
        return bits
