"""The model of the labelling loop: a graph of the pool once, then a small fit for each few labels.

The sums over the pool do not depend on labels, and those over labelled rows are small
(:mod:`biglp._fit.update`). A new fit therefore costs the algebra, and asking what is thought of
rows now: of a quarter of a large pool at once, a different one each time, and of the others when
there is nothing more urgent to do.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from biglp._core.arrays import Rows, to_numpy
from biglp._core.blocks import Block
from biglp._core.settings import Settings
from biglp._engines import Engine
from biglp._fit.choose_rows import Pool, pool_spectrum, suggest_rows, typical_rows
from biglp._fit.pipeline import Pipeline
from biglp._fit.update import learn, with_only
from biglp._graph.graph import Graph
from biglp._labels.doubts import find_doubts
from biglp._labels.labels import Labels, labels_from_pairs
from biglp._learn.base import LearnResult, Problem, sample_indices
from biglp._output import ArraySink
from biglp._rows import PreparedRows, Source

# --------------------------------------------------------------------------------------------------
# The rows that the labelling loop works on: a bounded number, in memory, with all labelled ones.
#
# Suggestions and estimates hardly change with more rows than these; time and memory do. Rows that
# get a label without being among them (on the map, or by number) are added at the end: their
# features are those of any new row, and the graph stays as it is.


POOL_ROWS = 100_000
"""Rows of the pool, where memory allows."""
LEAST_ROWS = 1000
MEMORY_SHARE = 0.25
"""Share of the budget that the pool's rows may take."""
LABELLED_SHARE = 0.5
"""Share of the pool that labelled rows may take; of more of them, a random part."""
FETCHED_AT_ONCE = 10_000


def pool_size(n_rows: int, row_bytes: float, memory: int) -> int:
    """Rows that there is room for."""
    fitting = int(MEMORY_SHARE * memory / row_bytes)
    return min(n_rows, POOL_ROWS, max(fitting, LEAST_ROWS))


def stored_bytes(source: Source) -> float:
    """Memory of a row, as it is stored."""
    if not source.is_sparse:
        return source.n_features * source.dtype.itemsize
    some = source.read(0, min(source.n_rows, LEAST_ROWS))
    return (some.data.nbytes + some.indices.nbytes) / some.shape[0] + some.indptr.itemsize


def draw_pool(n_rows: int, size: int, labelled: np.ndarray, seed: int) -> np.ndarray:
    """Row numbers of the pool, increasing: the labelled rows, and others by lot."""
    if size >= n_rows:
        return np.arange(n_rows)
    known = np.unique(labelled)
    most = int(LABELLED_SHARE * size)
    if len(known) > most:
        known = known[sample_indices(len(known), most, seed)]
    drawn = np.setdiff1d(sample_indices(n_rows, size, seed), known)
    drawn = drawn[sample_indices(len(drawn), size - len(known), seed)]
    return np.sort(np.concatenate([known, drawn]))


class PoolSource(Source):
    """Some rows of another source, held in memory; a few more can be added at the end.

    ``rows``, (p,), are their numbers in ``whole``, increasing but for those that were added.
    """

    def __init__(self, whole: Source, rows: np.ndarray) -> None:
        self.whole, self.rows = whole, rows
        self.n_features, self.dtype = whole.n_features, whole.dtype
        self.name, self.is_sparse = whole.name, whole.is_sparse
        self.encoding, self.words_from = whole.encoding, whole.words_from
        self.feature_names = whole.feature_names
        self.n_rows = len(rows)
        starts = range(0, len(rows), FETCHED_AT_ONCE)
        pieces = (whole.take(rows[start : start + FETCHED_AT_ONCE]) for start in starts)
        if whole.is_sparse:
            stored = _stacked(list(pieces))
        else:
            stored = np.empty((len(rows), whole.n_features), dtype=whole.dtype)
            for start, piece in zip(starts, pieces, strict=True):  # never a second copy of them
                stored[start : start + len(piece)] = piece
        whole.check_unchanged()
        self._parts: list[Any] = [stored]
        self._positions: dict[int, int] | None = None

    def extended(self, rows: np.ndarray) -> PoolSource:
        """The same pool with more rows; those it has are shared."""
        more = object.__new__(PoolSource)
        more.__dict__.update(self.__dict__)
        more.rows = np.concatenate([self.rows, rows])
        more._parts = [*self._parts, self.whole.take(np.sort(rows))[np.argsort(np.argsort(rows))]]
        self.whole.check_unchanged()
        more.n_rows = len(more.rows)
        more._positions = None
        return more

    def positions_of(self, rows: Iterable[int]) -> np.ndarray:
        """Positions in the pool of rows of the whole; -1 for those that are not in it."""
        if self._positions is None:
            self._positions = dict(zip(self.rows.tolist(), range(self.n_rows), strict=True))
        return np.array([self._positions.get(row, -1) for row in rows], dtype=np.int64)

    def read(self, start: int, stop: int) -> Rows:
        """Return rows; they never reach over from one part to the next."""
        first = 0
        for part in self._parts:
            if start < first + part.shape[0]:
                return part[start - first : stop - first]
            first += part.shape[0]
        return self._parts[-1][:0]

    def take(self, indices: np.ndarray) -> Rows:
        """Return a copy of the rows."""
        if len(self._parts) == 1:
            return self._parts[0][indices]
        starts = np.cumsum([0, *(part.shape[0] for part in self._parts)])
        cuts = np.searchsorted(indices, starts)  # increasing
        return _stacked(
            [
                part[indices[cuts[number] : cuts[number + 1]] - starts[number]]
                for number, part in enumerate(self._parts)
            ]
        )


