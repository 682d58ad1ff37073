"""``biglp fit`` without its printing: from files of rows and labels to labels and a model.

>>> from pathlib import Path
>>> from biglp._jobs.fit import FitJob
>>> job = FitJob(("sim:10Kx8",), Path("out"))        # doctest: +SKIP
>>> summary = job.run()                              # doctest: +SKIP
"""

from __future__ import annotations

import shlex
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from biglp._core.errors import ParameterError
from biglp._core.memory import give_back
from biglp._core.parameters import DEFAULTS, one_of
from biglp._core.settings import Settings
from biglp._core.size import Cost, HasCost, Size
from biglp._engines import Engine
from biglp._files.local import atomic_write
from biglp._files.runfolder import RunFolder
from biglp._fit.check_labels import known_doubts
from biglp._fit.evidence import EvidenceMaker
from biglp._fit.pipeline import Pipeline
from biglp._fit.plan import plan_fit
from biglp._graph import FACTORS
from biglp._graph.landmarks import STRATEGIES
from biglp._jobs.job import (
    Job,
    from_stdin,
    label_identity,
    require_labels,
    typed_names,
    typed_options,
)
from biglp._jobs.report import (
    EVIDENCE,
    OWN_GRAPH,
    ShownRows,
    doubtful_lines,
    evidence_state,
    kept_evidence,
    page,
)
from biglp._jobs.results import MODEL, REPORT, STAGE
from biglp._labels.codes import Marks
from biglp._output import FileSink, RowIds
from biglp._output.sink import check_top
from biglp._rows import Source
from biglp._rows.format import FileFacts, without_pyarrow
from biglp._rows.options import LAYOUT, ReadOptions
from biglp._rows.source import explained, table_bytes


