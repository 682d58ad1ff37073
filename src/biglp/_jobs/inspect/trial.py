"""Time and memory of a run before it begins.

A few blocks of the real rows go through the real steps with the real number of landmarks, and what
they take is scaled to all rows. Steps whose cost does not depend on the rows are done once, as they
would be; a quick trial does those that may take seconds with fewer landmarks or labels, and scales
them too. Estimates of time are meant to be within a factor of 1.5; memory is planned, not guessed.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np

from biglp._answers import METHODS
from biglp._answers.base import Problem
from biglp._core.arrays import to_dense
from biglp._core.blocks import Block, Plan
from biglp._core.errors import BigLPWarning
from biglp._core.memory import available_memory
from biglp._core.shape import Shape, values_per_row
from biglp._engines import Engine
from biglp._engines.base import FEWEST_RUNS
from biglp._engines.local import blas_threads_for
from biglp._fit.memory import MemoryPlan, plan_memory
from biglp._fit.pipeline import Pipeline, learn
from biglp._fit.prepare import choose_scaling, directions_of, on_device
from biglp._fit.settings import Settings
from biglp._jobs.inspect.probe import Probe
from biglp._labels.labels import Labels
from biglp._lowrank import FACTORS
from biglp._lowrank.base import Rehearsal
from biglp._lowrank.graph import Graph
from biglp._lowrank.rows import SAMPLE_ROWS, TrainingRows
from biglp._lowrank.stores import MemoryStore
from biglp._propagate.systems import MOST_LABELLED, MOST_SOLVED, is_sparse_rank
from biglp._sinks import NoSink
from biglp._sources import working_dtype
from biglp._sources.directions import PROJECT_ABOVE

TRIAL_BLOCKS = 32
"""Blocks of a trial, where there are as many: whole runs for several workers."""
QUICK_BLOCKS, QUICK_LABELS = 8, 64
"""Blocks of a quick trial, two a worker at least; its labels where each has to be solved for."""
ENDING_SECONDS = 0.05
PARQUET_ROWS_PER_SECOND = 5e6
AFTERWARDS = ("loading", "decision", "labels")
"""Steps after the graph."""
GUESSED_CLASSES, GUESSED_LABELS = 2, 100
"""What is assumed of labels that nobody has named."""


@dataclass(frozen=True)
class Estimate:
    """What a method would take.

    Attributes
    ----------
    seconds : float
    steps : dict of str to float
        Seconds of each step.
    plan : MemoryPlan
    """

    seconds: float
    steps: dict[str, float]
    plan: MemoryPlan


@dataclass
class Trials:
    """Trials of methods on the same rows.

    Parameters
    ----------
    engine : Engine
    probe : Probe
        Rows to try them on.
    labels : Labels, optional
        Labels of the real run.
    quick : bool
        Whether long steps are tried on less.
    """

    engine: Engine
    probe: Probe
    labels: Labels | None
    quick: bool = True
    _latest: Trial | None = None

    def estimate(self, settings: Settings, *, parquet: bool) -> Estimate:
        """Try a method on a few rows and scale up.

        Parameters
        ----------
        settings : Settings
            The method and the budget.
        parquet : bool
            Whether the answers are written as Parquet.

        Raises
        ------
        MemoryBudgetError
            When the method does not fit the memory.
        """
        trial = Trial(self, settings)
        before, self._latest = self._latest, trial
        with warnings.catch_warnings(), blas_threads_for(trial.rank):
            warnings.simplefilter("ignore", BigLPWarning)  # a trial stops early
            # Methods that differ in what they do with a graph share the trial of the graph.
            shared = before is not None and trial.same_graph(before)
            steps = trial.run(before if shared else None)
        steps = {"convert": self.probe.convert_seconds, **steps}
        if parquet:
            steps["table"] = self.probe.n_rows / PARQUET_ROWS_PER_SECOND
        steps["ending"] = ENDING_SECONDS
        steps = {name: seconds for name, seconds in steps.items() if seconds > 0}
        return Estimate(sum(steps.values()), steps, trial.plan)


def shape_of_probe(probe: Probe, labels: Labels | None, settings: Settings) -> Shape:
    """Size of the whole problem."""
    source = probe.source
    values, directions = float(source.n_features), 0
    if source.is_sparse:
        some = source.read(0, min(source.n_rows, 1000)).astype(working_dtype(source.dtype))
        values = values_per_row(some)
        directions = directions_of(source, choose_scaling(some, settings.graph, source.words_from))
    return Shape(
        n_rows=probe.n_rows,
        n_features=source.n_features,
        n_classes=GUESSED_CLASSES if labels is None else labels.n_classes,
        n_labelled=GUESSED_LABELS if labels is None else len(labels.rows),
        values=values,
        dtype=working_dtype(source.dtype),
        decoding=probe.decoding,
        directions=directions,
        effort=settings.graph.effort,
        card_row=source.n_features * working_dtype(source.dtype).itemsize,
    )


class Trial:
    """One method on a few blocks."""

    def __init__(self, trials: Trials, settings: Settings) -> None:
        self.engine, self.probe, self.quick = trials.engine, trials.probe, trials.quick
        settings = on_device(settings, trials.probe.source, trials.engine, trials.probe.n_rows)
        self.shape = shape = shape_of_probe(trials.probe, trials.labels, settings)
        probe = self.probe
        self.plan = plan_memory(settings, shape, self.engine)
        graph, self.kind = settings.graph, FACTORS[settings.graph.factor]
        rank = self.kind.rank_for(graph, shape.n_rows, shape.n_features)
        if self.kind.n_landmarks_counts:
            rank = min(rank, probe.source.n_rows)
            graph = replace(graph, n_landmarks=rank)
        self.rank, self.settings = rank, replace(settings, graph=graph)
        self.steps: dict[str, float] = {}

    def run(self, like: Trial | None = None) -> dict[str, float]:
        """Seconds of each step of the whole run; ``like`` has tried the same graph."""
        pipeline = Pipeline(self.engine, self.settings)
        if like is None:
            self.problem = self._tried_graph(pipeline)
        else:
            self.steps = {name: like.steps[name] for name in like.steps if name not in AFTERWARDS}
            self.problem = replace(like.problem, settings=self.settings.answer)
        if METHODS[self.settings.answer.method].extra(self.shape).sklearn:
            with self._timed("loading"):
                _load_sklearn()
        with self._timed("decision"):
            learnt = learn(self.problem)
        self.steps["decision"] *= self._more_labels
        reads = learnt.answer.needs_rows or not self.plan.stores_features
        with self._swept("labels", self.scale, reads=reads):
            pipeline.answer(self.problem, learnt, NoSink())
        return self.steps

    def _tried_graph(self, pipeline: Pipeline) -> Problem[Labels]:
        """The graph of a few blocks with labels on it, each step timed."""
        labels = self._labels()
        with self._timed("prepare"):
            rows = pipeline.prepare(self.probe.source, labels).rows
        # The sample of the real run comes from all over the file.
        sampled = min(SAMPLE_ROWS, self.shape.n_rows)
        self.steps["prepare"] += sampled * self.probe.fetch_seconds
        rows = replace(rows, blocks=self._blocks(rows))
        rehearsal = Rehearsal(rows, self.shape.n_rows, self.probe.fetch_seconds, self.quick)
        factor, steps = self.kind.rehearse(rehearsal, self.settings.graph)
        self.steps |= steps
        stored = self.plan.stores_features
        if stored and factor.overwritable:
            factor.store = MemoryStore()
        with self._swept("degrees", rehearsal.scale):
            graph = Graph.of(rows, factor)
        if factor.unit_degrees:
            del self.steps["degrees"]
        with self._swept("Gram", rehearsal.scale, reads=factor.unit_degrees or not stored):
            return pipeline.problem(graph, labels)

    def same_graph(self, other: Trial) -> bool:
        """Whether another trial has made the graph that this one would make."""
        projects = self.probe.source.is_sparse or self.shape.n_features >= PROJECT_ABOVE
        graph, made = self.settings.graph, other.settings.graph
        return graph == (made if projects else replace(made, projected=graph.projected))

    @property
    def scale(self) -> float:
        """Length of a sweep over all rows, counted in sweeps of the trial."""
        swept = sum(block.n_rows for block in self.problem.graph.blocks)
        return self.shape.n_rows / swept

    @property
    def _more_labels(self) -> float:
        """How many times the trial's labels there are, where learning takes as much longer."""
        if not self.quick or not is_sparse_rank(self.rank, self.shape.n_labelled):
            return 1.0
        solved = min(self.shape.n_labelled, MOST_SOLVED)
        return max(solved / len(self.problem.labels.rows), 1.0)

    def _blocks(self, rows: TrainingRows) -> list[Block]:
        """The first blocks of the real cut."""
        n_blocks, most = -(-self.shape.n_rows // self.plan.rows_each), TRIAL_BLOCKS
        if self.quick:  # and runs so short that each worker has some
            workers = max(self.plan.workers, 1)
            most = max(QUICK_BLOCKS, 2 * workers)
            n_blocks = min(n_blocks, FEWEST_RUNS * max(most // (2 * workers), 1))
        plan = Plan(n_blocks)
        each, have = self.plan.rows_each, rows.source.n_rows
        most = max(min(most, plan.n_blocks), 1)
        return [
            Block(rows.source, index, index * each, min((index + 1) * each, have), plan=plan)
            for index in range(most)
            if index * each < have
        ]

    def _labels(self) -> Labels:
        """Made-up labels that are like real ones: each class around a row of its own."""
        source, rng = self.probe.source, np.random.default_rng(0)
        blocks = QUICK_BLOCKS if self.quick else TRIAL_BLOCKS
        n_rows = min(source.n_rows, blocks * self.plan.rows_each)
        c = min(self.shape.n_classes, n_rows)
        most = MOST_LABELLED
        if self.quick and is_sparse_rank(self.rank, self.shape.n_labelled):
            most = max(QUICK_LABELS, 2 * c)
        size = min(max(self.shape.n_labelled, c), n_rows, most)
        rows = np.sort(rng.choice(n_rows, size, replace=False))
        values = np.nan_to_num(to_dense(source.take(rows)).astype(np.float64))
        centres = values[rng.choice(size, c, replace=False)]
        squared = -2.0 * values @ centres.T + (centres**2).sum(axis=1)
        codes = squared.argmin(axis=1)
        codes[:c] = np.arange(c)
        return Labels(np.arange(c), rows, codes, self.shape.n_rows)

    @contextmanager
    def _timed(self, name: str) -> Iterator[None]:
        began = time.perf_counter()
        yield
        self.steps[name] = time.perf_counter() - began

    @contextmanager
    def _swept(self, name: str, scale: float, *, reads: bool = True) -> Iterator[None]:
        """Time a sweep over the trial's blocks, and scale it to all rows."""
        first = not any(step in self.steps for step in ("degrees", "Gram"))
        began = time.perf_counter()
        yield
        seconds = (time.perf_counter() - began) * scale
        if reads and (first or not self._stays_cached()):
            seconds = max(seconds, self.probe.read_seconds)
        self.steps[name] = seconds

    def _stays_cached(self) -> bool:
        """Whether the system can keep the file in memory from one sweep to the next."""
        size = self.shape.n_rows * self.shape.values * self.probe.source.dtype.itemsize
        return size < 0.7 * available_memory()


def _load_sklearn() -> None:
    """Load what the committee does, so that it counts once."""
    import sklearn.ensemble
    import sklearn.linear_model
    import sklearn.model_selection  # noqa: F401
