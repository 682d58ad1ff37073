"""Two loops whose numbers stay in vector registers: a small matrix product, and a Gaussian.

numba compiles loops over arrays, whose elements live in memory. A product at the full speed of a
processor needs its sums in vector registers, so these are written in the language of the compiler
behind numba. Every sum runs over its terms in order, each added with one rounding (fused
multiply-add): the bits of a row's result depend neither on its neighbours nor on the width of the
vectors.
"""

from __future__ import annotations

import math
import struct
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from biglp._lowrank.compiled import vector_lanes

ROWS = 6
"""Rows of a result that are made at once. With 4 vectors (AVX-512) or 2 (AVX2) of each, sums and
operands just fit the 32 or 16 registers."""
LANES = vector_lanes()
MOST_VECTORS = 4 if LANES == 16 else 2
INDEX = ir.IntType(64)
LOG_2_REST = 2.3190468138462996e-17
"""What log 2 has beyond float64."""


def product_of(n_vectors: int) -> Any:
    """Make ``multiply(a, b, places, out)`` for results of ``ROWS`` rows and so many vectors.

    It finds ``out[r, c] = Σ_p a[r, p] · b[p, c]`` for arrays of one type, given as where they begin
    and how far apart their elements are. ``places`` holds eight integers: begin of a, and steps
    from row to row and from p to p; begin of b, and step from p to p; number of terms, 1 or more;
    begin of out, and step from row to row. Columns of b and out are neighbours.
    """

    @intrinsic  # type: ignore[untyped-decorator]
    def multiply(typing_context: Any, a: Any, b: Any, places: Any, out: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            _Product(context, builder, signature.args).write(values, n_vectors)
            return context.get_dummy_value()

        return types.void(a, b, places, out), generate

    return multiply


@intrinsic  # type: ignore[untyped-decorator]
def gaussians(
    typing_context: Any, values: Any, shifts: Any, places: Any, out: Any, sums: Any
) -> Any:
    """Write exp(min(v − length − norm, 0)) for each of a row's values v, and add it to ``sums``.

    ``shifts`` is a tuple of the row's norm and an array of lengths, one for each value; ``places``
    holds five integers: where the row begins in ``values``, the vectors it has, 1 or more; where it
    begins in ``out`` and how many numbers are written there; where it begins in ``sums``.
    """

    def generate(context: Any, builder: Any, signature: Any, found: Any) -> Any:
        _Gaussian(context, builder, signature.args).write(found)
        return context.get_dummy_value()

    return types.void(values, shifts, places, out, sums), generate


@intrinsic  # type: ignore[untyped-decorator]
def fetch(typing_context: Any, array: Any, first: Any) -> Any:
    """Ask for the cache line of an element that will be read soon; nothing is read beyond."""

    def generate(context: Any, builder: Any, signature: Any, found: Any) -> Any:
        writer = _Writer(context, builder, signature.args)
        place = builder.bitcast(writer.pointer(0, *found), ir.IntType(8).as_pointer())
        kind = ir.FunctionType(ir.VoidType(), [place.type, *[ir.IntType(32)] * 3])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        builder.call(function, [place, *(ir.Constant(ir.IntType(32), i) for i in (0, 3, 1))])
        return context.get_dummy_value()

    return types.void(array, first), generate


class _Writer:
    """Writes instructions on vectors of the type of the first argument's elements."""

    def __init__(self, context: Any, builder: Any, arguments: Any) -> None:
        self.context, self.builder, self.types = context, builder, arguments
        self.bits = self.types[0].dtype.bitwidth
        self.element = ir.FloatType() if self.bits == 32 else ir.DoubleType()
        self.bytes, self.lanes = self.bits // 8, LANES * 32 // self.bits
        self.vector = ir.VectorType(self.element, self.lanes)
        name = f"llvm.fma.v{self.lanes}f{self.bits}"
        kind = ir.FunctionType(self.vector, [self.vector] * 3)
        self._fma = cgutils.get_or_insert_function(builder.module, kind, name)

    def fma(self, a: Any, b: Any, c: Any) -> Any:
        """Product of a and b, plus c, rounded once."""
        return self.builder.call(self._fma, [a, b, c])

    def constant(self, number: float) -> Any:
        """A vector of one number."""
        return ir.Constant(self.vector, [number] * self.lanes)

    def pointer(self, which: int, value: Any, first: Any) -> Any:
        """Where element ``first`` of an array is."""
        array = self.context.make_array(self.types[which])(self.context, self.builder, value)
        base = self.builder.bitcast(array.data, self.element.as_pointer())
        return self.builder.gep(base, [first])

    def moved(self, pointer: Any, count: Any, step: Any) -> Any:
        """The place ``count`` steps further."""
        return self.builder.gep(pointer, [self.builder.mul(count, step)])

    def vector_at(self, pointer: Any, v: int) -> Any:
        """The place of vector v after a place."""
        place = self.builder.gep(pointer, [INDEX(v * self.lanes)])
        return self.builder.bitcast(place, self.vector.as_pointer())

    def repeated(self, number: Any) -> Any:
        """A vector that holds a number in every place."""
        nothing = ir.Constant(self.vector, ir.Undefined)
        first = self.builder.insert_element(nothing, number, ir.Constant(ir.IntType(32), 0))
        zeros = ir.Constant(ir.VectorType(ir.IntType(32), self.lanes), [0] * self.lanes)
        return self.builder.shuffle_vector(first, nothing, zeros)


class _Product(_Writer):
    """A product of ``ROWS`` rows."""

    def write(self, values: Any, n_vectors: int) -> None:
        """Sum over p in a loop, then store."""
        builder = self.builder
        a, b, places, out = values
        at = [builder.extract_value(places, i) for i in range(8)]
        a = self.pointer(0, a, at[0])
        b = self.pointer(1, b, at[3])
        out = self.pointer(3, out, at[6])
        before = builder.block
        loop, after = (builder.append_basic_block(name) for name in ("terms", "sums"))
        builder.branch(loop)
        builder.position_at_end(loop)
        p = builder.phi(INDEX)
        p.add_incoming(INDEX(0), before)
        sums = [builder.phi(self.vector) for _ in range(ROWS * n_vectors)]
        added = self.terms(sums, self.moved(a, p, at[2]), self.moved(b, p, at[4]), at[1])
        following = builder.add(p, INDEX(1))
        p.add_incoming(following, loop)
        for total, value in zip(sums, added, strict=True):
            total.add_incoming(self.constant(0.0), before)
            total.add_incoming(value, loop)
        builder.cbranch(builder.icmp_signed("<", following, at[5]), loop, after)
        builder.position_at_end(after)
        for i, value in enumerate(added):
            row, v = divmod(i, n_vectors)
            place = self.moved(out, INDEX(row), at[7])
            builder.store(value, self.vector_at(place, v), align=self.bytes)

    def terms(self, sums: list[Any], a: Any, b: Any, a_row: Any) -> list[Any]:
        """Add one term to every sum."""
        n_vectors = len(sums) // ROWS
        vectors = [
            self.builder.load(self.vector_at(b, v), align=self.bytes) for v in range(n_vectors)
        ]
        added = []
        for row in range(ROWS):
            number = self.builder.load(self.moved(a, INDEX(row), a_row), align=self.bytes)
            everywhere = self.repeated(number)
            for v in range(n_vectors):
                added.append(self.fma(everywhere, vectors[v], sums[row * n_vectors + v]))
        return added


class _Gaussian(_Writer):
    """The Gaussian of a row's distances.

    With n = x / log 2, rounded, eˣ = 2ⁿ · eʳ where |r| ≤ log(2) / 2, and a few terms of the series
    give eʳ to about one unit in the last place. 2ⁿ is made from its bits, in two halves, because it
    may be too small for one.
    """

    def write(self, found: Any) -> None:
        """Go over the vectors in a loop."""
        builder = self.builder
        values, shifts, places, out, sums = found
        norm, lengths = (builder.extract_value(shifts, i) for i in range(2))
        at = [builder.extract_value(places, i) for i in range(5)]
        kinds = {0: values, 3: out, 4: sums}
        firsts = {0: at[0], 3: at[2], 4: at[4]}
        values, out, sums = (self.pointer(i, kinds[i], firsts[i]) for i in kinds)
        self.types = (self.types[1][1],)
        lengths = self.pointer(0, lengths, INDEX(0))
        norm = self.repeated(norm)
        before = builder.block
        loop, after = (builder.append_basic_block(name) for name in ("vectors", "done"))
        builder.branch(loop)
        builder.position_at_end(loop)
        v = builder.phi(INDEX)
        v.add_incoming(INDEX(0), before)
        first = builder.mul(v, INDEX(self.lanes))
        x, length, total = (
            builder.load(self.vector_at(builder.gep(base, [first]), 0), align=self.bytes)
            for base in (values, lengths, sums)
        )
        x = builder.fsub(builder.fsub(x, length), norm)
        x = self.exponential(self.chosen("<", x, self.constant(0.0)))
        place = self.vector_at(builder.gep(sums, [first]), 0)
        builder.store(builder.fadd(total, x), place, align=self.bytes)
        self.store_some(x, builder.gep(out, [first]), builder.sub(at[3], first))
        following = builder.add(v, INDEX(1))
        v.add_incoming(following, loop)
        builder.cbranch(builder.icmp_signed("<", following, at[1]), loop, after)
        builder.position_at_end(after)

    def store_some(self, x: Any, pointer: Any, count: Any) -> None:
        """Store the first ``count`` numbers of a vector, or all of them."""
        indices = ir.VectorType(INDEX, self.lanes)
        nothing = ir.Constant(indices, ir.Undefined)
        first = self.builder.insert_element(nothing, count, ir.Constant(ir.IntType(32), 0))
        zeros = ir.Constant(ir.VectorType(ir.IntType(32), self.lanes), [0] * self.lanes)
        counts = self.builder.shuffle_vector(first, nothing, zeros)
        lanes = ir.Constant(indices, list(range(self.lanes)))
        mask = self.builder.icmp_signed("<", lanes, counts)
        place = self.builder.bitcast(pointer, self.vector.as_pointer())
        arguments = [x, place, ir.Constant(ir.IntType(32), self.bytes), mask]
        kind = ir.FunctionType(ir.VoidType(), [argument.type for argument in arguments])
        name = f"llvm.masked.store.v{self.lanes}f{self.bits}.p0"
        function = cgutils.get_or_insert_function(self.builder.module, kind, name)
        self.builder.call(function, arguments)

    def exponential(self, x: Any) -> Any:
        """Exponential of x ≤ 0."""
        single, builder = self.bits == 32, self.builder
        # Where x is lower the exponential is zero.
        x = self.chosen(">", x, self.constant(-104.0 if single else -746.0))
        # Adding this puts the whole number into the last bits.
        rounder = 3.0 * 2.0 ** (22 if single else 51)
        shifted = self.fma(x, self.constant(1.0 / math.log(2.0)), self.constant(rounder))
        n = builder.fsub(shifted, self.constant(rounder))
        # The product of n and the high part of log 2 is exact.
        scale = 2.0 ** (14 if single else 41)
        high = math.floor(math.log(2.0) * scale) / scale
        low = math.log(2.0) - high + LOG_2_REST
        r = self.fma(n, self.constant(-low), self.fma(n, self.constant(-high), x))
        degree = 7 if single else 13  # the next term is less than a tenth of a unit
        series = self.constant(1.0 / math.factorial(degree))
        for i in range(degree - 1, -1, -1):
            series = self.fma(series, r, self.constant(1.0 / math.factorial(i)))
        bits = struct.unpack(
            "<i" if single else "<q", struct.pack("<f" if single else "<d", rounder)
        )
        whole = builder.sub(builder.bitcast(shifted, self.integers), self.whole(bits[0]))
        half = builder.ashr(whole, self.whole(1))
        for power in (half, builder.sub(whole, half)):
            exponent = builder.add(power, self.whole(127 if single else 1023))
            number = builder.shl(exponent, self.whole(23 if single else 52))
            series = builder.fmul(series, builder.bitcast(number, self.vector))
        return series

    @property
    def integers(self) -> Any:
        """Vectors of whole numbers as long as the others."""
        return ir.VectorType(ir.IntType(self.bits), self.lanes)

    def whole(self, number: int) -> Any:
        """A vector of one whole number."""
        return ir.Constant(self.integers, [number] * self.lanes)

    def chosen(self, comparison: str, x: Any, other: Any) -> Any:
        """X where it compares so with the other, which stands for NaN too."""
        return self.builder.select(self.builder.fcmp_ordered(comparison, x, other), x, other)
