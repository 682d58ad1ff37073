"""Time and memory of a run before it begins.

A few blocks of the real rows go through the real steps with the real number of landmarks, and what
they take is scaled to all rows. Steps whose cost does not depend on the rows are done once, as they
would be. Estimates of time are meant to be within a factor of 1.5; memory is planned, not guessed.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np

from biglp._core.arrays import to_dense
from biglp._core.blocks import Block, Plan
from biglp._core.errors import BigLPWarning
from biglp._core.memory import available_memory
from biglp._core.shape import Shape, values_per_row
from biglp._engines import Engine
from biglp._engines.local import blas_threads_for
from biglp._fit.memory import MemoryPlan, plan_memory
from biglp._fit.pipeline import Pipeline, learn
from biglp._fit.prepare import choose_scaling, directions_of
from biglp._fit.settings import Settings
from biglp._jobs.inspect.probe import Probe
from biglp._labels.labels import Labels
from biglp._lowrank import FACTORS
from biglp._lowrank.base import Rehearsal
from biglp._lowrank.graph import Graph
from biglp._lowrank.rows import SAMPLE_ROWS, TrainingRows
from biglp._lowrank.stores import MemoryStore
from biglp._propagate.systems import MOST_LABELLED
from biglp._sinks import NoSink
from biglp._sources import working_dtype

TRIAL_BLOCKS = 32
"""Blocks of a trial, where there are as many: whole runs for several workers."""
ENDING_SECONDS = 0.05
PARQUET_ROWS_PER_SECOND = 5e6
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


def estimate(
    engine: Engine, probe: Probe, settings: Settings, labels: Labels | None, *, parquet: bool
) -> Estimate:
    """Try a method on a few rows and scale up.

    Parameters
    ----------
    engine : Engine
    probe : Probe
        Rows to try it on.
    settings : Settings
        The method and the budget.
    labels : Labels, optional
        Labels of the real run.
    parquet : bool
        Whether the answers are written as Parquet.

    Raises
    ------
    MemoryBudgetError
        When the method does not fit the memory.
    """
    trial = Trial(engine, probe, settings, shape_of_probe(probe, labels, settings))
    with warnings.catch_warnings(), blas_threads_for(trial.rank):
        warnings.simplefilter("ignore", BigLPWarning)  # a trial stops early
        steps = {"convert": probe.convert_seconds, **trial.run()}
    if parquet:
        steps["table"] = probe.n_rows / PARQUET_ROWS_PER_SECOND
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
    )


class Trial:
    """One method on a few blocks."""

    def __init__(self, engine: Engine, probe: Probe, settings: Settings, shape: Shape) -> None:
        self.engine, self.probe, self.shape = engine, probe, shape
        self.plan = plan_memory(settings, shape, engine)
        graph, self.kind = settings.graph, FACTORS[settings.graph.factor]
        rank = self.kind.rank_for(graph, shape.n_rows, shape.n_features)
        if self.kind.n_landmarks_counts:
            rank = min(rank, probe.source.n_rows)
            graph = replace(graph, n_landmarks=rank)
        self.rank, self.settings = rank, replace(settings, graph=graph)
        self.steps: dict[str, float] = {}

    def run(self) -> dict[str, float]:
        """Seconds of each step of the whole run."""
        pipeline = Pipeline(self.engine, self.settings)
        labels = self._labels()
        with self._timed("prepare"):
            rows = pipeline.prepare(self.probe.source, labels).rows
        # The sample of the real run comes from all over the file.
        sampled = min(SAMPLE_ROWS, self.shape.n_rows)
        self.steps["prepare"] += sampled * self.probe.fetch_seconds
        rows = replace(rows, blocks=self._blocks(rows))
        rehearsal = Rehearsal(rows, self.shape.n_rows, self.probe.fetch_seconds)
        factor, steps = self.kind.rehearse(rehearsal, self.settings.graph)
        self.steps |= steps
        stored = self.plan.stores_features
        if stored and factor.overwritable:
            factor.store = MemoryStore()
        scale = rehearsal.scale
        with self._swept("degrees", scale):
            graph = Graph.of(rows, factor)
        if factor.unit_degrees:
            del self.steps["degrees"]
        with self._swept("Gram", scale, reads=factor.unit_degrees or not stored):
            problem = pipeline.problem(graph, labels)
        with self._timed("decision"):
            learnt = learn(problem)
        with self._swept("labels", scale, reads=learnt.answer.needs_rows or not stored):
            pipeline.answer(problem, learnt, NoSink())
        return self.steps

    def _blocks(self, rows: TrainingRows) -> list[Block]:
        """The first blocks of the real cut."""
        plan = Plan(-(-self.shape.n_rows // self.plan.rows_each))
        each, have = self.plan.rows_each, rows.source.n_rows
        most = max(min(TRIAL_BLOCKS, plan.n_blocks), 1)
        return [
            Block(rows.source, index, index * each, min((index + 1) * each, have), plan=plan)
            for index in range(most)
            if index * each < have
        ]

    def _labels(self) -> Labels:
        """Made-up labels that are like real ones: each class around a row of its own."""
        source, rng = self.probe.source, np.random.default_rng(0)
        n_rows = min(source.n_rows, TRIAL_BLOCKS * self.plan.rows_each)
        c = min(self.shape.n_classes, n_rows)
        size = min(max(self.shape.n_labelled, c), n_rows, MOST_LABELLED)
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
