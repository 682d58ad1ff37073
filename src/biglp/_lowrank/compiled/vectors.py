"""Vectors of 64 bytes, in the language of the compiler of :mod:`biglp._core.jit`.

They are those of AVX-512; for a processor with shorter ones the compiler makes two of each. What is
computed is the same then, number by number, and so are its bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir

from biglp._core.instructions import DOUBLE, INT, LONG, SINGLE, Instructions
from biglp._core.jit import vector_lanes

VECTOR_BYTES = 64
LOG_2_REST = 2.3190468138462996e-17
"""What log 2 has beyond float64."""


def registers() -> int:
    """Vectors of 64 bytes that the registers of this processor hold."""
    return 32 if 4 * vector_lanes() == VECTOR_BYTES else 8


class Vectors(Instructions):
    """Writes a function that takes pointers, with vectors of one type.

    Parameters
    ----------
    name : str
    arguments : sequence of types
        Of what its arguments point to; None stands for the type of the vectors.
    double : bool
        Whether that is float64, and not float32.
    """

    def __init__(self, name: str, arguments: Sequence[Any], double: bool) -> None:
        self.kind, self.bytes = (DOUBLE, 8) if double else (SINGLE, 4)
        pointers = [(kind or self.kind).as_pointer() for kind in arguments]
        self.module = ir.Module(name)
        self.function = ir.Function(self.module, ir.FunctionType(ir.VoidType(), pointers), name)
        for argument in self.function.args:
            argument.add_attribute("noalias")
        super().__init__(self.function, VECTOR_BYTES // self.bytes)
        self.numbers = ir.VectorType(self.kind, self.lanes)
        self.name = f"v{self.lanes}f{8 * self.bytes}"

    def call(self, name: str, kind: Any, *arguments: Any) -> Any:
        """Call one of LLVM's own functions that returns a type."""
        found = self.module.globals.get(name)
        if found is None:
            signature = ir.FunctionType(kind, [argument.type for argument in arguments])
            found = ir.Function(self.module, signature, name)
        return self.builder.call(found, arguments)

    def fma(self, x: Any, y: Any, z: Any) -> Any:
        """Product of x and y, plus z, rounded once."""
        return self.call(f"llvm.fma.{self.name}", self.numbers, x, y, z)

    def constant(self, number: float) -> Any:
        """A vector of one number."""
        return ir.Constant(self.numbers, [number] * self.lanes)

    def load(self, pointer: Any, place: Any) -> Any:
        """The vector that begins at an element."""
        return self.builder.load(self.vector(pointer, place, self.numbers), align=self.bytes)

    def store(self, value: Any, pointer: Any, place: Any) -> None:
        """Store a vector, of any length, where an element is."""
        self.builder.store(value, self.vector(pointer, place, value.type), align=self.bytes)

    def load_some(self, pointer: Any, place: Any, mask: Any) -> Any:
        """As :meth:`load`, with zeros, and nothing read, where the mask is not set."""
        where = self.vector(pointer, place, self.numbers)
        arguments = (where, INT(self.bytes), mask, self.constant(0.0))
        return self.call(f"llvm.masked.load.{self.name}.p0", self.numbers, *arguments)

    def store_some(self, value: Any, pointer: Any, place: Any, mask: Any) -> None:
        """Store numbers where the mask is set; nothing else is touched."""
        arguments = (value, self.vector(pointer, place, self.numbers), INT(self.bytes), mask)
        self.call(f"llvm.masked.store.{self.name}.p0", ir.VoidType(), *arguments)

    def fetch(self, pointer: Any, place: Any) -> None:
        """Ask for the cache line of an element, which may not be there, without reading it."""
        where = self.builder.bitcast(self.at(pointer, place), ir.IntType(8).as_pointer())
        self.call("llvm.prefetch.p0", ir.VoidType(), where, INT(0), INT(3), INT(1))

    def lanes_from(self, first: Any) -> Any:
        """Mask of the places from one on."""
        kind = ir.VectorType(LONG, self.lanes)
        places = ir.Constant(kind, list(range(self.lanes)))
        return self.builder.icmp_signed(">=", places, self.repeated(first, kind))

    def shuffled(self, x: Any, y: Any, places: Sequence[int]) -> Any:
        """A vector of numbers of two others, counted through."""
        kind = ir.VectorType(INT, len(places))
        return self.builder.shuffle_vector(x, y, ir.Constant(kind, list(places)))

    def halved(self, vector: Any) -> Any:
        """Sum of a vector's numbers, half added to half."""
        b, count = self.builder, self.lanes
        while count > 1:
            count //= 2
            low = self.shuffled(vector, vector, range(count))
            high = self.shuffled(vector, vector, range(count, 2 * count))
            vector = b.fadd(low, high)
        return b.extract_element(vector, LONG(0))

    def add_to_doubles(self, value: Any, pointer: Any, place: Any) -> None:
        """Add a vector to as many numbers in float64."""
        b, kind = self.builder, ir.VectorType(DOUBLE, self.lanes)
        where = self.vector(pointer, place, kind)
        wide = value if self.kind == DOUBLE else b.fpext(value, kind)
        b.store(b.fadd(b.load(where, align=8), wide), where, align=8)

    def in_groups(self, begin: Any, end: Any, most: int, body: Callable[[int, Any], None]) -> None:
        """Go over a range in groups of up to ``most``, of about equal size.

        ``body`` is written once for each size, and gets it with the first of a group.
        """
        b = self.builder

        def rest(at: list[Any]) -> Any:
            return b.icmp_signed("<", at[0], end)

        def group(_: Any, at: list[Any]) -> list[Any]:
            left = b.sub(end, at[0])
            groups = b.udiv(b.add(left, LONG(most - 1)), LONG(most))
            size = b.udiv(b.sub(b.add(left, groups), LONG(1)), groups)
            for count in range(1, most + 1):
                with b.if_then(b.icmp_unsigned("==", size, LONG(count))):
                    body(count, at[0])
            return [b.add(at[0], size)]

        self.loop_while([begin], rest, group)

    def exponential(self, x: Any) -> Any:
        """Exponential of x, or 1 where rounding made x more than zero.

        With n = x / log 2, rounded, eˣ = 2ⁿ · eʳ where |r| ≤ log(2) / 2, and a few terms of the
        series give eʳ to about one unit in the last place. n is added to the bits of its exponent;
        what would be too small for a normal number is zero.
        """
        single, b = self.bytes == 4, self.builder
        x = b.select(b.fcmp_ordered("<", x, self.constant(0.0)), x, self.constant(0.0))
        # Adding this puts the whole number into the last bits.
        rounder = 3.0 * 2.0 ** (22 if single else 51)
        shifted = self.fma(x, self.constant(1.0 / math.log(2.0)), self.constant(rounder))
        n = b.fsub(shifted, self.constant(rounder))
        # The product of n and the high part of log 2 is exact.
        scale = 2.0 ** (14 if single else 41)
        high = math.floor(math.log(2.0) * scale) / scale
        low = math.log(2.0) - high + LOG_2_REST
        r = self.fma(n, self.constant(-low), self.fma(n, self.constant(-high), x))
        degree = 7 if single else 13  # the next term is less than a tenth of a unit
        series = self.constant(1.0 / math.factorial(degree))
        for i in range(degree - 1, -1, -1):
            series = self.fma(series, r, self.constant(1.0 / math.factorial(i)))
        kind = ir.VectorType(ir.IntType(8 * self.bytes), self.lanes)
        places = ir.Constant(kind, [23 if single else 52] * self.lanes)
        power = b.shl(b.bitcast(shifted, kind), places)  # n, where the exponent is
        found = b.bitcast(b.add(b.bitcast(series, kind), power), self.numbers)
        least = self.constant(-87.0 if single else -708.0)
        return b.select(b.fcmp_ordered(">", x, least), found, self.constant(0.0))
