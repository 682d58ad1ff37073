"""A fit from rows and labels to a model and labelled rows: the table of contents.

Each step leaves small arrays behind and can be taken from a checkpoint instead of being computed.
Estimators, command line, estimates of time and the paper's experiments all go through these steps.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeVar

import numpy as np
from scipy import sparse

from biglp._core.device import Stopwatch, is_card_full
from biglp._core.errors import BigLPWarning, DegreeWarning, LabelRegionWarning, UnreachedRowsWarning
from biglp._core.memory import give_back
from biglp._core.settings import Settings
from biglp._core.size import Cost, HasCost
from biglp._core.threads import blas_threads_for, one_blas_thread, threads_of_one
from biglp._engines import Engine
from biglp._files.runfolder import Checkpoint
from biglp._fit.choose_rows import typical_rows
from biglp._fit.map import MappedPredictor, RowMap, map_bytes
from biglp._fit.model import Model, ModelView
from biglp._fit.novelty import unlike_labels, unlike_warning, usual_distance
from biglp._fit.plan import Plan
from biglp._fit.prepare import Prepared, choose_store, prepare
from biglp._fit.report import Report
from biglp._graph import FACTORS
from biglp._graph.graph import Answered, Answerer, Graph
from biglp._graph.own import OwnGraph
from biglp._labels.labels import Labels
from biglp._labels.targets import Targets
from biglp._learn import ANSWERS, METHODS
from biglp._learn.accuracy import reliability
from biglp._learn.base import SAMPLE, HeldOut, LearnResult, Problem, View
from biglp._output import Sink
from biglp._rows import PreparedRows, Source
from biglp._rows.source import explained

T = TypeVar("T")
TASKS = 2
"""Tasks that run at once beside a sweep."""
MOST_BYTES = 16 << 20
"""Rows of a sample beside which a sweep still has its room."""


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


def learn(problem: Problem[Any]) -> LearnResult:
    """Learn the answer to a problem: from sums, without a sweep over the rows."""
    factor, is_sparse = problem.graph.factor, sparse.issparse(problem.sums.gram)
    if is_sparse:
        give_back()  # what summing took is wanted for factors now
    # Factors are made side by side: with one thread each, for the same bits in any number of them.
    factorised = factor.unit_degrees and problem.settings.few_alphas
    with blas_threads_for(0 if is_sparse or factorised else factor.rank):
        return METHODS[problem.settings.method].learn(problem)


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

    def prepare(
        self,
        source: Source,
        labels: Labels | Targets,
        *parts: HasCost,
        places: bool = False,
        n_rows: int | None = None,
    ) -> Prepared:
        """Check what can be checked, then choose scaling, memory plan and blocks.

        ``parts`` say what else takes memory or time: the sink; ``places``: whether rows get places
        on a map; ``n_rows``: rows of all, where these are a part on which a fit of all is tried.
        """
        graph, answer = self.settings.graph, self.settings.answer
        rank = FACTORS[graph.factor].rank_for(graph, n_rows or source.n_rows, source.n_features)
        METHODS[answer.method].check(labels, answer, rank)
        if places:
            n_bytes = map_bytes(rank, self.engine.n_threads)
            parts = (*parts, lambda _: Cost(answers=n_bytes))
        self.engine.check_rows(source.n_rows)
        with explained(source), one_blas_thread():
            return prepare(
                self.engine, source, labels, self.settings, self.checkpoint, *parts, n_rows=n_rows
            )

    def fit_prepared(self, prepared: Prepared, labels: Labels | Targets, sink: Sink) -> Fitted:
        """Build the graph, sum, learn, answer; again in smaller blocks where a card is full."""
        with self.settings.place.precisely():
            while True:
                try:
                    with explained(prepared.source):
                        return self._fit_prepared(prepared, labels, sink)
                except Exception as error:
                    if not (is_card_full(error) and prepared.can_be_smaller):
                        raise
                prepared = prepared.in_smaller_blocks()  # here the error holds no memory any more

    def _fit_prepared(self, prepared: Prepared, labels: Labels | Targets, sink: Sink) -> Fitted:
        watch = Stopwatch()
        self.engine.progress.expect(prepared.plan.seconds)
        graphs = watch.timed("graph", lambda: self.graphs(prepared))
        with in_background(self.engine, graphs[0].source) as start:
            usual = start(lambda: usual_distance(graphs[0]))
            problem = watch.timed("sums", lambda: self.problem(graphs, labels))
        learnt = watch.timed("learning", lambda: self.learn(problem))
        with in_background(self.engine, graphs[0].source) as start:
            unlike = start(lambda: unlike_labels(problem, learnt.answer))
            answered = watch.timed("answers", lambda: self.answer(problem, learnt, sink))
        novelty = unlike()
        report = self._report(prepared, problem, learnt, answered) | {
            "unlike_labels": novelty and novelty.report(),
            "usual_distance": usual(),
            **prepared.where_it_ran(watch.seconds),
        }
        model = Model(
            classes=labels.classes,
            views=tuple(ModelView.of(graph) for graph in graphs),
            answer=learnt.answer,
            dtype=graphs[0].source.dtype,
            n_features=prepared.source.n_features,
            report=Report(report),
            encoding=prepared.source.encoding,
            input_names=prepared.source.input_names,
        )
        problem = replace(problem)  # a copy, without factorised matrices
        return Fitted(model, problem, prepared.plan, answered, learnt.n_iter, learnt.held_out)

    def _report(
        self, prepared: Prepared, problem: Problem[Any], learnt: LearnResult, answered: Answered
    ) -> dict[str, Any]:
        """What was chosen, and what was counted on the way."""
        effort, labels, encoding = (
            self.settings.graph.effort,
            problem.labels,
            prepared.source.encoding,
        )
        views = {
            view.graph.view: {
                **view.graph.describe(),
                "left_out": view.graph.factor.left_out(effort, view.graph.source.n_rows),
                **view.graph.source.chain.describe(),
            }
            for view in problem.views
        }
        facts = {
            **views.pop(problem.graph.view),
            **learnt.report,
            **reliability(labels, learnt.held_out),
            "effort": effort,
            "rows": prepared.source.n_rows,
            "labelled_rows": len(labels.rows),
            "repaired_rows": problem.sums.n_repaired,
            "unreached_rows": answered.n_unreached,
            "text_columns": encoding.text_columns if encoding else [],
            "left_out_columns": dict(encoding.left_out) if encoding else {},
        }
        return facts | ({"views": views} if views else {})

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
                factor.store = choose_store(factor, source, prepared.plan)
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
