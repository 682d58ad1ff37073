"""Time and memory of a run before it begins.

A few blocks of the real rows go through the real sweeps with the real number of landmarks, and what
they take is scaled to all rows. Steps whose cost does not depend on the rows are done once, as they
would be. Estimates of time are meant to be within a factor of 1.5; memory is planned, not guessed.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from biglp._answers.deciding import make_decision
from biglp._answers.spreading import MAX_LABELLED
from biglp._core.arrays import to_dense
from biglp._core.blocks import Block, Plan
from biglp._core.checkpoint import Checkpoint
from biglp._core.errors import BigLPWarning
from biglp._core.measure import StepClock
from biglp._core.memory import available_memory
from biglp._engines import Engine
from biglp._engines.local import blas_threads_for
from biglp._fit.memory import MemoryPlan, Shape, plan_memory, within
from biglp._fit.prepare import (
    SAMPLE_ROWS,
    PreparedRows,
    automatic_landmarks,
    build_factor,
    prepare_rows,
    values_per_row,
)
from biglp._fit.settings import Settings
from biglp._jobs.inspect.probe import Probe
from biglp._labels.labels import Labels
from biglp._lowrank.base import Factor
from biglp._lowrank.graph import sweep_degrees, sweep_gram, sweep_labels
from biglp._lowrank.kmeans import assign_block, kmeans_start
from biglp._lowrank.landmarks import (
    EVERY,
    FIRST_ITERATIONS,
    KMEANS_ITERATIONS,
    LAST_ITERATIONS,
    ROWS_PER_LANDMARK,
    begins_with_few,
)
from biglp._lowrank.stores import MemoryStore, NoStore
from biglp._propagate.normalise import Normalisation
from biglp._sources import working_dtype

TRIAL_BLOCKS = 32
"""Blocks of a trial, where there are as many: whole runs for several workers."""
GLNP_SWEEPS = 250
"""Sweeps of GLNP until it stops, on data that is not easy."""
LLOYD_SHARE = 0.85
"""Share of the k-means iterations that is usually needed."""
ENDING_SECONDS = 0.05
PARQUET_ROWS_PER_SECOND = 5e6


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
    engine: Engine,
    probe: Probe,
    settings: Settings,
    *,
    n_classes: int,
    n_labelled: int,
    workers: int,
    parquet: bool = False,
) -> Estimate:
    """Try a method on a few rows and scale up.

    Parameters
    ----------
    engine : Engine
        Who would do the work.
    probe : Probe
        Rows to try it on.
    settings : Settings
        The method; ``memory`` is the budget of the whole process.
    n_classes, n_labelled : int
        Labels of the real run.
    workers : int
        Blocks in work at once.
    parquet : bool
        Whether the answers are written as Parquet.

    Raises
    ------
    MemoryBudgetError
        When the method does not fit the memory.
    """
    shape = shape_of_probe(probe, n_classes, n_labelled)
    plan = plan_memory(settings.memory, shape, settings, workers)
    trial = _Trial(engine, probe, replace(within(settings, plan)), plan, shape)
    with warnings.catch_warnings(), blas_threads_for(trial.k):
        warnings.simplefilter("ignore", BigLPWarning)  # a trial stops early
        steps = {"convert": probe.convert_seconds, **trial.run()}
    if parquet:
        steps["table"] = probe.n_rows / PARQUET_ROWS_PER_SECOND
    steps["ending"] = ENDING_SECONDS
    steps = {name: seconds for name, seconds in steps.items() if seconds > 0}
    return Estimate(sum(steps.values()), steps, plan)


def shape_of_probe(probe: Probe, n_classes: int, n_labelled: int) -> Shape:
    """Size of the whole problem."""
    source = probe.source
    values = float(source.n_features)
    if source.is_sparse:
        values = values_per_row(source.read(0, min(source.n_rows, 1000)))
    return Shape(
        n_rows=probe.n_rows,
        n_features=source.n_features,
        n_classes=n_classes,
        n_labelled=n_labelled,
        values=values,
        dtype=working_dtype(source.dtype),
        decoding=probe.decoding,
    )


class _Trial:
    """One method on a few blocks."""

    def __init__(
        self, engine: Engine, probe: Probe, settings: Settings, plan: MemoryPlan, shape: Shape
    ) -> None:
        self.engine, self.probe, self.plan, self.shape = engine, probe, plan, shape
        k = settings.n_landmarks or automatic_landmarks(shape.n_rows, settings.factor)
        self.k = min(k, probe.source.n_rows)
        self.settings = replace(settings, n_landmarks=self.k)
        self.steps: dict[str, float] = {}

    def run(self) -> dict[str, float]:
        """Seconds of each step of the whole run."""
        with self._timed("prepare", probe=True):
            rows = prepare_rows(
                self.probe.source,
                self.settings,
                None,
                self.shape.n_classes,
                self.shape.n_labelled,
            )
        rows = replace(rows, blocks=self._blocks(rows))
        labels = self._labels(_swept_rows(rows))
        factor = self._factor(rows)
        fits = self.plan.wanted <= self.plan.remembered
        factor.store = MemoryStore() if fits and factor.fresh_features else NoStore()
        normalisation = Normalisation(None, self.shape.n_rows)
        if not factor.unit_degrees:
            with self._swept("degrees", rows):
                sums = sweep_degrees(self.engine, rows.blocks, factor)
            normalisation = Normalisation(sums, self.shape.n_rows, factor.mixing)
        with self._swept("Gram", rows, reads=factor.unit_degrees or not fits):
            gram, mixing = sweep_gram(self.engine, rows.blocks, factor, normalisation, labels)
        with self._timed("decision"):
            decision, _, _ = make_decision(
                self.engine, rows, factor, normalisation, labels, self.settings, gram, mixing
            )
        with self._swept("labels", rows, reads=decision.needs_rows or not fits):
            sweep_labels(
                self.engine, rows.blocks, factor, normalisation, decision, _Nowhere(), labels
            )
        return self.steps

    def _factor(self, rows: PreparedRows) -> Factor:
        """Build the factor from landmarks at hand, and time what choosing them would take."""
        settings, source = self.settings, rows.source
        if settings.factor == "linear":
            return build_factor(self.engine, rows, settings, Checkpoint())
        if settings.factor in ("glnp", "glnp-mu"):
            params = {**settings.factor_params, "max_iter": 3, "tol": 1e-12}
            clock = self.engine.progress = StepClock()
            factor = build_factor(
                self.engine, rows, replace(settings, factor_params=params), Checkpoint()
            )
            tried = clock.steps["GLNP"]
            a_sweep = tried.seconds / tried.sweeps * self._scale(rows)
            self.steps["GLNP"] = GLNP_SWEEPS * a_sweep
            return factor
        sample = to_dense(source.take(np.arange(min(source.n_rows, 10 * self.k))))
        began = time.perf_counter()
        landmarks = kmeans_start(sample, self.k, settings.seed)
        start = time.perf_counter() - began
        chosen = replace(settings, landmarks=landmarks)
        with self._timed("bandwidth"):
            factor = build_factor(self.engine, rows, chosen, Checkpoint())
        if settings.landmarks == "random":
            self.steps["landmarks"] = self.k * self.probe.fetch_seconds
            return factor
        began = time.perf_counter()
        self.engine.sum_blocks(partial(assign_block, centres=landmarks), rows.blocks)
        seconds = time.perf_counter() - began
        swept = self.shape.n_rows
        if settings.landmarks == "kmeans":
            swept = min(ROWS_PER_LANDMARK * self.k, swept)
        sweeps = LLOYD_SHARE * KMEANS_ITERATIONS
        if settings.landmarks == "kmeans" and begins_with_few(swept, self.k):
            sweeps = FIRST_ITERATIONS / EVERY + LAST_ITERATIONS
        self.steps["k-means"] = (
            start
            + sweeps * seconds * swept / _swept_rows(rows)
            + min(ROWS_PER_LANDMARK * self.k, self.shape.n_rows) * self.probe.fetch_seconds
        )
        return factor

    def _blocks(self, rows: PreparedRows) -> list[Block]:
        """A few blocks that think they are some of all."""
        plan = Plan(-(-self.shape.n_rows // self.plan.rows_each))
        each, have = self.plan.rows_each, rows.source.n_rows
        most = max(min(TRIAL_BLOCKS, plan.n_blocks), 1)
        return [
            Block(rows.source, index, index * each, min((index + 1) * each, have), plan=plan)
            for index in range(most)
            if index * each < have
        ]

    def _labels(self, n_rows: int) -> Labels:
        """Made-up labels that are like real ones: each class around a row of its own."""
        source, rng = self.probe.source, np.random.default_rng(0)
        c = min(self.shape.n_classes, n_rows)
        size = min(max(self.shape.n_labelled, c), n_rows, MAX_LABELLED)
        rows = np.sort(rng.choice(n_rows, size, replace=False))
        values = np.nan_to_num(to_dense(source.take(rows)).astype(np.float64))
        centres = values[rng.choice(size, c, replace=False)]
        squared = -2.0 * values @ centres.T + (centres**2).sum(axis=1)
        codes = squared.argmin(axis=1)
        codes[:c] = np.arange(c)
        return Labels(np.arange(c), rows, codes, self.shape.n_rows)

    @contextmanager
    def _timed(self, name: str, *, probe: bool = False) -> Iterator[None]:
        began = time.perf_counter()
        yield
        self.steps[name] = time.perf_counter() - began
        if probe:  # the sample of the real run comes from all over the file
            self.steps[name] += min(SAMPLE_ROWS, self.shape.n_rows) * self.probe.fetch_seconds

    @contextmanager
    def _swept(self, name: str, rows: PreparedRows, *, reads: bool = True) -> Iterator[None]:
        began = time.perf_counter()
        yield
        seconds = (time.perf_counter() - began) * self._scale(rows)
        first = not any(step in self.steps for step in ("degrees", "Gram"))
        if reads and (first or not self._stays_cached()):
            seconds = max(seconds, self.probe.read_seconds)
        self.steps[name] = seconds

    def _scale(self, rows: PreparedRows) -> float:
        return self.shape.n_rows / _swept_rows(rows)

    def _stays_cached(self) -> bool:
        """Whether the system can keep the file in memory from one sweep to the next."""
        size = self.shape.n_rows * self.shape.values * self.probe.source.dtype.itemsize
        return size < 0.7 * available_memory()


class _Nowhere:
    """A sink that drops everything."""

    in_memory = False

    def write(self, start: int, probabilities: np.ndarray) -> None:
        """Drop."""

    def sync(self) -> None:
        """Nothing to do."""


def _swept_rows(rows: PreparedRows) -> int:
    return sum(block.n_rows for block in rows.blocks)
