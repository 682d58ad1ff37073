"""From rows and labels in files to a table of doubtful labels: ``biglp check``, unprinted."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from biglp._core.parameters import DEFAULTS, checked
from biglp._engines import Engine
from biglp._files.runfolder import RunFolder
from biglp._fit.check_labels import fit_and_check
from biglp._fit.pipeline import Pipeline
from biglp._jobs.fit import FitJob
from biglp._jobs.job import label_identity, require_labels
from biglp._jobs.report import EarlierFit
from biglp._jobs.table_job import TableJob
from biglp._labels.doubts import DoubtfulLabels
from biglp._rows.options import ReadOptions

DIGITS = 4
"""Digits of probabilities in the table."""


@dataclass(frozen=True)
class CheckJob(TableJob, FitJob):
    """Fit a model to find which of its labels are probably wrong; no row is labelled.

    Parameters
    ----------
    least : float, optional
        List labels that are wrong with at least this probability; by default all that the rest of
        the data contradicts.
    """

    least: float | None = None

    verb = "check"
    columns = (
        "row",
        "label",
        "suggested_label",
        "probability",
        "suggested_probability",
        "wrong",
    )

    @property
    def beside(self) -> Path:
        """The working folder: rows and labels may be where nothing can be written."""
        return Path("labels")

    @property
    def labels_in(self) -> str:
        """Where labels can be corrected: the last place counts."""
        places = [*(self.inputs if self.label_input.in_rows else ()), *map(str, self.labels)]
        return ", ".join(places or self.inputs)

    def identity(self) -> dict[str, Any]:
        """Input, labels and every option that the answers depend on."""
        self.refuse_to_replace()
        if self.least is not None:
            checked("least", self.least)
        self.settings()
        return {
            "command": self.verb,
            "input": self.rows.facts,
            "labels": label_identity(require_labels(self.label_input)),
        }

    def work(self, engine: Engine, run: RunFolder) -> tuple[list[str], dict[str, Any]]:
        """Open rows and labels, fit, look at the labels, and write the table."""
        settings = engine.once(self.settings)
        engine.once(lambda: self._refuse_early(settings, engine))
        source = self.open_source(engine, run, **engine.once(lambda: self.label_input.not_features))
        gathered = engine.once(lambda: self.label_input.gather(source.n_rows))
        labels = gathered.labels
        for suspicion in gathered.suspicions(all_labelled=False):
            warnings.warn(suspicion, stacklevel=2)
        pipeline = Pipeline(engine, settings)
        found = fit_and_check(pipeline, pipeline.prepare(source, labels), labels)
        listed = found.listed(labels, self.least)
        lines = engine.once(lambda: self.with_columns(as_table(listed)))
        facts = {
            "rows": source.n_rows,
            "labelled_rows": listed.n_labels,
            "checked_labels": listed.n_checked,
            "probably_wrong_labels": listed.n_probably_wrong,
            "label_error_rate": round(listed.error_rate, DIGITS),
            "told": gathered.notes,
            "labels_in": self.labels_in,
            "doubtful": lines,
        }
        return self.publish(engine, lines), facts


def as_table(found: DoubtfulLabels) -> list[dict[str, Any]]:
    """Doubtful labels as rows of a table."""
    columns = {
        name: (values.round(DIGITS) if values.dtype.kind == "f" else values).tolist()
        for name, values in found.to_dict().items()
    }
    return [dict(zip(columns, line, strict=True)) for line in zip(*columns.values(), strict=True)]


def earlier_fit(folder: Any) -> dict[str, Any]:
    """Arguments of a :class:`CheckJob` for the rows, labels and options of a finished fit.

    Raises
    ------
    ParameterError
        When the folder holds no finished fit, or its rows have changed since.
    """
    fit = EarlierFit.in_folder(
        folder,
        instead="the rows with --labels FILE or --label-column NAME",
        changed="name the rows and their labels yourself, with the options of the fit",
    )
    options = fit.options
    return {
        "inputs": fit.inputs,
        "labels": fit.labels,  # those of now: they may have been corrected in their file
        "label_column": fit.label_column,
        "weight_column": fit.weight_column,
        "id_column": fit.id_column,
        "metadata": fit.metadata,
        "unlabelled": fit.unlabelled,
        "reading": {name: options[name] for name in ReadOptions.__annotations__ if name in options},
        "parameters": {name: options[name] for name in DEFAULTS if options.get(name) is not None},
    }