def _stacked(parts: list[Any]) -> Any:
    if len(parts) == 1:
        return parts[0]
    return sparse.vstack(parts).tocsr() if sparse.issparse(parts[0]) else np.concatenate(parts)


# --------------------------------------------------------------------------------------------------
# The model: the graph of the pool, and a fit for each few labels.


FIRST_ROWS = 20
"""Typical rows that are asked for before the model's own suggestions."""
SUGGESTED = 20
"""Suggestions of a fit; they last until the next one is there."""
PARTS, WHOLE_ROWS = 4, 20_000
"""A fit asks one block in so many, except in pools of no more rows than these."""
BLOCKS_AT_ONCE = 8
DOUBTS = 50
LEAST_WRONG = 0.1
"""Given labels in doubt that are listed: so many, of those that are wrong with this probability."""


@dataclass(frozen=True)
class Fit:
    """What is thought of the p rows of the pool with some labels, of this version."""

    version: int
    n_labels: int
    classes: list[str]
    graph: Graph
    learnt: LearnResult
    probabilities: np.ndarray  # (p, c)
    suggested: np.ndarray  # (s,) rows to label next, as numbers of the whole data
    doubts: list[dict[str, Any]]  # given labels that the rest contradicts, the most doubtful first
    seconds: float
    labels: Labels  # as the pool numbers its rows
    stale: Sequence[Block] = ()  # blocks whose probabilities are those of an earlier fit

    @property
    def estimate(self) -> dict[str, Any] | None:
        """Estimated accuracy, where it is known."""
        estimate: dict[str, Any] | None = self.learnt.report.get("estimated_accuracy")
        return estimate

    def probabilities_of(self, rows: Any) -> np.ndarray:
        """Class probabilities of any rows, as they are stored.  (b, m) → (b, c)."""
        prepared = to_numpy(self.graph.source.prepared(rows))
        features = self.graph.features.of_rows(prepared)
        needed = prepared if self.learnt.answer.needs_rows else None
        return np.asarray(to_numpy(self.learnt.answer.outputs(features, needed)[0]))


