"""``biglp fit`` without its printing: from files of rows and labels to labels and a model.

>>> from pathlib import Path
>>> from biglp._jobs.fit import FitJob
>>> job = FitJob(("sim:10Kx8",), Path("out"))        # doctest: +SKIP
>>> summary = job.run()                              # doctest: +SKIP
"""

from __future__ import annotations

import shlex
import warnings
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np

from biglp._core.errors import ParameterError
from biglp._core.memory import give_back
from biglp._core.parameters import DEFAULTS
from biglp._core.size import Cost, HasCost
from biglp._engines import Engine
from biglp._files.local import atomic_write
from biglp._files.runfolder import RunFolder
from biglp._fit.pipeline import Pipeline
from biglp._fit.update import known_doubts
from biglp._graph import FACTORS
from biglp._jobs.job import Job, from_stdin, per_class, typed_options
from biglp._jobs.report import DIGITS, EVIDENCE, OWN_GRAPH, look_at_rows, page
from biglp._jobs.results import MODEL, REPORT, STAGE
from biglp._output.sink import check_top
from biglp._rows.source import explained

MOST_DOUBTFUL = 100
"""Doubtful labels that the summary names."""


@dataclass(frozen=True)
class FitJob(Job):
    """Fit a model and label all rows."""

    map: bool = False
    report: bool = True

    @property
    def costs(self) -> list[HasCost]:
        """What takes time beside the fit: looking at the rows for the report."""
        return [lambda size: Cost(seconds={"report": 0.3})] if self.report else []

    def identity(self) -> dict[str, Any]:
        """Input, labels and every option that the answers depend on."""
        if self.destination.is_file:
            raise ParameterError(f"{self.output} must name a folder: fit writes several files.")
        self.settings()  # parameters before files: they are the quicker to refuse
        # A budget changes no answer by itself; the cut into blocks that follows is confirmed later.
        given = {name: value for name, value in self.parameters.items() if name != "memory"}
        options = {**DEFAULTS, **given, "memory": None, "map": self.map}
        identity = self.identity_with("fit", options)
        named = options["classes"] is not None or options["class_vectors"] is not None
        return {**identity, "labels": self.label_identity(named=named)}

    def work(self, engine: Engine, run: RunFolder) -> tuple[list[str], dict[str, Any]]:
        """Open rows and labels, plan the memory, fit, and stage labels, model and report."""
        settings, source, read = self.open_labelled(engine, run)
        pipeline = Pipeline(engine, settings, run)
        labels = pipeline.with_names(source, read.labels)
        if self.top is not None:
            check_top(self.top, len(labels.classes))  # before anything is fitted
        if engine.shares_memory:  # of several processes only the first one reads labels
            source.decoding_bytes = max(source.decoding_bytes, self.label_input.decoding_bytes)
        for suspicion in read.suspicions():
            warnings.warn(suspicion, stacklevel=2)
        prepared = pipeline.prepare(source, labels, *self.costs, places=self.map)
        # Sums of other blocks are rounded otherwise: a resumed run must cut alike.
        run.confirm({"option --memory: rows a block": prepared.plan.rows_each})
        sink = self.open_sink(engine, run, labels.classes, source.n_rows, map=self.map)
        fitted = pipeline.fit_prepared(prepared, labels, sink)
        engine.once(sink.commit)
        model, plan = replace(fitted.model, id_column=self.id_column), fitted.plan
        engine.once(lambda: model.save(run.folder / STAGE / MODEL))
        for warning in fitted.warnings():
            warnings.warn(warning, stacklevel=2)
        # The command that opens the page to label more of the same rows, where they can be.
        more = None
        if not (from_stdin(self.inputs) or FACTORS[settings.graph.factor].pairwise):
            options = dict(self.reading)
            if self.weight_column in self.label_input.not_features.get("drop", ()):
                options["drop"] = (*options.get("drop", ()), self.weight_column)
            options |= {
                name: getattr(self, name) for name in ("metadata", "label_column", "id_column")
            }
            words = ["biglp", "label", *self.inputs, *typed_options(options)]
            marks = self.unlabelled
            for mark in marks if isinstance(marks, (list, tuple)) else [marks]:
                words += typed_options({"unlabelled": mark})
            # Answers go to the last file, which need not be there yet.
            for file in (*self.labels, *(["answers.csv"] if self.labels else [])):
                words += ["--labels", str(file)]
            more = shlex.join(words)
        facts = {
            "rows": source.n_rows,
            "features": source.n_features,
            "labelled_rows": len(labels.by_people.rows),
            "told": [*source.notes, *read.notes],
            "given": per_class(
                labels.classes, dict(enumerate(labels.by_people.rows_each.tolist()))
            ),
            "found": per_class(labels.classes, fitted.answered.counts),
            "settings": {**model.report, "memory": settings.memory, "threads": plan.workers},
            "memory_plan": plan.describe(),
            "label_more": more,
        }
        names = [*sink.names, MODEL]
        if self.report:
            doubts = engine.once(lambda: known_doubts(labels, fitted.held_out))
            facts["doubtful_labels"] = []
            if doubts is not None:  # the most doubtful ones
                listed = doubts.listed(labels)
                lines = zip(
                    listed.rows.tolist(),
                    listed.labels.tolist(),
                    listed.suggested_labels.tolist(),
                    listed.wrong.tolist(),
                    strict=True,
                )
                facts["doubtful_labels"] = [
                    {
                        "row": row,
                        "label": str(label),
                        "suggested_label": str(suggested),
                        "wrong": round(wrong, DIGITS),
                    }
                    for row, label, suggested, wrong in islice(lines, MOST_DOUBTFUL)
                ]
            look = fitted.look(doubts)
            if not look.graph.pairwise:  # a graph of one's own has no rows to look at
                give_back()  # rows of a table are decoded once more
                with explained(source), engine.progress.task("report"):
                    run.step(EVIDENCE, lambda: look_at_rows(look, self.label_input, source))
            names.append(REPORT)
        return names, facts

    def stage_pages(self, run: RunFolder, summary: dict[str, Any]) -> None:
        """Stage the report."""
        if not self.report:
            return
        evidence, path = None, run.folder / f"{EVIDENCE}.npz"
        if path.exists():
            with np.load(path, allow_pickle=False) as stored:
                evidence = dict(stored)
        html = page(summary, self.output, evidence, () if evidence else (OWN_GRAPH,))
        with atomic_write(run.folder / STAGE / REPORT) as file:
            file.write(html)
