"""Time and memory of a run before it begins.

A few blocks of the real rows go through the real sweeps with the real number of landmarks, and what
they take is scaled to all rows. What takes no sweep is counted (:mod:`.stored`), unless a full
trial is asked for, which does it as a run would. Estimates of time are meant to be within a factor
of 1.5, those of memory within 1.25.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from biglp._answers.base import Learnt, Problem
from biglp._answers.committee.member import kind_of_rows
from biglp._answers.spreading import SpreadingAnswer
from biglp._core.arrays import Array, Rows, like, to_dense
from biglp._core.blocks import Block, Plan
from biglp._core.memory import available_memory
from biglp._core.settings import Settings
from biglp._engines.base import FEWEST_RUNS
from biglp._fit.learning import learn
from biglp._fit.memory import plan_memory
from biglp._fit.pipeline import Pipeline
from biglp._fit.prepare import on_device
from biglp._jobs.inspect import stored
from biglp._labels.labels import Labels, OwnLabels
from biglp._lowrank import FACTORS
from biglp._lowrank.base import Rehearsal
from biglp._lowrank.graph import Graph
from biglp._lowrank.precomputed import OwnGraph
from biglp._lowrank.rows import SAMPLE_ROWS, TrainingRows
from biglp._lowrank.stores import MemoryStore
from biglp._propagate.dense_system import MOST_LABELLED
from biglp._sinks import NoSink
from biglp._transforms.project import PROJECT_ABOVE

if TYPE_CHECKING:
    from biglp._jobs.inspect.estimate import Trials

TRIAL_BLOCKS = 32
"""Blocks of a full trial, where there are as many: whole runs for several workers."""
QUICK_CELLS, FEWEST_ROWS = 5_000_000, 500
"""Features of rows in a quick trial, about, and rows of a block at least."""
WARM_ROWS = 32
LEARNT = 10
"""Sweeps in which a factor is learnt in a trial."""
GROWTH = 0.85
"""Twice as many rows have g times as many pairs of landmarks in common, and g − 1 falls so fast."""
AFTERWARDS = ("loading", "decision", "labels")
"""Steps after the graph."""


@dataclass(frozen=True)
class TrialAnswer(SpreadingAnswer):
    """An answer that says nothing and takes the time of one that does.

    Attributes
    ----------
    slopes : ndarray of shape (m, c) or None
        What rows are multiplied with by members that look at them; None: nobody does.
    """

    slopes: np.ndarray | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "needs_rows", self.slopes is not None)

    def outputs(
        self, features: Array, rows: Rows = None, own: OwnLabels | None = None
    ) -> tuple[Array, int]:
        """Scores that are all alike."""
        if self.slopes is not None:
            _ = rows @ like(rows, self.slopes)
        return super().outputs(features, rows, own)


class Trial:
    """One method on a few blocks."""

    def __init__(self, trials: Trials, settings: Settings) -> None:
        self.trials, self.engine, self.probe = trials, trials.engine, trials.probe
        self.full, self.pace = trials.full, trials.pace
        settings = on_device(settings, self.probe.source, self.engine, self.probe.n_rows)
        self.shape = shape = trials.shape_of(settings)
        self.plan = plan_memory(settings, shape, self.engine)
        graph, self.kind = settings.graph, FACTORS[settings.graph.factor]
        rank = self.kind.rank_for(graph, shape.n_rows, shape.n_features)
        if self.kind.n_landmarks_counts:
            rank = min(rank, self.probe.source.n_rows)
            graph = replace(graph, n_landmarks=rank)
        self.rank, self.settings = rank, replace(settings, graph=graph)
        self.steps: dict[str, float] = {}

    def run(self, like: Trial | None = None) -> dict[str, float]:
        """Processor time of each step of the whole run; ``like`` has tried the same graph."""
        pipeline = Pipeline(self.engine, self.settings)
        if like is None:
            self.problem = self._tried_graph(pipeline)
        else:
            self.steps = {name: like.steps[name] for name in like.steps if name not in AFTERWARDS}
            self.problem = replace(like.problem, settings=self.settings.answer)
        known = not self.full and stored.is_known(self.settings)
        learnt = self._counted() if known else self._tried_learning()
        reads = learnt.answer.needs_rows or not self.plan.stores_features
        with self.pace.timed("labels", self.steps):
            pipeline.answer(self.problem, learnt, NoSink())
        self._scale("labels", self.scale, reads=reads)
        if known:
            a_row = self._learning().row_seconds(self.settings)
            self.steps["labels"] += stored.speed() * self.shape.n_rows * a_row
        return self.steps

    def _tried_learning(self) -> Learnt:
        with self.pace.timed("decision", self.steps):
            return learn(self.problem)

    def _counted(self) -> Learnt:
        """Count what learning takes; the answer says nothing."""
        learning = self._learning()
        self.steps["loading"] = stored.speed() * learning.loading(self.settings)
        self.steps["decision"] = stored.speed() * learning.seconds(self.settings)
        c = self.problem.sums.targets.shape[1]
        slopes = None
        if self.settings.answer.method == "committee":
            slopes = np.ones((self._width, c), dtype=self.shape.dtype)
        weights = self.problem.sums.unmix(np.ones_like(self.problem.sums.targets))
        return Learnt(TrialAnswer(weights, np.ones(c), np.full(c, 1 / c), slopes=slopes), {})

    @property
    def _width(self) -> int:
        """Features of a prepared row."""
        return self.problem.graph.source.n_features

    def _learning(self) -> stored.Learning:
        gram = self.problem.sums.gram
        entries = self._entries() if sparse.issparse(gram) else 0.0
        trees = kind_of_rows(self.problem.graph.source.chain) == "table"
        return stored.Learning(self.shape, self.rank, entries, self._width, trees)

    @property
    def memory(self) -> int:
        """Memory that the run will take."""
        words = self.probe.source.words_from is not None
        committee = self.settings.answer.method == "committee"
        sklearn = words or (committee and self._learning().loads_sklearn)
        return stored.likely_memory(self.plan, self.shape, sklearn=sklearn)

    def _entries(self) -> float:
        """Entries of the Gram matrix of all rows, from those of the trial and of half of it."""
        graph = self.problem.graph
        blocks = graph.blocks[: max(len(graph.blocks) // 2, 1)]
        found = sparse.vstack([graph.factor.block_features(block) for block in blocks])
        part = found if len(blocks) < len(graph.blocks) else found[: max(found.shape[0] // 2, 1)]
        entries, doublings = self.problem.sums.gram.nnz, np.log2(self.scale)
        few = (part.T @ part).nnz
        more = max(self.shape.n_rows / self.scale / part.shape[0], 1.0 + 1e-9)
        growth = min((entries / few) ** (1.0 / np.log2(more)), 2.0) - 1.0
        for number in range(int(np.ceil(doublings))):
            entries *= (1.0 + growth * GROWTH**number) ** min(doublings - number, 1.0)
        return float(min(entries, self.rank**2))

    def _tried_graph(self, pipeline: Pipeline) -> Problem[Labels]:
        """The graph of a few blocks with labels on it, each step timed."""
        labels = self._labels()
        rows = self._prepared(pipeline, labels)
        rows = replace(rows, blocks=self._blocks(rows))
        rehearsal = Rehearsal(rows, self.shape.n_rows, self.probe.fetch_seconds)
        if issubclass(self.kind, OwnGraph):
            with self.pace.timed("Gram", self.steps):
                problem = pipeline.problem([self.kind.read(rows)], labels)
            self._scale("Gram", rehearsal.scale)
            return problem
        factor, steps = self.kind.rehearse(rehearsal, self.settings.graph)
        self.steps |= steps
        if not self.kind.learnt:
            # What is done once is not to be scaled: libraries are found, threads are started.
            first = Block(rows.source, 0, 0, min(WARM_ROWS, rows.source.n_rows), plan=Plan(1))
            pipeline.problem([Graph.of(replace(rows, blocks=[first]), factor)], labels)
        kept = self.plan.stores_features
        if kept and factor.overwritable:
            factor.store = MemoryStore()
        with self.pace.timed("degrees", self.steps):
            graph = Graph.of(rows, factor)
        self._scale("degrees", rehearsal.scale)
        if factor.unit_degrees:
            del self.steps["degrees"]
        with self.pace.timed("Gram", self.steps):
            problem = pipeline.problem([graph], labels)
        self._scale("Gram", rehearsal.scale, reads=factor.unit_degrees or not kept)
        return problem

    def _prepared(self, pipeline: Pipeline, labels: Labels) -> TrainingRows:
        """The rows at hand, scaled; methods that scale them alike share them."""
        graph = self.settings.graph
        alike = (self.kind.scales_features, self.kind.pairwise, graph.projected and self._projects)
        if alike not in self.trials.prepared:
            with self.pace.timed("prepare", self.steps):
                (rows,) = pipeline.prepare(self.probe.source, labels).views
            self.trials.prepared[alike] = rows, self.steps["prepare"]
        rows, seconds = self.trials.prepared[alike]
        self.engine.limit_threads(self.plan.workers)
        # The sample of the real run comes from all over the file.
        sampled = min(SAMPLE_ROWS, self.shape.n_rows)
        more = sampled / min(SAMPLE_ROWS, self.probe.source.n_rows)
        self.steps["prepare"] = more * seconds + sampled * self.probe.fetch_seconds
        return rows

    @property
    def _projects(self) -> bool:
        """Whether rows are such that they may be projected."""
        return self.probe.source.is_sparse or self.shape.n_features >= PROJECT_ABOVE

    def same_graph(self, other: Trial) -> bool:
        """Whether another trial has made the graph that this one would make."""
        graph, made = self.settings.graph, other.settings.graph
        return graph == (made if self._projects else replace(made, projected=graph.projected))

    @property
    def scale(self) -> float:
        """Length of a sweep over all rows, counted in sweeps of the trial."""
        return self.shape.n_rows / sum(block.n_rows for block in self.problem.graph.blocks)

    def _blocks(self, rows: TrainingRows) -> list[Block]:
        """The first blocks of the real cut, or of a finer one in a quick trial."""
        each, have = self.plan.rows_each, rows.source.n_rows
        n_blocks, most = -(-self.shape.n_rows // each), TRIAL_BLOCKS
        if not self.full:  # a block for each worker, and runs so short that each has one
            most = max(self.plan.workers, 2)
            a_row = self.rank * (LEARNT if self.kind.learnt else 1) or rows.source.n_features
            each = min(max(QUICK_CELLS // (most * a_row), FEWEST_ROWS), each)
            n_blocks = min(n_blocks, FEWEST_RUNS)
        plan = Plan(n_blocks)
        most = max(min(most, plan.n_blocks), 1)
        return [
            Block(rows.source, index, index * each, min((index + 1) * each, have), plan=plan)
            for index in range(most)
            if index * each < have
        ]

    def _labels(self) -> Labels:
        """Made-up labels that are like real ones: each class around a row of its own."""
        source, rng = self.probe.source, np.random.default_rng(0)
        blocks = TRIAL_BLOCKS if self.full else 1
        n_rows = min(source.n_rows, blocks * self.plan.rows_each)
        c = min(self.shape.n_classes, n_rows)
        size = min(max(self.shape.n_labelled, c), n_rows, MOST_LABELLED)
        rows = np.sort(rng.choice(n_rows, size, replace=False))
        codes = np.arange(size) % c
        if self.full:
            values = np.nan_to_num(to_dense(source.take(rows)).astype(np.float64))
            centres = values[rng.choice(size, c, replace=False)]
            with np.errstate(over="ignore", invalid="ignore"):  # made-up labels may be any
                squared = -2.0 * values @ centres.T + (centres**2).sum(axis=1)
            codes = squared.argmin(axis=1)
            codes[:c] = np.arange(c)
        return Labels(np.arange(c), rows, codes, self.shape.n_rows)

    def _scale(self, name: str, scale: float, *, reads: bool = True) -> None:
        """Scale a sweep over the trial's blocks to all rows, which may have to be read."""
        first = not any(step in self.steps for step in ("degrees", "Gram") if step != name)
        self.steps[name] *= scale
        if reads and (first or not self._stays_cached()):
            self.steps[name] = max(self.steps[name], self.probe.read_seconds)

    def _stays_cached(self) -> bool:
        """Whether the system can keep the file in memory from one sweep to the next."""
        size = self.shape.n_rows * self.shape.values * self.probe.source.dtype.itemsize
        return size < 0.7 * available_memory()
