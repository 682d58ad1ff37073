"""The compiled walk down the trees (``pip install "biglp[fast]"``).

It is written in the language of the compiler of :mod:`biglp._core.jit`, which is loaded and has
compiled these loops in a tenth of a second.

A few dozen rows, a tile, are turned first, so that a feature of all of them fills some vectors.
Then each tree is asked about all tiles that fit the cache: all comparisons of its upper part
(:mod:`biglp._answers.committee.packed`), and below it, where there is more, rows walk on. A step
needs the result of the one before, so that rows take turns; those that have arrived drop out.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir

from biglp._answers.committee.packed import PLACE_BITS, PLACES, Packed
from biglp._core.instructions import BYTE, DOUBLE, INT, LONG, SINGLE, Instructions
from biglp._core.jit import Compiled, vector_lanes

VECTORS = 4
"""Vectors of a tile: what is left of their exits, and the exits found, stay in registers."""
STEPS = 2
"""Steps of a row in a turn."""
CACHED = 1 << 18
"""Bytes of rows that a tree is asked about before the next one is."""


class CompiledWalk:
    """Adds the class distributions of the leaves that rows end in.

    Parameters
    ----------
    columns : int
        Columns of packed values.
    double : bool
        Whether rows are float64: they are rounded up to float32, as thresholds want.
    lanes : int
        Numbers in a vector.
    """

    def __init__(self, columns: int, double: bool, lanes: int) -> None:
        self.tile, self.columns = VECTORS * lanes, columns
        writer = _WalkWriter(columns, DOUBLE if double else SINGLE, lanes)
        self._add = Compiled(writer.function)

    def totals(self, rows: np.ndarray, packed: Packed) -> np.ndarray:
        """Sums over the trees, added in their order.  (b, m) → (b, columns).

        ``rows`` are contiguous and of the type that was said, and have all features of the trees.
        """
        n_rows, width = rows.shape
        tiles = -(-n_rows // self.tile)
        totals = np.zeros((tiles * self.tile, self.columns), dtype=np.float32)
        if n_rows and width:
            at_once = min(max(CACHED // (4 * width * self.tile), 1), tiles)
            sizes = np.array([n_rows, width, len(packed.trees), at_once], dtype=np.int64)
            turned = np.empty(at_once * self.tile * width, dtype=np.float32)
            trees = (packed.trees, packed.words, packed.comparisons, packed.nodes, packed.values)
            arrays = (rows, turned, totals, sizes, *trees)
            self._add(*arrays)
        return totals[:n_rows]


@cache
def compiled_walk(columns: int, double: bool) -> CompiledWalk:
    """Compile the walk for this processor."""
    return CompiledWalk(columns, double, vector_lanes())


def vector_tile() -> int:
    """Rows of a tile on this processor."""
    return VECTORS * vector_lanes()


class _WalkWriter(Instructions):
    """Writes the function, for tiles of ``VECTORS`` vectors."""

    def __init__(self, columns: int, kind: Any, lanes: int) -> None:
        self.columns, self.tile = columns, VECTORS * lanes
        self.module = ir.Module("walk")
        singles, ints = SINGLE.as_pointer(), INT.as_pointer()
        arguments = [kind.as_pointer(), singles, singles, LONG.as_pointer(), *[ints] * 4, singles]
        signature = ir.FunctionType(ir.VoidType(), arguments)
        self.function = ir.Function(self.module, signature, "walk")
        for argument in self.function.args:
            argument.add_attribute("noalias")
        super().__init__(self.function, lanes)
        signature = ir.FunctionType(self.ints, [self.ints, ir.IntType(1)])
        self.lowest_bit = ir.Function(self.module, signature, f"llvm.cttz.v{lanes}i32")
        self.found = self.builder.alloca(INT, self.tile)
        self.active = self.builder.alloca(BYTE, self.tile)
        self.found.align = self.active.align = 64
        self.write()
        self.builder.ret_void()

    def write(self) -> None:
        """Go over the tiles that fit the cache, their trees, and again the tiles."""
        b = self.builder
        rows, turned, totals, sizes, trees, words, comparisons, nodes, values = self.function.args
        n_rows, width, n_trees, at_once = (b.load(self.at(sizes, i)) for i in range(4))
        tiles = b.sdiv(b.add(n_rows, LONG(self.tile - 1)), LONG(self.tile))
        size = b.mul(width, LONG(self.tile))

        def some(begin: Any, _: Any) -> None:
            count = self.smaller(b.sub(tiles, begin), at_once)

            def turn(tile: Any, _: Any) -> None:
                first = b.mul(b.add(begin, tile), LONG(self.tile))
                self.turn(rows, self.at(turned, b.mul(tile, size)), first, (n_rows, width))

            def ask(tree: Any, _: Any) -> None:
                facts = self.at(trees, b.mul(tree, LONG(4)))
                first, end, place, walked = (self.read(facts, i) for i in range(4))
                below = self.at(nodes, b.mul(place, LONG(2)))
                said = self.at(values, b.mul(place, LONG(self.columns)))

                def one(tile: Any, _: Any) -> None:
                    row = b.mul(b.add(begin, tile), LONG(self.tile))
                    here = self.at(turned, b.mul(tile, size))
                    self.find(here, words, comparisons, (first, end))
                    with b.if_then(b.icmp_unsigned("!=", walked, LONG(0))):
                        self.walk(here, below)
                    self.add(said, self.at(totals, b.mul(row, LONG(self.columns))))

                self.loop(LONG(0), count, one)

            self.loop(LONG(0), count, turn)
            self.loop(LONG(0), n_trees, ask)

        self.loop(LONG(0), tiles, some, step=at_once)

    def turn(self, rows: Any, turned: Any, first: Any, shape: tuple[Any, Any]) -> None:
        """Turn a tile; places after the last row hold that row, and nobody asks what it gets."""
        b = self.builder
        n_rows, width = shape

        def row(k: Any, _: Any) -> None:
            number = self.smaller(b.add(first, k), b.sub(n_rows, LONG(1)))
            source, target = self.at(rows, b.mul(number, width)), self.at(turned, k)

            def feature(j: Any, _: Any) -> None:
                number = self.rounded_up(b.load(self.at(source, j)))
                b.store(number, self.at(target, b.mul(j, LONG(self.tile))))

            self.loop(LONG(0), width, feature)

        self.loop(LONG(0), LONG(self.tile), row)

    def rounded_up(self, number: Any) -> Any:
        """A number in float32: the next larger one where there is none."""
        if number.type == SINGLE:
            return number
        b = self.builder
        near = b.fptrunc(number, SINGLE)
        bits = b.bitcast(near, INT)
        step = b.select(b.icmp_signed("<", bits, INT(0)), INT(-1), INT(1))
        too_small = b.fcmp_ordered("<", b.fpext(near, DOUBLE), number)
        return b.bitcast(b.add(bits, b.select(too_small, step, INT(0))), SINGLE)

    def find(self, rows: Any, words: Any, comparisons: Any, part: tuple[Any, Any]) -> None:
        """Find the exits of a tile's rows."""
        b = self.builder

        def word(w: Any, found: list[Any]) -> list[Any]:
            facts = self.at(words, b.mul(w, LONG(2)))
            begin, first, end = (self.read(facts, i) for i in range(3))
            left = self.loop(begin, end, compare, [self.whole(-1)] * VECTORS)
            start = self.repeated(b.trunc(first, INT), self.ints)
            exits = [b.add(start, b.call(self.lowest_bit, [x, ir.IntType(1)(0)])) for x in left]
            some = [b.icmp_unsigned("!=", x, self.whole(0)) for x in left]
            return [b.select(*three) for three in zip(some, exits, found, strict=True)]

        def compare(i: Any, left: list[Any]) -> list[Any]:
            facts = self.at(comparisons, b.mul(i, LONG(3)))
            place = self.at(rows, self.read(facts, 0))
            limit = self.repeated(b.bitcast(b.load(self.at(facts, 1)), SINGLE), self.floats)
            mask = self.repeated(b.load(self.at(facts, 2)), self.ints)
            still = []
            for v, bits in enumerate(left):
                numbers = b.load(self.vector(place, v * self.lanes, self.floats), align=4)
                above = b.fcmp_ordered(">", numbers, limit)
                still.append(b.select(above, b.and_(bits, mask), bits))
            return still

        for v, exits in enumerate(self.loop(*part, word, [self.whole(0)] * VECTORS)):
            b.store(exits, self.vector(self.found, v * self.lanes, self.ints), align=4)

    def walk(self, rows: Any, nodes: Any) -> None:
        """Walk on from exits to leaves."""
        b = self.builder
        every = ir.Constant(ir.VectorType(BYTE, self.tile), list(range(self.tile)))
        b.store(every, b.bitcast(self.active, every.type.as_pointer()), align=1)

        def row(i: Any, kept: list[Any]) -> list[Any]:
            number = b.load(self.at(self.active, i))
            k = b.zext(number, LONG)
            column, place = self.at(rows, k), self.at(self.found, k)
            node = before = b.load(place)
            for _ in range(STEPS):
                before = node
                facts = self.at(nodes, b.mul(b.zext(node, LONG), LONG(2)))
                limit, packed = b.bitcast(b.load(self.at(facts, 0)), SINGLE), self.read(facts, 1)
                feature = b.mul(b.lshr(packed, LONG(PLACE_BITS)), LONG(self.tile))
                above = b.fcmp_ordered(">", b.load(self.at(column, feature)), limit)
                left = b.and_(b.trunc(packed, INT), INT(PLACES - 1))
                node = b.add(left, b.zext(above, INT))
            b.store(node, place)
            b.store(number, self.at(self.active, kept[0]))
            return [b.add(kept[0], b.zext(b.icmp_unsigned("!=", node, before), LONG))]

        begin = b.block
        turn, done = (b.append_basic_block(name) for name in ("turn", "arrived"))
        b.branch(turn)
        b.position_at_end(turn)
        count = b.phi(LONG)
        count.add_incoming(LONG(self.tile), begin)
        (left,) = self.loop(LONG(0), count, row, [LONG(0)])
        count.add_incoming(left, b.block)
        b.cbranch(b.icmp_unsigned("!=", left, LONG(0)), turn, done)
        b.position_at_end(done)

    def add(self, values: Any, totals: Any) -> None:
        """Add what the leaves of a tile's rows say."""
        b = self.builder
        parts, first = [], 0
        for width in (16, 8, 4, 2):
            while self.columns - first >= width:
                parts.append((first, ir.VectorType(SINGLE, width)))
                first += width

        def rows(k: Any, _: Any) -> None:
            for i in range(4):
                row = b.add(k, LONG(i))
                leaf = b.zext(b.load(self.at(self.found, row)), LONG)
                source = self.at(values, b.mul(leaf, LONG(self.columns)))
                target = self.at(totals, b.mul(row, LONG(self.columns)))
                for first, kind in parts:
                    place = self.vector(target, first, kind)
                    more = b.load(self.vector(source, first, kind), align=4)
                    b.store(b.fadd(b.load(place, align=4), more), place, align=4)

        self.loop(LONG(0), LONG(self.tile), rows, step=LONG(4))
