"""A fit from rows and labels to a model and labelled rows: the table of contents.

Each step leaves small arrays behind and can be taken from a checkpoint instead of being computed.
Estimators, command line, estimates of time and the paper's experiments all go through these steps.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
from scipy import sparse

from biglp._core.arrays import values_per_row
from biglp._core.blocks import cut_rows
from biglp._core.device import chosen_device, is_card_full
from biglp._core.errors import (
    BigLPWarning,
    CardMemoryWarning,
    DegreeWarning,
    LabelRegionWarning,
    UnreachedRowsWarning,
    warn_caller,
)
from biglp._core.memory import MIN_BLOCK_ROWS
from biglp._core.settings import GraphSettings, Settings
from biglp._core.size import Cost, HasCost, Size
from biglp._core.threads import blas_threads_for, one_blas_thread, threads_of_one
from biglp._engines import Engine
from biglp._files.local import free_space
from biglp._files.runfolder import Checkpoint
from biglp._fit.choose_rows import typical_rows
from biglp._fit.class_names import labels_of_names
from biglp._fit.evidence import MEMORY, EvidenceMaker
from biglp._fit.model import Model, ModelView
from biglp._fit.novelty import unlike_labels, unlike_warning, usual_distance
from biglp._fit.plan import Plan, plan_fit
from biglp._fit.report import Report
from biglp._fit.sample import MappedPredictor, RowMap, map_bytes
from biglp._fit.update import learn
from biglp._graph import FACTORS
from biglp._graph.factor import ROWS_PER_LANDMARK, kept_rows
from biglp._graph.features import MemoryStore, NoStore, SpillingStore
from biglp._graph.graph import Answered, Answerer, Graph, TrainingRows
from biglp._graph.own import OwnGraph
from biglp._labels.doubts import LabelDoubts
from biglp._labels.labels import Labels, with_classes
from biglp._labels.targets import Targets
from biglp._learn import ANSWERS, METHODS
from biglp._learn.accuracy import reliability
from biglp._learn.base import SAMPLE, HeldOut, LearnResult, Problem, View
from biglp._output import Sink
from biglp._rows import PreparedRows, Source, working_dtype
from biglp._rows.prepared import Sample
from biglp._rows.source import explain_bad_rows, explained
from biglp._transforms import TRANSFORMS, Chain, Parts, Project, Scale
from biglp._transforms.base import RowTransform, size_of_transformed
from biglp._transforms.project import PROJECT_ABOVE, PROJECT_TO, TEXT_ROWS
from biglp._transforms.recognise import is_text
from biglp._transforms.views import Views

T = TypeVar("T")
TASKS = 2
"""Tasks that run at once beside a sweep."""
MOST_BYTES = 16 << 20
"""Rows of a sample beside which a sweep still has its room."""
TIMED = ("graph", "sums", "learning", "answers")
"""Steps whose times a report names where a GPU is at work."""
SMALLER = 4
"""Times that blocks become smaller where a card was full."""


class Start(Protocol):
    """Starts a task, and returns what waits for its result."""

    def __call__(self, task: Callable[[], T], /) -> Callable[[], T]: ...


@contextmanager
def in_background(engine: Engine, source: PreparedRows) -> Iterator[Start]:
    """Start small tasks beside a sweep in threads of their own, or do them when they are asked for.

    The latter with one thread, with rows so wide that a sample of them takes much memory, on a
    card, and where processes share the work, which have to agree on the order of all they do.
    """
    sample = SAMPLE * source.dtype.itemsize * max(source.n_features, source.n_input_features)
    alone = min(engine.n_threads, engine.most_at_once) < 2 or not engine.shares_memory
    if alone or source.device != "cpu" or sample > MOST_BYTES:
        yield lambda task: task
    else:
        with threads_of_one(TASKS) as pool:
            yield lambda task: pool.submit(task).result


@dataclass(frozen=True)
class Fitted:
    """What a fit leaves behind besides the answers in its sink."""

    model: Model
    problem: Problem[Any]  # what later labels start from
    plan: Plan
    answered: Answered
    n_iter: int  # iterations of the solver
    held_out: HeldOut | None = None  # what is said of labelled rows without their own labels

    def warnings(self) -> list[BigLPWarning]:
        """What the user should know about a fit that went through."""
        n_rows, report = self.problem.labels.n_rows, self.model.report
        warned: list[BigLPWarning] = []
        if self.problem.sums.n_repaired:
            landmarks = report.get("landmarks")
            advice = (
                "Shift the features to be non-negative (factor_params={'shift': True}), unless "
                "similarities of both signs are meant."
                if landmarks is None
                else f"Use more landmarks (n_landmarks={landmarks} now) or a wider bandwidth."
            )
            warned.append(
                DegreeWarning(
                    f"{self.problem.sums.n_repaired:,} of {n_rows:,} rows have a degree of zero or "
                    f"less in the low-rank graph; it was repaired. {advice}"
                )
            )
        if self.answered.n_unreached:
            warned.append(unreached_warning(self.problem, self.answered.n_unreached))
        if report.get("unlike_labels"):
            warned.append(unlike_warning(report["unlike_labels"]))
        return warned + region_warnings(report)

    def look(self, doubts: LabelDoubts | None) -> EvidenceMaker:
        """What looks at a sample of the rows, within half of what nothing needs any more.

        The other half the allocator may not have given back. ``doubts``: of the labels.
        """
        problem, plan = self.problem, self.plan
        memory = min((plan.blocks + plan.stored - plan.kept) // 2, MEMORY)
        answer, seed = self.model.answer, problem.settings.seed
        return EvidenceMaker(problem.graph, answer, problem.labels, doubts, seed, memory)


@dataclass(frozen=True)
class Prepared:
    """Rows that are ready, and the plan by which they were cut."""

    source: Source  # the rows as they are
    views: tuple[TrainingRows, ...]  # what was made of them
    plan: Plan

    def in_smaller_blocks(self) -> Prepared:
        """The same rows, of which nothing stays on the card, in smaller blocks; tells the user."""
        plan = self.plan
        warn_caller(
            f"{self.views[0].source.device} has less memory left than was planned (others may use "
            "it): rows are copied to it in every sweep now, in smaller blocks, which takes longer. "
            "Give a smaller gpu_memory (--gpu-memory) to plan for less.",
            CardMemoryWarning,
        )
        rows_each = plan.rows_each // SMALLER
        gpu = plan.gpu and replace(plan.gpu, rows_each=rows_each, rows=0, features=0)
        views = []
        for rows in self.views:
            for block in rows.blocks:
                block.memory.clear()
            source = rows.source
            moved = PreparedRows(source.inner, source.dtype, source.chain, source.device)
            views.append(replace(rows, source=moved, blocks=cut_rows(moved, rows_each)))
        plan = replace(plan, rows_each=rows_each, gpu=gpu, stores_features=False)
        return Prepared(self.source, tuple(views), plan)


@dataclass(frozen=True)
class Pipeline:
    """The steps of a fit, with what all of them need."""

    engine: Engine
    settings: Settings
    checkpoint: Checkpoint = field(default_factory=Checkpoint)  # keeps finished steps

    def fit(self, source: Source, labels: Labels | Targets, sink: Sink) -> Fitted:
        """Fit a model and write the answers of all training rows to a sink."""
        prepared = self.prepare(source, labels, sink.cost, places=sink.wants_places)
        return self.fit_prepared(prepared, labels, sink)

    def with_names(self, source: Source, labels: Labels) -> Labels:
        """The labels, and those that the names of the classes give where these say something."""
        names = self.settings.answer.classes
        if names is None or not isinstance(labels, Labels):
            return labels
        described = {value: text for value, text in names.items() if text is not None}
        if not described and not len(labels.rows):  # a list is all that there is
            described = {value: str(value) for value in names}
        if not described:
            return labels
        labels = with_classes(labels, names)
        seed = self.settings.graph.seed
        with explained(source):
            return labels_of_names(self.engine, source, labels, described, self.checkpoint, seed)

    def prepare(
        self,
        source: Source,
        labels: Labels | Targets,
        *parts: HasCost,
        places: bool = False,
        n_rows: int | None = None,
    ) -> Prepared:
        """Check what can be checked, learn the chain of transforms, plan, and cut into blocks.

        ``parts`` say what takes memory or time beside rows, graph and method: the sink;
        ``places``: whether rows get places on a map; ``n_rows``: rows of all, where these are a
        part on which a fit of all is tried; the plan is that of all.
        """
        engine, settings, graph = self.engine, self.settings, self.settings.graph
        n_rows, kind = n_rows or source.n_rows, FACTORS[graph.factor]
        rank = kind.rank_for(graph, n_rows, source.n_features)
        METHODS[settings.answer.method].check(labels, settings.answer, rank)
        if places:
            n_bytes = map_bytes(rank, engine.n_threads)
            parts = (*parts, lambda _: Cost(answers=n_bytes))
        engine.check_rows(source.n_rows)
        dtype = working_dtype(source.dtype)
        work = 0.0 if source.is_sparse else float(n_rows) * source.n_features * rank
        place = settings.place
        device = chosen_device(place.device, source.device, work, engine.local_number)
        graph = replace(graph, device=device)
        settings = replace(settings, graph=graph)
        size = Size(
            n_rows=n_rows,
            n_features=source.n_features,
            n_classes=labels.n_columns,
            n_labelled=len(labels.rows),
            values=0.0,  # known once the sample is
            dtype=dtype,
            decoding=source.decoding_bytes,
            part_bytes=source.part_bytes,
            n_machines=engine.n_machines,
            effort=graph.effort,
        )
        with one_blas_thread(), explained(source):
            sample = Sample(source, dtype, graph.seed, ROWS_PER_LANDMARK * rank)
            learn_transforms = partial(learn_chain, source, sample, graph, size)
            state = self.checkpoint.step("transforms", learn_transforms)
            chain = Chain.from_state(state)
            size = size_of_transformed(replace(size, values=float(state["values"])), source, chain)
            # One plan for all processes: what is free ("auto") is not the same on every machine.
            plan = engine.once(lambda: plan_fit(settings, size, engine, *parts))
            engine.most_at_once = plan.workers
            stay = plan.gpu is not None and plan.gpu.rows > 0
            rows = PreparedRows(source, dtype, chain, device, stay)
            sample.chain, sample.n_kept = (
                chain,
                kept_rows(source.n_rows, size.directions * size.dtype.itemsize or size.row_bytes),
            )
            blocks = cut_rows(rows, plan.rows_each)
        return Prepared(source, (TrainingRows(engine, rows, blocks, sample),), plan)

    def fit_prepared(self, prepared: Prepared, labels: Labels | Targets, sink: Sink) -> Fitted:
        """Build the graph, sum, learn, answer; again in smaller blocks where a card is full."""
        while True:
            try:
                return self._fit_prepared(prepared, labels, sink)
            except Exception as error:
                # Processes that share the work keep their cut.
                fewer = prepared.plan.rows_each >= SMALLER * MIN_BLOCK_ROWS
                if not (is_card_full(error) and fewer and self.engine.shares_memory):
                    raise
            prepared = prepared.in_smaller_blocks()  # here the error holds no memory any more

    def _fit_prepared(self, prepared: Prepared, labels: Labels | Targets, sink: Sink) -> Fitted:
        source, plan, engine = prepared.source, prepared.plan, self.engine
        with self.settings.place.precisely(), explained(source):
            engine.progress.expect(plan.seconds)
            clock = [time.perf_counter()]
            graphs = self.graphs(prepared)
            clock.append(time.perf_counter())
            first, rows = graphs[0], graphs[0].source
            with in_background(engine, rows) as start:
                usual = start(lambda: usual_distance(first))
                problem = self.problem(graphs, labels)
            clock.append(time.perf_counter())
            learnt = self.learn(problem)
            clock.append(time.perf_counter())
            with in_background(engine, rows) as start:
                unlike = start(lambda: unlike_labels(problem, learnt.answer))
                answered = self.answer(problem, learnt, sink)
            clock.append(time.perf_counter())  # all steps end with numbers in the computer's memory
            novelty, usual_distances = unlike(), usual()

        # What was chosen, and what was counted on the way.
        reliable = reliability(labels, learnt.held_out)
        effort, encoding = self.settings.graph.effort, source.encoding
        views = {
            graph.view: {
                **graph.factor.describe(),
                "left_out": graph.factor.left_out(effort, graph.source.n_rows),
                **graph.source.chain.describe(),
            }
            for graph in graphs
        }
        guessed = getattr(labels, "guessed", None)
        named = {} if guessed is None else {"rows_labelled_by_names": int(guessed.sum())}
        report = {
            **views.pop(first.view),
            **learnt.report,
            **reliable,
            "effort": effort,
            "rows": source.n_rows,
            "labelled_rows": len(labels.by_people.rows),
            **named,
            "repaired_rows": problem.sums.n_repaired,
            "unreached_rows": answered.n_unreached,
            "text_columns": encoding.text_columns if encoding else [],
            "left_out_columns": dict(encoding.left_out) if encoding else {},
            **({"views": views} if views else {}),
            "unlike_labels": novelty,
            "usual_distance": usual_distances,
        }
        if rows.device != "cpu":
            steps = zip(TIMED, pairwise(clock), strict=True)
            seconds = {step: round(ended - began, 4) for step, (began, ended) in steps}
            stayed = plan.gpu.describe() if plan.gpu else {}
            report["device"] = {"name": rows.device, **stayed, "seconds": seconds}
        model = Model(
            classes=labels.classes,
            views=tuple(
                ModelView(graph.view, graph.source.chain, graph.features.for_new_rows())
                for graph in graphs
            ),
            answer=learnt.answer,
            dtype=rows.dtype,
            n_features=source.n_features,
            report=Report(report),
            encoding=encoding,
            input_names=source.input_names,
        )
        problem = replace(problem)  # a copy, without factorised matrices
        return Fitted(model, problem, plan, answered, learnt.n_iter, learnt.held_out)

    def typical_rows(self, source: Source, n: int) -> np.ndarray:
        """Choose rows to label first, without any label."""
        nothing = np.empty(0, dtype=np.int64)
        # Two classes, as far as the memory plan is concerned: how many there are is not known.
        prepared = self.prepare(source, Labels(np.arange(2), nothing, nothing, source.n_rows))
        with explained(source):
            return typical_rows(self.graphs(prepared)[0], n, self.settings.graph.seed)

    def graphs(self, prepared: Prepared) -> tuple[Graph, ...]:
        """The graph of each view: fit the factor and find degrees, or read one that is given."""
        graphs: list[Graph] = []
        for rows in prepared.views:
            source = rows.source
            settings = replace(self.settings.graph, device=source.device)
            kind = FACTORS[settings.factor]
            if issubclass(kind, OwnGraph):
                graphs.append(kind.fit(rows, settings))
            else:
                rank = kind.rank_for(settings, source.n_rows, source.n_features)
                with blas_threads_for(rank):
                    factor = kind.fit_or_resume(rows, settings, self.checkpoint)
                # Features stay in memory; those that do not fit in a file where that is faster.
                plan, folder = prepared.plan, tempfile.gettempdir()
                # Rows in memory are as near as features in a file would be; rows in files are not.
                smaller = plan.stored_row < source.n_features * source.dtype.itemsize
                needed, here = plan.stored_row * source.n_rows, source.device == "cpu"
                if not factor.overwritable or not (here or plan.gpu):
                    factor.store = NoStore()
                elif plan.stores_features:
                    factor.store = MemoryStore()
                elif here and source.stamps and smaller and free_space(Path(folder)) > 1.2 * needed:
                    left = plan.kept - plan.workers * MemoryStore.BUFFER_BYTES
                    factor.store = SpillingStore(left, folder)
                else:
                    factor.store = NoStore()
                graphs.append(Graph.from_factor(rows, factor, self.checkpoint))
            rows.sample.let_go()
        return tuple(graphs)

    def problem(self, graphs: Sequence[Graph], labels: Labels | Targets) -> Problem[Any]:
        """Sum over all rows; small products mix the sums."""
        views = []
        for graph in graphs:
            with blas_threads_for(graph.factor.rank):
                views.append(View(graph, graph.sums(labels, self.checkpoint)))
        return Problem(tuple(views), labels, self.settings.answer)

    def learn(self, problem: Problem[Any]) -> LearnResult:
        """Learn the answer."""

        def compute() -> dict[str, np.ndarray]:
            learnt = learn(problem)
            facts = {"kind": learnt.answer.kind, "report": learnt.report, "n_iter": learnt.n_iter}
            state = {**learnt.answer.state(), "facts": np.array(json.dumps(facts))}
            if learnt.held_out is not None:
                state["held_out_rows"] = learnt.held_out.rows
                state["held_out_shares"] = learnt.held_out.shares
            return state

        with self.engine.progress.task("learning"):
            state = self.checkpoint.step("decision", compute)
        facts, held_out = json.loads(str(state.pop("facts"))), None
        if "held_out_rows" in state:
            held_out = HeldOut(state.pop("held_out_rows"), state.pop("held_out_shares"))
        answer = ANSWERS[facts["kind"]].from_state(state)
        return LearnResult(answer, facts["report"], facts["n_iter"], held_out)

    def answer(self, problem: Problem[Any], learnt: LearnResult, sink: Sink) -> Answered:
        """Write an answer for every training row."""
        answer: Answerer = learnt.answer
        learnt.answer.expect(problem.labels.n_rows)
        if sink.wants_places:
            answer = MappedPredictor(learnt.answer, RowMap.of(problem.graph))
        clamp = self.settings.answer.clamp
        return problem.graph.answer(answer, sink, problem.labels, self.checkpoint, clamp=clamp)


def learn_chain(
    source: Source, sample: Sample, settings: GraphSettings, size: Size
) -> dict[str, np.ndarray]:
    """Learn from a sample what is done to rows: the state of the chain, and values of a row."""
    everything, words_from = sample.raw(), source.words_from
    if not source.is_sparse and settings.scaling == "auto" and is_text(everything):
        everything = sample.counts()  # as many rows as CSR rows would be, which they are like
    # Anchor graphs of several views have a mean; other factors see the first view only.
    views = source.views if FACTORS[settings.factor].takes_views else {}
    rows = everything
    for transform in source.views.values():
        rows = transform.without(rows)
    if not np.isfinite(rows.data if sparse.issparse(rows) else rows).all():
        explain_bad_rows(source)
    values = values_per_row(everything)
    size = replace(size, values=values)
    kind, count, seed = settings.scaling, settings.directions, settings.seed
    about_distances = FACTORS[settings.factor].scales_features
    beside_table = bool(words_from) and about_distances
    if beside_table:
        chain = Chain([Parts(words_from or 0, kind, seed)]).fit(rows, size)
    else:
        if kind == "auto" and (words_from == 0 or not about_distances):
            kind = "text" if about_distances else "none"
        scale = Scale(kind, settings.device).fit(rows, size)
        # Factors that are about the values themselves, not about distances, take them as they are,
        # but for a feature that has only one: it tells nothing of a row, and a large one (1e12)
        # drowns the others in products of rows. Sparse rows would be dense without their zeros.
        pairwise = FACTORS[settings.factor].pairwise
        if scale.kind == "none" and not (about_distances or pairwise or sparse.issparse(rows)):
            low = np.asarray(rows.min(axis=0), dtype=np.float64)
            same = low == rows.max(axis=0)
            constants = np.where(same, low, 0.0)
            if constants.any() and not same.all():
                scale = replace(scale, offset=constants)
        chain = Chain([scale])
    further: RowTransform | None = None
    learnt_from = rows
    if settings.embedder is not None:
        further = TRANSFORMS[settings.embedder]()
    elif not beside_table:  # there words have their directions, and columns keep their meaning
        n_rows, n_features = rows.shape
        project = Project(count, seed, words=chain.scaling == "text", unit=chain.unit)
        if project.words:
            # Topics show in fewer rows than the weights of words need.
            learnt_from, wanted = rows[:: max(n_rows // TEXT_ROWS, 1)], count != 0
        elif count is not None:
            wanted = 0 < count < n_features
        else:
            wanted = settings.projected and n_features >= PROJECT_ABOVE and n_rows > 2 * PROJECT_TO
        further = project if wanted else None
    chain = chain if further is None else chain.then(further, learnt_from, size)
    if views:
        others = {
            name: Chain().then(transform, everything, size) for name, transform in views.items()
        }
        first = "words" if chain.scaling == "text" else "columns"
        chain = Chain([Views.of({first: chain, **others}, source.n_features)])
    return {"values": np.array(values)} | chain.state()


def unreached_warning(problem: Problem[Any], n_unreached: int) -> UnreachedRowsWarning:
    """Say that labels do not reach some rows."""
    # More landmarks or a larger alpha would not help: nothing ties these rows to a label.
    return UnreachedRowsWarning(
        f"{n_unreached:,} of {problem.labels.n_rows:,} rows are tied to no label through the "
        f"graph; {METHODS[problem.settings.method].unreached}"
    )


def region_warnings(report: dict[str, Any]) -> list[BigLPWarning]:
    """Say that the labels come from one region, where they do."""
    if report.get("labels_cover_rows") is not False:
        return []
    return [
        LabelRegionWarning(
            f"the labels come from one region: {report['unseen_share']:.0%} of all rows lie on one "
            "side of nearly all labelled ones, and nothing tells how well they are labelled. Label "
            "some rows drawn at random from all of them, or those that suggest names."
        )
    ]
