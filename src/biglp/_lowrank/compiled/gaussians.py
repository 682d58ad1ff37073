"""Compiled features of a block: the Gaussian kernel, or a product, and its column sums.

A vector holds four features of each of a few landmarks. Four features of a row, repeated, are
multiplied by it, so that 20 landmarks of float32 fill five vectors, where one landmark a place
would waste a third of two. The four sums of a landmark are added at the end, those of four rows at
once, which leaves one vector of distances between four rows and a few landmarks; their exponentials
are taken while they are in registers. Sums run over their terms in one order, each added with one
rounding: the bits of a row's features depend neither on its neighbours nor on the processor.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir

from biglp._core.errors import NonFiniteRowsError
from biglp._core.instructions import DOUBLE, LONG
from biglp._core.jit import Compiled, compiled_once
from biglp._lowrank.compiled.vectors import VECTOR_BYTES, Vectors, registers

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