@dataclass(frozen=True)
class FitJob(Job):
    """Fit a model and label all rows.

    Parameters
    ----------
    labels : tuple of str
        Files of labels; a later one counts more, and all of them more than the column.
    label_column : str, optional
        Column of the labels, in the table of the rows or in the files of labels.
    weight_column : str, optional
        Column of the labels' weights, in the same table.
    unlabelled : int, str, sequence of these or None
        What marks a row without a label, beside empty, null and NaN.
    parameters : dict
        Parameters of :class:`biglp.LowRankLabelPropagation`, except ``engine`` and ``verbose``.
    map : bool
        Whether to write a map of the rows beside their labels.
    report : bool
        Whether to write a report for people beside them.
    """

    labels: tuple[str, ...] = ()
    label_column: str | None = None
    weight_column: str | None = None
    unlabelled: Marks = None
    parameters: dict[str, Any] = field(default_factory=dict)
    map: bool = False
    report: bool = True

    @property
    def memory_given(self) -> str | int:
        """Memory budget that was given."""
        return self.parameters.get("memory", "auto")

    def settings(self) -> Settings:
        """Check the parameters, as the estimator does."""
        one_of("landmarks", self.parameters.get("landmarks", "kmeans"), STRATEGIES)
        return Settings.of(self.parameters)

    @property
    def parts(self) -> list[HasCost]:
        """What takes time beside the fit."""
        return [report_cost] if self.report else []

    def identity(self) -> dict[str, Any]:
        """Input, labels and every option that the answers depend on."""
        if self.destination.is_file:
            raise ParameterError(f"{self.output} must name a folder: fit writes several files.")
        given = {name: value for name, value in self.parameters.items() if name != "memory"}
        self.settings()  # parameters before files: they are the quicker to refuse
        options = {**DEFAULTS, **given, "memory": None, "map": self.map}
        found = self.common_identity("fit", options)
        return {**found, "labels": label_identity(require_labels(self.label_input))}

    def make_sink(
        self, stage: Path, classes: np.ndarray, n_rows: int, ids: RowIds | None
    ) -> FileSink:
        """Say where answers go, and the map where one is wanted."""
        sink = super().make_sink(stage, classes, n_rows, ids)
        if not self.map:
            return sink
        try:
            from biglp._output.table import MapSink  # needs pyarrow
        except ImportError as error:
            raise without_pyarrow("map.parquet", error) from error
        return MapSink(sink, stage)

    def work(self, engine: Engine, run: RunFolder) -> tuple[list[str], dict[str, Any]]:
        """Open rows and labels, plan the memory, fit, and stage labels and model."""
        settings = engine.once(self.settings)  # one budget for all: it decides the cut into blocks
        engine.once(lambda: self._refuse_early(settings, engine))
        source = self.open_source(engine, run, **engine.once(lambda: self.label_input.not_features))
        gathered = engine.once(lambda: self.label_input.gather(source.n_rows))
        labels = gathered.labels
        check_top(self.top, len(labels.classes))  # before anything is fitted
        if engine.shares_memory:  # of several processes only the first one reads labels
            source.decoding_bytes = max(source.decoding_bytes, self.label_input.decoding_bytes)
        for suspicion in gathered.suspicions():
            warnings.warn(suspicion, stacklevel=2)
        pipeline = Pipeline(engine, settings, run)
        prepared = pipeline.prepare(source, labels, *self.parts, places=self.map)
        run.confirm({"option --memory: rows a block": prepared.plan.rows_each})
        sink = self.open_sink(engine, run, labels.classes, source.n_rows)
        fitted = pipeline.fit_prepared(prepared, labels, sink)
        engine.once(sink.commit)
        model, plan = fitted.model, fitted.plan
        engine.once(lambda: model.save(run.folder / STAGE / MODEL))
        for warning in fitted.warnings():
            warnings.warn(warning, stacklevel=2)
        facts = {
            "rows": source.n_rows,
            "features": source.n_features,
            "labelled_rows": len(labels.rows),
            "told": [*gathered.notes, *self.told_of_ids()],
            "given": per_class(labels.classes, dict(enumerate(labels.rows_each.tolist()))),
            "found": per_class(labels.classes, fitted.answered.counts),
            "settings": {**model.report, "memory": settings.memory, "threads": plan.workers},
            "memory_plan": plan.describe(),
            "label_more": self.label_more(),
        }
        names = [*sink.names, MODEL]
        if self.report:
            doubts = engine.once(lambda: known_doubts(labels, fitted.held_out))
            facts["doubtful_labels"] = doubtful_lines(doubts, labels)
            self._look(run, EvidenceMaker.of(fitted, doubts), source)
            names.append(REPORT)
        return names, facts

    def label_more(self) -> str | None:
        """The command that opens the page to label more of the same rows, where they can be."""
        if from_stdin(self.inputs) or FACTORS[self.settings().graph.factor].pairwise:
            return None
        options = dict(self.reading)
        if self.weight_column in self.label_input.not_features.get("drop", ()):
            options["drop"] = (*options.get("drop", ()), self.weight_column)
        names = ("metadata", "label_column", "id_column")
        options |= {name: getattr(self, name) for name in names}
        words = ["biglp", "label", *typed_names(self.inputs), *typed_options(options)]
        marks = self.unlabelled if isinstance(self.unlabelled, (list, tuple)) else [self.unlabelled]
        for mark in marks:
            words += typed_options({"unlabelled": mark})
        # Answers go to the last file, which need not be there yet.
        for file in (*self.labels, *(["answers.csv"] if self.labels else [])):
            words += ["--labels", str(file)]
        return shlex.join(words)

    def _look(self, run: RunFolder, look: EvidenceMaker, source: Source) -> None:
        """Look at the rows for the report; a graph has none that could be looked at."""
        if not look.graph.pairwise:
            give_back()  # rows of a table are decoded once more
            rows = ShownRows(self.label_input, source)
            with explained(source), look.graph.engine.progress.step("report"):
                run.step(EVIDENCE, lambda: evidence_state(look, rows))

    def stage_pages(self, run: RunFolder, summary: dict[str, Any]) -> None:
        """Stage the report."""
        if not self.report:
            return
        state = kept_evidence(run)
        html = page(summary, self.output, state, () if state else (OWN_GRAPH,))
        with atomic_write(run.folder / STAGE / REPORT) as file:
            file.write(html)

    def _refuse_early(self, settings: Settings, engine: Engine) -> None:
        """Refuse a table that cannot fit the memory before it is converted."""
        if not self.rows.is_table:
            return
        layout = {name: value for name, value in self.reading.items() if name in LAYOUT}
        facts = self.rows.peek(ReadOptions(**layout))
        others = self.label_input.not_features
        left_out = {others.get("label_column"), *others.get("drop", self.reading.get("drop", ()))}
        chosen = {*(self.reading.get("columns") or facts.columns)} - left_out
        if not chosen:
            return  # the reader says which columns there are
        least = table_size(facts, len(chosen))
        plan_fit(settings, least, engine, likely=replace(least, **LIKELY))


LIKELY: dict[str, Any] = {"n_classes": 10, "n_labelled": 1000, "dtype": np.dtype(np.float64)}
"""What is named when a budget is refused before labels were read: enough for usual ones."""


def table_size(facts: FileFacts, n_columns: int) -> Size:
    """Least size of a table that has not been looked into."""
    decoding = table_bytes(facts.n_rows, n_columns, facts.page_bytes)
    return Size(facts.n_rows, n_columns, 2, 2, float(n_columns), np.dtype(np.float32), decoding)


def report_cost(size: Size) -> Cost:
    """What looking at the rows for the report takes."""
    return Cost(seconds={"report": 0.3})


def per_class(classes: np.ndarray, counts: Mapping[int, int]) -> dict[str, int]:
    """Rows of each class by its name."""
    return {str(name): counts.get(code, 0) for code, name in enumerate(classes.tolist())}
