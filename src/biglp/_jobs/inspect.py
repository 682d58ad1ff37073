"""What an input is, and what a run on it would take: ``biglp inspect`` and ``--dry-run``.

Memory is that of the plan. For the time, the real steps are taken with the real number of landmarks
and of labels, but sweeps visit a small part of the blocks, and rows of a table are the first ones
of its file. What a step took is then scaled as its cost grows with the number of rows
(:class:`biglp._core.size.Cost`): sweeps with the rows, k-means with its sample, the rest not at
all. Estimates of time are meant to be within a factor of 1.5.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from biglp._core.arrays import to_dense
from biglp._core.blocks import Block, Cut, cut_rows
from biglp._core.errors import BigLPWarning, MemoryBudgetError
from biglp._core.memory import available_memory
from biglp._core.progress import Progress, StepClock
from biglp._core.settings import GraphSettings, Settings
from biglp._core.size import HasCost
from biglp._engines import Engine, make_engine
from biglp._engines.base import cut_runs
from biglp._fit.pipeline import Pipeline, Prepared
from biglp._fit.plan import SWEEPS, Plan
from biglp._graph import FACTORS
from biglp._graph.graph import Graph
from biglp._jobs.job import Job, per_class
from biglp._labels.labels import Labels
from biglp._learn.base import Problem
from biglp._output import NoSink
from biglp._rows import ReadOptions
from biglp._rows.format import Probe
from biglp._tables.encode_columns import NoFeaturesError
from biglp._transforms.project import PROJECT_ABOVE

METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "default": ("", {}),
    "anchor graph": ("--factor anchors", {"factor": "anchors"}),
    "Nyström, k-means": ("--factor nystrom", {"factor": "nystrom"}),
    "Nyström, random": (
        "--factor nystrom --landmarks random",
        {"factor": "nystrom", "landmarks": "random"},
    ),
    "linear kernel": ("--factor linear", {"factor": "linear"}),
    "GLNP": ("--factor glnp", {"factor": "glnp"}),
}
"""Methods that are compared: the options that choose them, and the parameters."""
MOST_LEARNT = 1_000_000
"""Numbers of a factor that is learnt, up to which it is tried unless ``--full`` is given."""
SHARE, FEWEST_ROWS, FULL = 0.015, 4000, 4
"""Part of the rows that sweeps visit, and rows at least; so many times as much with ``--full``."""
LEAST_SECONDS, MOST_SECONDS = 0.5, 3.0
"""Time of all sweeps that is worth measuring, and most of it, by the guesses of the plan."""
GUESSED_CLASSES, GUESSED_LABELS = 2, 100
"""What is assumed of labels that nobody has named."""
MOST_MADE_UP = 5000
"""Labels that are made up where those of the run are not among the rows at hand."""


def survey(job: Job, progress: Progress, *, full: bool = False) -> dict[str, Any]:
    """Look at the input of a job, count its labels if any are named, and estimate every method.

    JSON values. ``full``: try methods on more rows. Files of a store are copied to a temporary
    folder.
    """
    with job.copying(None, progress), make_engine("threads", job.threads) as engine:
        files, source = job.rows, job.label_input
        facts = files.peek(job.layout)
        counted = facts.n_rows if facts.exact else None  # labels in the table itself count its rows
        read = source.gather(counted) if source.anywhere else None
        labels = None if read is None else read.labels
        others = source.not_features if files.is_table else {}
        rows = facts.n_rows if labels is None else labels.n_rows
        problem: str | None = None
        methods: list[dict[str, Any]] = []
        uses: dict[str, str] = {}
        n_features, probe = 0, None
        try:
            probe = replace(files.probe(ReadOptions(**{**job.reading, **others})), n_rows=rows)
            looked: Probe | NoFeaturesError = probe
        except NoFeaturesError as error:  # what is done with each column is known all the same
            looked, problem = error, str(error)
        if probe is not None:
            uses, n_features = probe.uses, probe.source.n_features
            methods = list(_methods(job, Trials(engine, probe, labels, full), progress))
        notes = {**uses, **{name: f"left out: {why}" for name, why in looked.left_out.items()}}
        no_features = {job.label_column: "the label", job.id_column: "the ID"}
        return {
            "name": ", ".join(job.inputs),
            "format": facts.kind,
            "size": facts.size,
            "rows": rows,
            "exact": facts.exact or labels is not None,
            "features": n_features,
            "dtype": None if facts.columns else facts.dtype,
            "converted": facts.converted,
            "columns": {  # what each is, what is done with it, and why
                name: {
                    "type": kind,
                    "missing": looked.missing.get(name, 0),
                    "feature": name in uses,
                    "use": no_features.get(name) or notes.get(name, "left out, as asked"),
                }
                for name, kind in facts.columns.items()
            },
            "missing_values": sum(looked.missing.values()),
            "looked_at": looked.looked_at,
            "labels": labels and _counted(labels),
            "told": [] if read is None else read.notes,
            "warnings": [] if read is None else list(map(str, read.suspicions())),
            "memory": job.memory,
            "threads": engine.n_threads,
            "problem": problem,
            "methods": methods,
        }


def _methods(job: Job, trials: Trials, progress: Progress) -> Iterator[dict[str, Any]]:
    """What every method would take."""
    n_rows, n_features = trials.probe.n_rows, trials.probe.source.n_features
    with progress.task("trying methods", len(METHODS)) as task:
        for name, (options, parameters) in METHODS.items():
            settings = Settings.of({**parameters, **job.parameters})
            kind = FACTORS[settings.graph.factor]
            rank = kind.rank_for(settings.graph, n_rows, n_features)
            if kind.learnt and rank * n_features > MOST_LEARNT and not trials.full:
                continue  # learning the factor takes long, of few rows too
            method: dict[str, Any] = {
                "name": name,
                "options": options,
                "landmarks": _landmarks(trials.probe, settings),
                "seconds": None,
            }
            try:
                estimate = trials.estimate(settings, *job.costs)
            except MemoryBudgetError as error:
                if error.least is None:
                    raise
                method["memory"] = error.least
            else:
                clock, cpu = np.sum(list(estimate.steps.values()), axis=0)
                method |= {
                    "seconds": round(float(clock), 3),
                    "cpu_seconds": round(float(cpu), 3),
                    "memory": estimate.plan.expected,
                    "steps": estimate.shown,
                }
            task.advance(1)
            yield method


def plan(job: Job) -> dict[str, Any]:
    """Check a job and estimate it without writing anything; files of stores are copied for it."""
    with job.copying(None, Progress()):
        job.settle()
        settings = job.settings()
        facts = job.rows.peek(job.layout)
        labels = job.label_input.gather(facts.n_rows if facts.exact else None).labels
        reading = ReadOptions(**{**job.reading, **job.label_input.not_features})
        probe = replace(job.rows.probe(reading), n_rows=labels.n_rows)
        with make_engine(job.engine, job.threads) as engine:
            estimate = Trials(engine, probe, labels).estimate(settings, *job.costs)
        planned = estimate.plan
        return {
            "input": ", ".join(job.inputs),
            "format": facts.kind,
            "rows": labels.n_rows,
            "features": probe.source.n_features,
            "labels": _counted(labels),
            "settings": {
                name: value
                for group in (settings.graph, settings.answer)
                for name, value in asdict(group).items()
                if isinstance(value, (int, float, str, bool))
            },
            "landmarks": _landmarks(probe, settings),
            "rows_a_block": planned.rows_each,
            "threads": planned.workers,
            "stored": planned.stores_features,
            "seconds": round(float(sum(clock for clock, _ in estimate.steps.values())), 2),
            "steps": estimate.shown,
            "memory": planned.expected,
            "gpu": planned.gpu and planned.gpu.describe(),
            "output": str(job.destination.path),
        }


def _counted(labels: Labels) -> dict[str, int]:
    return per_class(labels.classes, dict(enumerate(labels.rows_each.tolist())))


def _landmarks(probe: Probe, settings: Settings) -> int | None:
    """Number of landmarks; None for a factor that has none."""
    kind = FACTORS[settings.graph.factor]
    if not kind.n_landmarks_counts:
        return None
    return kind.rank_for(settings.graph, probe.n_rows, probe.source.n_features)


@dataclass(frozen=True)
class Estimate:
    """What a method would take."""

    steps: dict[str, np.ndarray]  # seconds of each step (by the clock, of all processors)
    plan: Plan

    @property
    def shown(self) -> dict[str, float]:
        """Seconds of each step by the clock, on a machine as busy as it is now."""
        return {name: round(float(clock), 3) for name, (clock, _) in self.steps.items()}


@dataclass
class Trials:
    """Trials of methods on the same rows."""

    engine: Engine
    probe: Probe  # rows to try them on
    labels: Labels | None  # of the real run
    full: bool = False  # whether sweeps visit more rows
    _latest: tuple[GraphSettings, dict[str, np.ndarray], Problem[Labels]] | None = None

    def __post_init__(self) -> None:
        self.probe.source.decoding_bytes = self.probe.decoding

    def estimate(self, settings: Settings, *costs: HasCost) -> Estimate:
        """Try a method on a few rows and scale up; a MemoryBudgetError where it does not fit.

        ``costs``: of what a run does beside the fit.
        """
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", BigLPWarning)  # a trial stops early
            return self._estimate(settings, costs)

    def _estimate(self, settings: Settings, costs: tuple[HasCost, ...]) -> Estimate:
        probe, source = self.probe, self.probe.source
        kind, n_rows = FACTORS[settings.graph.factor], probe.n_rows
        labels = self._labels() if self.labels is None else self.labels
        steps: dict[str, np.ndarray] = {"convert": np.full(2, probe.convert_seconds)}
        with _timed(steps, "prepare"):
            prepared = Pipeline(self.engine, settings).prepare(
                source, labels, *costs, n_rows=n_rows
            )
        plan = prepared.plan
        if kind.pairwise:  # a part of its rows is another graph
            return Estimate(steps | {step: np.full(2, s) for step, s in plan.seconds.items()}, plan)
        graph = replace(settings.graph, device=prepared.views[0].source.device)
        landmarks = _landmarks(probe, settings)
        if landmarks is not None:
            graph = replace(graph, n_landmarks=min(landmarks, source.n_rows))
        pipeline = Pipeline(self.engine, replace(settings, graph=graph))
        # Methods that differ in what they do with a graph share the trial of the graph.
        may_project = source.is_sparse or source.n_features >= PROJECT_ABOVE
        alike = graph if may_project else replace(graph, projected=False)
        if self._latest is None or self._latest[0] != alike:
            self._latest = alike, *self._tried_graph(pipeline, prepared)
        steps |= self._latest[1]
        problem = replace(self._latest[2], settings=settings.answer)
        with _timed(steps, "learning"):
            learnt = pipeline.learn(problem)
        view = problem.views[0]
        block = replace(view.graph, blocks=view.graph.blocks[:1])
        first = replace(problem, views=(replace(view, graph=block),))
        with _timed(steps, "loading"):
            pipeline.answer(first, learnt, NoSink())
        with _timed(steps, "labels"):
            pipeline.answer(problem, learnt, NoSink())
        scale = n_rows / _swept(problem.graph.blocks)
        sweeps = [step for step in SWEEPS if step in steps]
        for step in sweeps:
            steps[step] = steps[step] * scale
        # Rows that do not stay in memory by themselves are read in every sweep that needs them.
        size = n_rows * source.n_features * source.dtype.itemsize
        again = size > 0.7 * available_memory() and not plan.stores_features
        for step in sweeps if again else sweeps[:1]:
            steps[step] = np.maximum(steps[step], probe.read_seconds)
        # Others' work on this machine slows down what is not tried, too.
        clock, cpu = steps["prepare"] + steps["learning"]
        pace = np.array([max(clock / max(cpu, 1e-3), 1.0), 1.0])
        untried = {step: pace * s for step, s in plan.seconds.items() if step not in steps}
        return Estimate(steps | untried, plan)

    def _tried_graph(
        self, pipeline: Pipeline, prepared: Prepared
    ) -> tuple[dict[str, np.ndarray], Problem[Labels]]:
        """The graph of some blocks with labels on it, and seconds; sweeps are yet to be scaled."""
        graph_settings, plan, n_rows = pipeline.settings.graph, prepared.plan, self.probe.n_rows
        kind = FACTORS[graph_settings.factor]
        rows = replace(prepared.views[0], blocks=self._blocks(prepared))
        labels = self._labels(rows.blocks if kind.learnt else None)
        steps: dict[str, np.ndarray] = {}
        clock = self.engine.progress = StepClock()
        with _timed(steps, "graph"):
            (graph,) = pipeline.graphs(replace(prepared, views=(rows,)))
        everything = steps["graph"]
        clocked = {step: took.seconds for step, took in clock.steps.items() if step not in SWEEPS}
        # What is done once is not to be scaled: libraries are found, loops are compiled.
        factor, first = graph.factor, replace(rows, blocks=rows.blocks[:1])
        with _timed(steps, "loading"):
            pipeline.problem([Graph.from_factor(first, factor)], labels)
        if not kind.learnt:  # blocks without features, which take memory that is new
            rows = replace(rows, blocks=self._blocks(prepared))
        with _timed(steps, "degrees"):
            graph = Graph.from_factor(rows, factor)
        with _timed(steps, "Gram"):
            problem = pipeline.problem([graph], labels)
        if factor.unit_degrees:
            del steps["degrees"]
        in_blocks = kind.learnt or graph_settings.landmarks == "kmeans-full"
        visited = _swept(rows.blocks) if in_blocks else self.probe.source.n_rows
        cost = kind.cost(graph_settings, replace(plan.size, n_rows=visited))
        for step, seconds in clocked.items():
            share = everything * (seconds / everything[0])
            steps["graph"] = steps["graph"] - share
            scale = n_rows / _swept(rows.blocks)  # what the cost does not name sweeps over the rows
            if step in cost.seconds:
                scale = plan.seconds[step] / cost.seconds[step]
            steps[step] = share * scale
        return steps, problem

    def _blocks(self, prepared: Prepared) -> list[Block]:
        """Some blocks from all over the rows at hand, so many as are worth the time."""
        plan, n_rows = prepared.plan, self.probe.n_rows
        blocks = cut_rows(prepared.views[0].source, plan.rows_each)
        whole = Cut(-(-n_rows // plan.rows_each))
        for block in blocks:
            block.plan = whole
        seconds = sum(plan.seconds.get(step, 0.0) for step in ("GLNP", *SWEEPS))
        share = max(SHARE, FEWEST_ROWS / n_rows, LEAST_SECONDS / seconds)
        share = min(share, MOST_SECONDS / seconds) * (FULL if self.full else 1)
        # Sums of neighbours are added up to one before they are added exactly, which takes longer.
        runs = cut_runs(blocks)
        count = int(share * n_rows / plan.rows_each / len(runs[0].blocks))
        chosen = np.linspace(0, len(runs) - 1, min(max(count, plan.workers), len(runs))).astype(int)
        return [block for run in np.unique(chosen) for block in runs[run].blocks]

    def _labels(self, among: Sequence[Block] | None = None) -> Labels:
        """Those of the run where all its rows are here, else as many, each class in one region.

        ``among``: blocks whose rows alone may have labels.
        """
        source, labels, n_rows = self.probe.source, self.labels, self.probe.n_rows
        have = np.arange(source.n_rows)
        if among is not None:
            have = np.concatenate([have[block.start : block.stop] for block in among])
        if labels is not None and len(have) == n_rows:
            return labels
        rng = np.random.default_rng(0)
        c, size = GUESSED_CLASSES, GUESSED_LABELS
        if labels is not None:
            c, size = labels.n_classes, min(len(labels.rows), MOST_MADE_UP)
        c = min(c, len(have))
        rows = np.sort(rng.choice(have, min(max(size, c), len(have)), replace=False))
        values = np.nan_to_num(to_dense(source.take(rows)).astype(np.float64))
        centres = values[rng.choice(len(rows), c, replace=False)]
        with np.errstate(over="ignore", invalid="ignore"):  # made-up labels may be any
            squared = -2.0 * values @ centres.T + (centres**2).sum(axis=1)
        codes = squared.argmin(axis=1)
        codes[:c] = np.arange(c)
        return Labels(np.arange(c), rows, codes, n_rows)


@contextmanager
def _timed(steps: dict[str, np.ndarray], step: str) -> Iterator[None]:
    """Add what a step takes, by the clock and of all processors."""
    began = np.array([time.perf_counter(), time.process_time()])
    yield
    taken = np.array([time.perf_counter(), time.process_time()]) - began
    steps[step] = steps.get(step, 0.0) + taken


def _swept(blocks: Sequence[Block]) -> int:
    return sum(block.n_rows for block in blocks)
