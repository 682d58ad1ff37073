"""From rows and labels in files to a table of doubtful labels: ``biglp check``, unprinted."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from biglp._core.parameters import METHOD, checked
from biglp._engines import Engine
from biglp._files.runfolder import RunFolder
from biglp._fit.pipeline import Pipeline
from biglp._fit.update import check_labels
from biglp._jobs.job import TableJob
from biglp._jobs.results import FinishedFit
from biglp._rows.options import ReadOptions
from biglp._rows.source import explained

DIGITS = 4
"""Digits of probabilities in the table."""


@dataclass(frozen=True)
class CheckJob(TableJob):
    """Fit a model to find which of its labels are probably wrong; no row is labelled."""

    least: float | None = None  # probability; by default all that the rest of the data contradicts

    verb = "check"
    columns = ("row", "label", "suggested_label", "probability", "suggested_probability", "wrong")

    @property
    def neighbour(self) -> Path:
        """The working folder: rows and labels may be where nothing can be written."""
        return Path("labels")

    def identity(self) -> dict[str, Any]:
        """Input, labels and every option that the answers depend on."""
        self.refuse_to_replace()
        if self.least is not None:
            checked("least", self.least)
        self.settings()
        return {
            "command": self.verb,
            "input": self.rows.facts,
            "labels": self.label_identity(),
        }

    def work(self, engine: Engine, run: RunFolder) -> tuple[list[str], dict[str, Any]]:
        """Open rows and labels, fit, look at the labels, and write the table."""
        settings, source, read = self.open_labelled(engine, run)
        labels = read.labels
        for suspicion in read.suspicions(all_labelled=False):
            warnings.warn(suspicion, stacklevel=2)
        # The way of a fit up to the answer; its labels are judged instead of labelling all rows.
        pipeline = Pipeline(engine, settings)
        prepared = pipeline.prepare(source, labels)
        with explained(source):
            problem = pipeline.problem(pipeline.graphs(prepared), labels)
            doubts = check_labels(problem, pipeline.learn(problem).held_out)
        listed = doubts.listed(labels, self.least)
        columns = {
            name: (values.round(DIGITS) if values.dtype.kind == "f" else values).tolist()
            for name, values in listed.to_dict().items()
        }
        lines = [
            dict(zip(columns, line, strict=True)) for line in zip(*columns.values(), strict=True)
        ]
        names, lines = self.publish(engine, lines)
        # Where labels can be corrected: the last place counts.
        places = [*(self.inputs if self.label_input.in_rows else ()), *map(str, self.labels)]
        facts = {
            "rows": source.n_rows,
            "labelled_rows": listed.n_labels,
            "checked_labels": listed.n_checked,
            "probably_wrong_labels": listed.n_probably_wrong,
            "label_error_rate": round(listed.error_rate, DIGITS),
            "told": read.notes,
            "labels_in": ", ".join(places or self.inputs),
            "next": self.fit_again(),
            "doubtful": lines,
        }
        return names, facts


def check_of_fit(folder: Any) -> dict[str, Any]:
    """Arguments of a :class:`CheckJob` for the rows, labels and options of a finished fit."""
    fit = FinishedFit.in_folder(
        folder,
        instead="the rows with --labels FILE or --label-column NAME",
        changed="name the rows and their labels yourself, with the options of the fit",
    )
    options = fit.options
    return {
        **fit.as_arguments(tuple(ReadOptions.__annotations__)),
        "weight_column": fit.weight_column,
        "parameters": {name: options[name] for name in METHOD if options.get(name) is not None},
    }
