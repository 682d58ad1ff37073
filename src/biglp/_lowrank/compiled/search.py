"""The compiled search for the landmarks nearest to each row.

A matrix product that writes all distances, from which others then take the smallest few, spends
much of its time on taking them. Here rows stand side by side: a vector of the processor holds one
feature of as many rows as it has places. The distances of these rows to one landmark are then one
vector, which is compared with each row's farthest neighbour so far while it is in a register; where
one is nearer, all rows put the landmark in its place by comparing and choosing, without a branch.
Landmarks of a panel stay in the first cache while rows pass by. Every sum runs over its terms in
order, each added with one rounding: the bits of a row's distances depend neither on its neighbours
nor on the width of the vectors. Of equally near landmarks the first is taken, as everywhere.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir

from biglp._core.instructions import INT, LONG
from biglp._core.jit import Compiled, compiled_once
from biglp._lowrank.compiled.vectors import Vectors, registers

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