class Learner:
    """Learns from labels of rows of a pool, which grows by labelled rows that are not in it."""

    graph: Graph

    def __init__(self, engine: Engine, settings: Settings, pool: PoolSource) -> None:
        self._engine, self._settings, self.pool = engine, settings, pool
        self._problem: Problem[Labels] | None = None
        self._rounds = 0

    @property
    def seed(self) -> int:
        """Seed of all choices."""
        return self._settings.graph.seed

    def prepare(self) -> np.ndarray:
        """Build the graph; return typical rows to label first, as numbers of the whole data."""
        pipeline = Pipeline(self._engine, self._settings)
        (self.graph,) = pipeline.graphs(pipeline.prepare(self.pool, self._no_labels()))
        first = typical_rows(self.graph, FIRST_ROWS, self.seed)
        return self.pool.rows[first]

    def sum(self) -> None:
        """Sum over the pool, which every fit starts from."""
        pipeline = Pipeline(self._engine, self._settings)
        self._problem = pipeline.problem([self.graph], self._no_labels())
        self._spectrum = pool_spectrum(self.graph)

    def _no_labels(self) -> Labels:
        """Labels of no row; two classes, because the sums want some."""
        nothing = np.empty(0, dtype=np.int64)
        return Labels(np.arange(2), nothing, nothing, self.pool.n_rows)

    def fit(self, given: Mapping[int, str], version: int, before: Fit | None = None) -> Fit:
        """Learn from labels, of at least two classes, by rows of the whole data.

        What the fit ``before`` says is kept of rows that are not asked at once.
        """
        began = time.perf_counter()
        # Labelled rows that are not in the pool come to its end, as a block of their own.
        rows = np.fromiter(given, dtype=np.int64, count=len(given))
        missing = rows[self.pool.positions_of(rows) < 0]
        if len(missing):
            first = self.pool.n_rows
            self.pool = self.pool.extended(missing)
            rows_before = self.graph.source
            source = PreparedRows(
                self.pool, rows_before.dtype, rows_before.chain, rows_before.device
            )
            block = Block(source, len(self.graph.blocks), first, self.pool.n_rows)
            self.graph = replace(self.graph, source=source, blocks=[*self.graph.blocks, block])
        if self._problem is None:
            self.sum()
        assert self._problem is not None

        positions = self.pool.positions_of(given)
        order = np.argsort(positions)
        order = order[positions[order] >= 0]
        values = np.array(list(given.values()))[order]
        labels = labels_from_pairs(positions[order], values, self.pool.n_rows)
        classes = labels.classes.tolist()
        learnt = learn(with_only(self._problem.with_graphs([self.graph]), labels))

        # Of a large pool a part is asked, a different one each time.
        blocks, stale, known = self.graph.blocks, list[Block](), None
        if (
            before is not None
            and self.pool.n_rows > WHOLE_ROWS
            and before.classes == classes
            and len(before.probabilities) == self.pool.n_rows
        ):
            self._rounds += 1
            known = before.probabilities
            stale = [block for block in blocks if (block.index + self._rounds) % PARTS]
            blocks = [block for block in blocks if not (block.index + self._rounds) % PARTS]
        sink = _sink(labels, known)
        replace(self.graph, blocks=blocks).answer(learnt.answer, sink, labels)
        pool = Pool(
            self.graph, learnt.answer, labels, predicted=sink.probabilities, spectrum=self._spectrum
        )
        chosen = suggest_rows(pool, SUGGESTED, self.seed).rows

        doubts = []
        if learnt.held_out is not None:  # of labels that were held out: nothing is fitted for it
            held_out = labels.take(np.searchsorted(labels.rows, learnt.held_out.rows))
            doubtful = find_doubts(held_out, learnt.held_out.shares).listed(held_out, LEAST_WRONG)
            doubts = [
                {
                    "row": int(self.pool.rows[doubtful.rows[index]]),
                    "label": str(doubtful.labels[index]),
                    "suggested": str(doubtful.suggested_labels[index]),
                    "probability": round(float(doubtful.wrong[index]), 4),
                }
                for index in range(min(len(doubtful), DOUBTS))
            ]
        return Fit(
            version=version,
            n_labels=len(given),
            classes=classes,
            graph=self.graph,
            learnt=learnt,
            probabilities=sink.probabilities,
            suggested=self.pool.rows[chosen],
            doubts=doubts,
            seconds=time.perf_counter() - began,
            labels=labels,
            stale=stale,
        )

    def complete(self, fit: Fit) -> Fit:
        """The same fit with what it says of more rows, a few blocks of those that are left."""
        sink = _sink(fit.labels, fit.probabilities)
        part = replace(fit.graph, blocks=fit.stale[:BLOCKS_AT_ONCE])
        part.answer(fit.learnt.answer, sink, fit.labels)
        return replace(fit, probabilities=sink.probabilities, stale=fit.stale[BLOCKS_AT_ONCE:])


def _sink(labels: Labels, known: np.ndarray | None) -> ArraySink:
    """Room for probabilities, with those that are known."""
    sink = ArraySink(labels.classes, labels.n_rows, np.dtype(np.float32))
    if known is not None:
        sink.probabilities[:] = known
    return sink
