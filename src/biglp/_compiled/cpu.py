"""The compiled loops on the arrays of a block: features, their Gram matrix, and answers."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from llvmlite import ir

from biglp._compiled import Compiled, compiled_once, vector_lanes
from biglp._compiled.packed_trees import PLACE_BITS, PLACES, Packed
from biglp._core.errors import NonFiniteRowsError

if TYPE_CHECKING:
    from biglp._graph.normalise import Normalisation


# --------------------------------------------------------------------------------------------------
# Loops and vectors in the language of the compiler of :mod:`.jit`.


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


# --------------------------------------------------------------------------------------------------
# Vectors of 64 bytes, in the language of the compiler of :mod:`biglp._compiled`.
#
# They are those of AVX-512; for a processor with shorter ones the compiler makes two of each. What
# is computed is the same then, number by number, and so are its bits.


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


# --------------------------------------------------------------------------------------------------
# Compiled features of a block: the Gaussian kernel, or a product, and its column sums.
#
# A vector holds four features of each of a few landmarks. Four features of a row, repeated, are
# multiplied by it, so that 20 landmarks of float32 fill five vectors, where one landmark a place
# would waste a third of two. The four sums of a landmark are added at the end, those of four rows
# at once, which leaves one vector of distances between four rows and a few landmarks; their
# exponentials are taken while they are in registers. Sums run over their terms in one order, each
# added with one rounding: the bits of a row's features depend neither on its neighbours nor on the
# processor.


TERMS = 4
"""Features of a landmark in a vector, and rows that end in one."""
ROWS, MOST_CHUNKS = (4, 5) if registers() == 32 else (4, 1)
"""Rows and vectors of landmarks whose sums are in registers."""
GAUSSIAN_ROWS = 24
"""Rows that pass some landmarks before the next ones come: both stay in the first cache."""


class Tables(NamedTuple):
    """What rows are multiplied by."""

    landmarks: np.ndarray  # (chunks, steps, landmarks of a chunk, TERMS)
    starts: np.ndarray  # (chunks · landmarks of a chunk, TERMS): what sums begin with
    gamma: np.ndarray  # (1,); 0 where there are no exponentials to be taken
    k: int


def table_of(
    landmarks: np.ndarray, gamma: float = 0.0, lengths: np.ndarray | None = None
) -> Tables:
    """Cut landmarks into chunks of a vector, in their own type.

    With γ and lengths γ‖l‖² the features of a row are exp(−γ‖x − l‖²), without them x·l.
    """
    dtype = landmarks.dtype
    k, m = landmarks.shape
    each = VECTOR_BYTES // dtype.itemsize // TERMS
    n_chunks, n_steps = -(-k // each), -(-m // TERMS)
    padded = np.zeros((n_chunks * each, n_steps * TERMS), dtype)
    padded[:k, :m] = landmarks * (2.0 * gamma or 1.0)
    if m > TERMS:  # the last step ends where the row does, and begins with features that are done
        padded[:, -TERMS:] = np.roll(padded[:, -TERMS:], -m % TERMS, axis=1)
    starts = np.zeros((n_chunks * each, TERMS), dtype)
    if lengths is not None:
        starts[:k, 0] = -lengths
    cut = padded.reshape(n_chunks, each, n_steps, TERMS).transpose(0, 2, 1, 3)
    return Tables(np.ascontiguousarray(cut), starts, np.array([gamma], dtype), k)


def multiplied(
    rows: np.ndarray, made_from: Tables, out: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Features of a block, and their column sums in float64.

    Raises
    ------
    NonFiniteRowsError
        When a row holds NaN, infinity or values too large to square.
    """
    dtype, k = made_from.landmarks.dtype, made_from.k
    n_rows, m = rows.shape
    if n_rows < ROWS or m < TERMS:
        longer = np.zeros((max(n_rows, ROWS), max(m, TERMS)), dtype)
        longer[:n_rows, :m] = rows
        found = multiplied(longer, made_from)[0][:n_rows]
        if out is not None:
            out[:] = found
        return found if out is None else out, found.sum(axis=0, dtype=np.float64)
    if out is None:
        out = np.empty((n_rows, k), dtype)
    sizes = np.array([n_rows, m, k, 1], dtype=np.int64)
    sums = np.zeros(made_from.starts.shape)
    function = compiled_product(dtype.itemsize == 8, bool(made_from.gamma[0]))
    function(np.require(rows, dtype, ["C", "A"]), *made_from[:3], out, sums, sizes)
    if not sizes[3]:
        raise NonFiniteRowsError
    return out, sums.sum(axis=1)[:k]


