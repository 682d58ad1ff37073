"""Loops and vectors in the language of the compiler of :mod:`.jit`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir

BYTE, INT, LONG = ir.IntType(8), ir.IntType(32), ir.IntType(64)
SINGLE, DOUBLE = ir.FloatType(), ir.DoubleType()
Body = Callable[[Any, list[Any]], Sequence[Any] | None]


class Instructions:
    """Writes instructions into a function.

    Parameters
    ----------
    function : llvmlite.ir.Function
    lanes : int
        Numbers in a vector.
    """

    def __init__(self, function: Any, lanes: int) -> None:
        self.lanes = lanes
        self.floats, self.ints = ir.VectorType(SINGLE, lanes), ir.VectorType(INT, lanes)
        self.builder = ir.IRBuilder(function.append_basic_block("begin"))

    def loop(
        self, begin: Any, end: Any, body: Body, carried: Sequence[Any] = (), step: Any = None
    ) -> list[Any]:
        """Write a loop that runs once at least.

        Parameters
        ----------
        begin, end : int64
        body : callable
            Gets the index and the carried values, and returns these for the next turn.
        carried : sequence
            What they are at first.
        step : int64
            One, if not said.

        Returns
        -------
        values : list
            What the last turn returned.
        """
        b, before = self.builder, self.builder.block
        inside, after = (b.append_basic_block(name) for name in ("loop", "after"))
        b.branch(inside)
        b.position_at_end(inside)
        index, values = b.phi(LONG), [b.phi(value.type) for value in carried]
        returned = list(body(index, values) or ())
        following = b.add(index, LONG(1) if step is None else step)
        for value, first, more in zip(
            [index, *values], [begin, *carried], [following, *returned], strict=True
        ):
            value.add_incoming(first, before)
            value.add_incoming(more, b.block)
        b.cbranch(b.icmp_signed("<", following, end), inside, after)
        b.position_at_end(after)
        return returned

    def loop_while(
        self, carried: Sequence[Any], going: Callable[[list[Any]], Any], body: Body
    ) -> list[Any]:
        """Write a loop that runs as long as ``going`` says of the carried values.

        ``body`` gets them, and returns those for the next turn; the last ones are returned.
        """
        b, before = self.builder, self.builder.block
        asked, inside, after = (b.append_basic_block(name) for name in ("while", "turn", "after"))
        b.branch(asked)
        b.position_at_end(asked)
        values = [b.phi(value.type) for value in carried]
        condition = going(values)
        b.cbranch(condition, inside, after)
        b.position_at_end(inside)
        returned = body(None, values) or ()
        for value, first, more in zip(values, carried, returned, strict=True):
            value.add_incoming(first, before)
            value.add_incoming(more, b.block)
        b.branch(asked)
        b.position_at_end(after)
        return list(values)

    def where(
        self, condition: Any, values: Sequence[Any], change: Callable[[list[Any]], list[Any]]
    ) -> list[Any]:
        """What ``change`` makes of some values where a condition holds, or else the values."""
        b, before = self.builder, self.builder.block
        inside, after = (b.append_basic_block(name) for name in ("where", "after"))
        b.cbranch(condition, inside, after)
        b.position_at_end(inside)
        changed, end = change(list(values)), b.block
        b.branch(after)
        b.position_at_end(after)
        found = []
        for value, other in zip(values, changed, strict=True):
            found.append(b.phi(value.type))
            found[-1].add_incoming(value, before)
            found[-1].add_incoming(other, end)
        return found

    def at(self, pointer: Any, place: Any) -> Any:
        """Where an element is."""
        return self.builder.gep(pointer, [LONG(place) if isinstance(place, int) else place])

    def read(self, pointer: Any, place: int) -> Any:
        """An element of 32 bits without sign, as int64."""
        return self.builder.zext(self.builder.load(self.at(pointer, place)), LONG)

    def vector(self, pointer: Any, place: int, kind: Any) -> Any:
        """Where a vector is."""
        return self.builder.bitcast(self.at(pointer, place), kind.as_pointer())

    def smaller(self, one: Any, other: Any) -> Any:
        """The smaller of two int64."""
        return self.builder.select(self.builder.icmp_signed("<", one, other), one, other)

    def larger(self, one: Any, other: Any) -> Any:
        """The larger of two int64."""
        return self.builder.select(self.builder.icmp_signed(">", one, other), one, other)

    def whole(self, number: int) -> Any:
        """A vector of one integer."""
        return ir.Constant(self.ints, [number] * self.lanes)

    def repeated(self, number: Any, kind: Any) -> Any:
        """A vector that holds a number in every place."""
        nothing = ir.Constant(kind, ir.Undefined)
        first = self.builder.insert_element(nothing, number, INT(0))
        return self.builder.shuffle_vector(first, nothing, self.whole(0))
