"""What methods would take, each tried on a few rows."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from typing import Any

from biglp._core.errors import BigLPWarning
from biglp._core.settings import Settings
from biglp._core.shape import Shape, values_per_row
from biglp._core.threads import blas_threads_for
from biglp._engines import Engine
from biglp._fit.memory import MemoryPlan
from biglp._fit.prepare import learn_chain, size_of_transformed
from biglp._jobs.inspect import stored
from biglp._jobs.inspect.clock import Pace
from biglp._jobs.inspect.trial import Trial
from biglp._labels.labels import Labels
from biglp._lowrank import FACTORS
from biglp._lowrank.rows import TrainingRows
from biglp._sources import working_dtype
from biglp._sources.probe import Probe

PARQUET_ROWS_PER_SECOND = 5e6
SPARSE_ROWS = 1000
"""Sparse rows that tell how many entries rows have."""
GUESSED_CLASSES, GUESSED_LABELS = 2, 100
"""What is assumed of labels that nobody has named."""


@dataclass(frozen=True)
class Estimate:
    """What a method would take.

    Attributes
    ----------
    steps : dict of str to float
        Processor time of each step in seconds.
    plan : MemoryPlan
    memory : int
        Memory that will be taken, within the plan.
    pace : Pace
        What becomes of processor time on the clock.
    """

    steps: dict[str, float]
    plan: MemoryPlan
    memory: int
    pace: Pace

    @property
    def seconds(self) -> float:
        """Clock time; asked for when all trials are over, it is the steadier."""
        return self.pace.seconds(self.steps)

    @property
    def cpu_seconds(self) -> float:
        """Processor time of all threads."""
        return sum(self.steps.values())


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
    full : bool
        Whether more is tried, and learning too.
    """

    engine: Engine
    probe: Probe
    labels: Labels | None
    full: bool = False
    pace: Pace = field(default_factory=Pace)
    prepared: dict[tuple[bool, ...], tuple[TrainingRows, float]] = field(default_factory=dict)
    sizes: dict[tuple[Any, ...], tuple[float, int]] = field(default_factory=dict)
    _latest: Trial | None = None

    def __post_init__(self) -> None:
        self.pace.n_threads = self.engine.n_threads

    def shape_of(self, settings: Settings) -> Shape:
        """Size of the whole problem."""
        source, labels, graph = self.probe.source, self.labels, settings.graph
        dtype = working_dtype(source.dtype)
        size = Shape(
            n_rows=self.probe.n_rows,
            n_features=source.n_features,
            n_classes=GUESSED_CLASSES if labels is None else labels.n_classes,
            n_labelled=GUESSED_LABELS if labels is None else len(labels.rows),
            values=float(source.n_features),
            dtype=dtype,
            decoding=self.probe.decoding,
            effort=graph.effort,
            card_row=source.n_features * dtype.itemsize,
        )
        if not source.is_sparse and graph.embedder is None:
            return size
        about_distances = FACTORS[graph.factor].scales_features
        alike = (about_distances, graph.projected, graph.directions, graph.embedder)
        if alike not in self.sizes:
            some = source.read(0, min(source.n_rows, SPARSE_ROWS)).astype(dtype)
            raw = replace(size, values=values_per_row(some))
            chain = learn_chain(some, graph, raw, source.words_from)
            found = size_of_transformed(raw, source, chain)
            self.sizes[alike] = found.values, found.directions
        values, directions = self.sizes[alike]
        return replace(size, values=values, directions=directions)

    def estimate(self, settings: Settings, *, parquet: bool, report: bool = True) -> Estimate:
        """Try a method on a few rows and scale up.

        Parameters
        ----------
        settings : Settings
            The method and the budget.
        parquet : bool
            Whether the answers are written as Parquet.
        report : bool
            Whether a page for people is written beside them.

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
        steps["ending"] = stored.speed() * stored.ending(trial.shape, trial.rank, report=report)
        steps = {name: seconds for name, seconds in steps.items() if seconds > 0}
        return Estimate(steps, trial.plan, trial.memory, self.pace)