@compiled_once
def compiled_product(double: bool, gaussian: bool) -> Compiled:
    """Compile the loops for this processor."""
    return Compiled(_GaussianWriter(double, gaussian).function)


class _GaussianWriter(Vectors):
    """Writes the function for one type of numbers."""

    def __init__(self, double: bool, gaussian: bool, most_chunks: int = MOST_CHUNKS) -> None:
        super().__init__("product", [*[None] * 5, DOUBLE, LONG], double)
        self.gaussian, self.most_chunks = gaussian, most_chunks
        self.each = self.lanes // TERMS
        self.norms = self.builder.alloca(self.kind, GAUSSIAN_ROWS + ROWS)
        self.four = ir.VectorType(self.kind, TERMS)
        self.write()
        self.builder.ret_void()

    def write(self) -> None:
        """Go over parts of the rows, groups of chunks, and groups of rows."""
        b = self.builder
        self.rows, landmarks, self.starts, gamma, self.out, sums, sizes = self.function.args
        n_rows, self.m, self.k = (b.load(self.at(sizes, i)) for i in range(3))
        self.n_steps = b.udiv(b.add(self.m, LONG(TERMS - 1)), LONG(TERMS))
        n_chunks = b.udiv(b.add(self.k, LONG(self.each - 1)), LONG(self.each))
        a_chunk = b.mul(self.n_steps, LONG(self.lanes))
        last = b.sub(n_rows, LONG(ROWS))
        scale = b.load(gamma)

        def part(begin: Any, finite: list[Any]) -> list[Any]:
            end = self.smaller(b.add(begin, LONG(GAUSSIAN_ROWS)), n_rows)
            self.origin = self.smaller(begin, last)

            def norms(begin: Any, finite: list[Any]) -> list[Any]:
                return [b.and_(finite[0], self.squares(self.smaller(begin, last), scale))]

            if self.gaussian:
                finite = self.loop(begin, end, norms, finite, step=LONG(ROWS))

            def of_chunks(count: int, chunk: Any) -> None:
                table = self.at(landmarks, b.mul(chunk, a_chunk)), a_chunk, chunk

                def group(begin: Any, totals: list[Any]) -> list[Any]:
                    # A last group that is too short is moved up: a few rows are made twice.
                    moved = self.smaller(begin, last)
                    with b.if_then(b.icmp_unsigned("==", chunk, LONG(0))):
                        self.fetch_rows(b.add(begin, LONG(GAUSSIAN_ROWS)))
                    found = self.products(moved, table, count)
                    return self.finish(found, (begin, moved, chunk), totals)

                zeros = [self.constant(0.0)] * count
                totals = self.loop(begin, end, group, zeros, step=LONG(ROWS))
                for i, total in enumerate(totals):
                    place = b.mul(b.add(chunk, LONG(i)), LONG(self.lanes))
                    self.add_to_doubles(total, sums, place)

            self.in_groups(LONG(0), n_chunks, self.most_chunks, of_chunks)
            return finite

        (finite,) = self.loop(LONG(0), n_rows, part, [ir.IntType(1)(1)], step=LONG(GAUSSIAN_ROWS))
        b.store(b.zext(finite, LONG), self.at(sizes, 3))

    def squares(self, first: Any, scale: Any) -> Any:
        """Keep γ‖x‖² of a group of rows; return whether all are finite."""
        b = self.builder
        places = [b.mul(b.add(first, LONG(r)), self.m) for r in range(ROWS)]

        def term(i: Any, sums: list[Any]) -> list[Any]:
            mask = b.not_(self.lanes_from(b.sub(self.m, i)))
            some = [self.load_some(self.rows, b.add(place, i), mask) for place in places]
            return [self.fma(x, x, total) for x, total in zip(some, sums, strict=True)]

        zeros = [self.constant(0.0)] * ROWS
        sums = self.loop(LONG(0), self.m, term, zeros, step=LONG(self.lanes))
        finite = ir.IntType(1)(1)
        for r, total in enumerate(sums):
            norm = b.fmul(self.halved(total), scale)
            place = b.add(b.sub(first, self.origin), LONG(r))
            b.store(norm, self.at(self.norms, place))
            infinity = ir.Constant(self.kind, float("inf"))
            finite = b.and_(finite, b.fcmp_ordered("<", norm, infinity))
        return finite

    def fetch_rows(self, first: Any) -> None:
        """Ask for a group of rows that will be needed next."""
        b, line = self.builder, VECTOR_BYTES // self.bytes
        begin = b.mul(first, self.m)
        end = b.add(begin, b.mul(self.m, LONG(ROWS)))
        self.loop(begin, end, lambda i, _: self.fetch(self.rows, i), step=LONG(line))

    def products(self, first: Any, of: tuple[Any, Any, Any], count: int) -> list[Any]:
        """Sums of products of rows and some chunks, in four parts each."""
        b = self.builder
        landmarks, a_chunk, chunk = of
        last = b.sub(self.m, LONG(TERMS))
        places = [self.at(self.rows, b.mul(b.add(first, LONG(r)), self.m)) for r in range(ROWS)]
        tables = [self.at(landmarks, b.mul(a_chunk, LONG(c))) for c in range(count)]
        four_times = list(range(TERMS)) * self.each

        def term(step: Any, sums: list[Any]) -> list[Any]:
            feature = self.smaller(b.mul(step, LONG(TERMS)), last)
            at = b.mul(step, LONG(self.lanes))
            chunks = [self.load(table, at) for table in tables]
            added = []
            for r, place in enumerate(places):
                where = self.vector(place, feature, self.four)
                four = b.load(where, align=self.bytes)
                x = self.shuffled(four, four, four_times)
                here = sums[r * count : (r + 1) * count]
                added += [self.fma(x, y, z) for y, z in zip(chunks, here, strict=True)]
            return added

        firsts = (b.mul(b.add(chunk, LONG(c)), LONG(self.lanes)) for c in range(count))
        starts = [self.load(self.starts, first) for first in firsts]
        return self.loop(LONG(0), self.n_steps, term, starts * ROWS)

    def finish(self, found: list[Any], at: tuple[Any, Any, Any], totals: list[Any]) -> list[Any]:
        """Make features of a tile of sums, write them, and add them to the totals."""
        b = self.builder
        begin, moved, first_chunk = at
        count, totals = len(totals), list(totals)
        for r in range(0, ROWS, TERMS):
            row = b.add(moved, LONG(r))
            place = self.vector(self.norms, b.sub(row, self.origin), self.four)
            norms = b.load(place, align=self.bytes)
            norms = self.shuffled(norms, norms, list(range(TERMS)) * self.each)
            new = self.rows_from(b.sub(begin, row))
            features = []
            for c in range(count):
                x = self.added([found[(r + i) * count + c] for i in range(TERMS)])
                features.append(self.exponential(b.fsub(x, norms)) if self.gaussian else x)
                # Rows that were made before are not added again.
                totals[c] = b.fadd(totals[c], b.select(new, features[c], self.constant(0.0)))
            self.keep(features, row, b.mul(first_chunk, LONG(self.each)))
        return totals

    def rows_from(self, first: Any) -> Any:
        """Mask of the numbers of a vector that belong to rows from one on."""
        kind = ir.VectorType(LONG, self.lanes)
        rows = ir.Constant(kind, list(range(TERMS)) * self.each)
        return self.builder.icmp_signed(">=", rows, self.repeated(first, kind))

    def added(self, rows: list[Any]) -> Any:
        """Add the four parts of each sum of four rows; a landmark's four rows are neighbours."""
        n, groups = self.lanes, range(0, self.lanes, TERMS)

        def paired(x: Any, y: Any, *orders: tuple[int, ...]) -> Any:
            parts = [[g + i % n + i // n * n for g in groups for i in order] for order in orders]
            return self.builder.fadd(*(self.shuffled(x, y, part) for part in parts))

        one, two = (
            paired(rows[i], rows[i + 1], (0, n, 1, n + 1), (2, n + 2, 3, n + 3)) for i in (0, 2)
        )
        return paired(one, two, (0, 1, n, n + 1), (2, 3, n + 2, n + 3))

    def keep(self, features: list[Any], row: Any, column: Any) -> None:
        """Write the features of four rows, those of them that there are."""
        b, each = self.builder, self.each
        turn = [g * TERMS + i for i in range(TERMS) for g in range(each)]
        places = [
            self.at(self.out, b.add(b.mul(b.add(row, LONG(i)), self.k), column))
            for i in range(TERMS)
        ]

        def write(c: int, left: Any) -> None:
            turned = self.shuffled(features[c], features[c], turn)
            for i, place in enumerate(places):
                some = self.shuffled(turned, turned, range(i * each, (i + 1) * each))
                if left is None:
                    self.store(some, place, c * each)
                    continue
                for g in range(each):
                    with b.if_then(b.icmp_signed(">", left, LONG(c * each + g))):
                        b.store(b.extract_element(some, LONG(g)), self.at(place, c * each + g))

        left, count = b.sub(self.k, column), len(features)
        with b.if_else(b.icmp_signed(">=", left, LONG(count * each))) as (whole, part):
            with whole:
                for c in range(count):
                    write(c, None)
            with part:  # only the last chunk is not full
                for c in range(count - 1):
                    write(c, None)
                write(count - 1, left)


# --------------------------------------------------------------------------------------------------


class Made(NamedTuple):
    """What features are made from: landmarks, and the mixing of what they give, if any."""

    landmarks: Tables
    root: Tables | None


def tables(landmarks: np.ndarray, bandwidth: float, root: np.ndarray | None) -> Made:
    """Tables of a Nyström factor, in the type of its landmarks."""
    gamma = 0.5 / bandwidth**2
    lengths = gamma * np.einsum("ij,ij->i", landmarks, landmarks)
    by_rows = None if root is None else table_of(root.T.astype(landmarks.dtype))
    return Made(table_of(landmarks, gamma, lengths), by_rows)


def features(
    rows: np.ndarray, made_from: Made, out: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Features of a block, and their column sums in float64.

    Raises
    ------
    NonFiniteRowsError
        When a row holds NaN, infinity or values too large to square.
    """
    if made_from.root is None:
        return multiplied(rows, made_from.landmarks, out)
    return multiplied(multiplied(rows, made_from.landmarks)[0], made_from.root, out)


class Multiplied(np.ndarray):
    """Features whose product with a few columns, as of one for each class, is compiled.

    BLAS copies all features first, which takes as long as reading them. The rest is NumPy's, and
    what comes of it is a plain array.
    """

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **others: Any) -> Any:
        """Multiply matrices of one type; leave everything else to NumPy."""
        plain = [x.view(np.ndarray) if isinstance(x, Multiplied) else x for x in inputs]
        if ufunc is np.matmul and method == "__call__" and not others:
            x, y = plain
            if (
                x.ndim == y.ndim == 2
                and x.dtype == y.dtype
                and x.size
                and isinstance(y, np.ndarray)
            ):
                return multiplied(x, table_of(y.T))[0]
        if "out" in others:
            others["out"] = tuple(np.asarray(x) for x in others["out"])
        return getattr(ufunc, method)(*plain, **others)


# --------------------------------------------------------------------------------------------------
# The compiled search for the landmarks nearest to each row.
#
# A matrix product that writes all distances, from which others then take the smallest few, spends
# much of its time on taking them. Here rows stand side by side: a vector of the processor holds one
# feature of as many rows as it has places. The distances of these rows to one landmark are then one
# vector, which is compared with each row's farthest neighbour so far while it is in a register;
# where one is nearer, all rows put the landmark in its place by comparing and choosing, without a
# branch. Landmarks of a panel stay in the first cache while rows pass by. Every sum runs over its
# terms in order, each added with one rounding: the bits of a row's distances depend neither on its
# neighbours nor on the width of the vectors. Of equally near landmarks the first is taken, as
# everywhere.


N_VECTORS, MOST_LANDMARKS = (2, 12) if registers() == 32 else (1, 6)
"""Vectors of rows in a group, and landmarks of a panel: their sums are in registers."""
GROUPS = 6
"""Groups of rows that pass a panel before the next one comes: what the second cache holds."""


class Panels(NamedTuple):
    """Landmarks as they are searched."""

    landmarks: np.ndarray  # (panels, m, width), times −2
    lengths: np.ndarray  # (panels · width,), ‖l‖²; infinite where there is no landmark


def panels(landmarks: np.ndarray) -> Panels:
    """Cut landmarks into panels, in their own type."""
    k, m = landmarks.shape
    width = panel_width(k)
    n_panels = -(-k // width)
    padded = np.zeros((n_panels * width, m), landmarks.dtype)
    padded[:k] = landmarks * landmarks.dtype.type(-2)
    lengths = np.full(n_panels * width, np.inf, landmarks.dtype)
    lengths[:k] = np.einsum("ij,ij->i", landmarks, landmarks)
    cut = padded.reshape(n_panels, width, m).transpose(0, 2, 1)
    return Panels(np.ascontiguousarray(cut), lengths)


def panel_width(k: int) -> int:
    """Landmarks of a panel: as many as leave few places of the last panel empty."""
    return -(-k // -(-k // MOST_LANDMARKS))


def nearest(rows: np.ndarray, searched: Panels, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of the ``count`` nearest landmarks of each row, and ‖x − l‖² − ‖x‖².

    Where a row is not finite, neither are its distances.
    """
    dtype, n_rows = searched.landmarks.dtype, len(rows)
    n_panels, m, width = searched.landmarks.shape
    search = compiled_search(width, count, dtype.itemsize == 8)
    if n_rows < search.at_once:
        longer = np.zeros((search.at_once, m), dtype)
        longer[:n_rows] = rows
        columns, values = nearest(longer, searched, count)
        return columns[:n_rows], values[:n_rows]
    columns, values = np.empty((n_rows, count), np.int32), np.empty((n_rows, count), dtype)
    sizes = np.array([n_rows, m, n_panels], dtype=np.int64)
    turned = np.empty((GROUPS, m + search.at_once, search.at_once), dtype)
    read = np.require(rows, dtype, ["C", "A"])
    search.function(read, *searched, turned, values, columns, sizes)
    return columns, values


class Search(NamedTuple):
    """The search for one type of numbers."""

    at_once: int
    """Rows of a group."""
    function: Compiled


@compiled_once
def compiled_search(width: int, count: int, double: bool) -> Search:
    """Compile the search for this processor."""
    writer = _SearchWriter(width, count, double)
    return Search(writer.at_once, Compiled(writer.function))


class _SearchWriter(Vectors):
    """Writes the function for one type of numbers."""

    def __init__(self, width: int, count: int, double: bool) -> None:
        super().__init__("search", [*[None] * 5, INT, LONG], double)
        self.width, self.count = width, count
        self.at_once = N_VECTORS * self.lanes
        room = GROUPS * count * self.at_once
        self.kept = [self.builder.alloca(kind, room) for kind in (self.kind, INT)]
        for place in self.kept:
            place.align = 64
        self.write()
        self.builder.ret_void()

    def write(self) -> None:
        """Go over parts of the rows, panels, and groups of rows."""
        b, at_once = self.builder, LONG(self.at_once)
        rows, landmarks, lengths, turned, values, columns, sizes = self.function.args
        n_rows, self.m, n_panels = (b.load(self.at(sizes, i)) for i in range(3))
        last = b.sub(n_rows, at_once)
        room = b.mul(b.add(self.m, at_once), at_once)

        def part(begin: Any, _: Any) -> None:
            left = b.add(b.sub(n_rows, begin), b.sub(at_once, LONG(1)))
            groups = self.smaller(b.udiv(left, at_once), LONG(GROUPS))

            def first_row(g: Any) -> Any:
                # A last group that is too short is moved up; some rows are looked at twice.
                return self.smaller(b.add(begin, b.mul(g, at_once)), last)

            def turn(g: Any, _: Any) -> None:
                first = self.at(rows, b.mul(first_row(g), self.m))
                self.turn(first, self.at(turned, b.mul(g, room)))
                self.forget(self.places(g))

            def panel(number: Any, _: Any) -> None:
                first = b.mul(number, LONG(self.width))
                searched = self.at(landmarks, b.mul(first, self.m)), self.at(lengths, first)

                def group(g: Any, _: Any) -> None:
                    found = self.distances(self.at(turned, b.mul(g, room)), *searched)
                    self.compare(found, first, self.places(g))

                self.loop(LONG(0), groups, group)

            def write(g: Any, _: Any) -> None:
                to = b.mul(first_row(g), LONG(self.count))
                for place, out in zip(self.places(g), (values, columns), strict=True):
                    self.write_found(place, self.at(out, to))

            self.loop(LONG(0), groups, turn)
            self.loop(LONG(0), n_panels, panel)
            self.loop(LONG(0), groups, write)

        self.loop(LONG(0), n_rows, part, step=LONG(GROUPS * self.at_once))

    def places(self, g: Any) -> list[Any]:
        """Where the nearest so far of a group are: distances, and numbers."""
        first = self.builder.mul(g, LONG(self.count * self.at_once))
        return [self.at(place, first) for place in self.kept]

    def forget(self, places: list[Any]) -> None:
        """Begin with neighbours that are endlessly far."""
        for place, value in zip(places, (self.constant(np.inf), self.whole(0)), strict=True):
            for i in range(self.count * N_VECTORS):
                self.store(value, place, i * self.lanes)

    def turn(self, rows: Any, to: Any) -> None:
        """Write the rows of a group as columns, a square at a time."""
        b, width = self.builder, self.lanes

        def square(first: Any, _: Any) -> None:
            # Nothing is read beyond the last feature.
            mask = b.not_(self.lanes_from(b.sub(self.m, first)))

            def lines_of(row: Any, _: Any) -> None:
                places = (b.add(b.mul(b.add(row, LONG(r)), self.m), first) for r in range(width))
                lines = [self.load_some(rows, place, mask) for place in places]
                step = 1
                while step < width:
                    lines = self.swapped(lines, step)
                    step *= 2
                out = self.at(to, b.add(b.mul(first, LONG(self.at_once)), row))
                for r, line in enumerate(lines):
                    self.store(line, out, r * self.at_once)

            self.loop(LONG(0), LONG(self.at_once), lines_of, step=LONG(width))

        self.loop(LONG(0), self.m, square, step=LONG(width))

    def swapped(self, lines: list[Any], step: int) -> list[Any]:
        """Exchange what stands across the diagonal in squares of two times ``step`` lines."""
        places, found = range(self.lanes), list(lines)
        upper = [self.lanes + i - step if i & step else i for i in places]
        lower = [self.lanes + i if i & step else i + step for i in places]
        for r in places:
            if not r & step:
                pair = lines[r], lines[r + step]
                found[r] = self.shuffled(*pair, upper)
                found[r + step] = self.shuffled(*pair, lower)
        return found

    def distances(self, turned: Any, panel: Any, lengths: Any) -> list[Any]:
        """``lengths[c] + Σ_p turned[p] · panel[p, c]``: for each c, the vectors of rows."""
        b = self.builder

        def term(p: Any, sums: list[Any]) -> list[Any]:
            here = self.at(turned, b.mul(p, LONG(self.at_once)))
            x = [self.load(here, v * self.lanes) for v in range(N_VECTORS)]
            line, added = self.at(panel, b.mul(p, LONG(self.width))), []
            for c in range(self.width):
                y = self.repeated(b.load(self.at(line, c)), self.numbers)
                sum_of = sums[c * N_VECTORS : (c + 1) * N_VECTORS]
                added += [self.fma(one, y, z) for one, z in zip(x, sum_of, strict=True)]
            return added

        begin = []
        for c in range(self.width):
            begin += [self.repeated(b.load(self.at(lengths, c)), self.numbers)] * N_VECTORS
        return self.loop(LONG(0), self.m, term, begin)

    def compare(self, found: list[Any], first: Any, places: list[Any]) -> None:
        """Put landmarks of a panel that are near enough for some row in their places."""
        b, count = self.builder, self.count
        for v in range(N_VECTORS):
            at = [(j * N_VECTORS + v) * self.lanes for j in range(count)]
            kept = [
                b.load(self.vector(place, i, kind), align=4)
                for place, kind in zip(places, (self.numbers, self.ints), strict=True)
                for i in at
            ]
            for c in range(self.width):
                distance = found[c * N_VECTORS + v]
                number = self.repeated(b.trunc(b.add(first, LONG(c)), INT), self.ints)
                nearer = b.fcmp_ordered("<", distance, kept[count - 1])  # NaN is not
                bits = b.bitcast(nearer, ir.IntType(self.lanes))
                some = b.icmp_unsigned("!=", bits, bits.type(0))
                kept = self.where(some, kept, partial(self.put_in, distance, number))
            for i, vector in enumerate(kept):
                self.store(vector, places[i // count], at[i % count])

    def put_in(self, distance: Any, number: Any, kept: list[Any]) -> list[Any]:
        """Put a landmark where it belongs among each row's nearest, and move up those behind it."""
        b, nearest, numbers, value = self.builder, [], [], distance
        for one, other in zip(kept[: self.count], kept[self.count :], strict=True):
            nearer = b.fcmp_ordered("<", distance, one)  # and so for all behind, as far or farther
            nearest.append(b.select(nearer, value, one))
            numbers.append(b.select(nearer, number, other))
            value, number = b.select(nearer, one, value), b.select(nearer, other, number)
        return nearest + numbers

    def write_found(self, place: Any, out: Any) -> None:
        """Write the nearest of a group's rows, those of a row side by side."""
        b = self.builder

        def row(r: Any, _: Any) -> None:
            here, to = self.at(place, r), self.at(out, b.mul(r, LONG(self.count)))
            for j in range(self.count):
                b.store(b.load(self.at(here, j * self.at_once)), self.at(to, j))

        self.loop(LONG(0), LONG(self.at_once), row)


# --------------------------------------------------------------------------------------------------
# The compiled Gram matrix of a block's features, which are normalised on the way.
#
# Some hundred rows are normalised, summed, and copied to a tile that stays in the second cache. Of
# their Gram matrix the upper triangle is made, four rows by a few vectors at once in registers, and
# added in float64. Where the columns do not fill their vectors, the gap comes before the first one:
# the first rows of the triangle are the longest, and so the fewest cells are made for nothing.


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


# --------------------------------------------------------------------------------------------------
# The compiled walk down the trees (``pip install "biglp[fast]"``).
#
# It is written in the language of the compiler of :mod:`biglp._compiled`, which is loaded and has
# compiled these loops in a tenth of a second.
#
# A few dozen rows, a tile, are turned first, so that a feature of all of them fills some vectors.
# Then each tree is asked about all tiles that fit the cache: all comparisons of its upper part
# (:mod:`biglp._compiled.packed_trees`), and below it, where there is more, rows walk on. A step
# needs the result of the one before, so that rows take turns; those that have arrived drop out.


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
