"""From a model and rows in files to a table of rows to label: ``biglp suggest``, unprinted."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from biglp._core.device import Device
from biglp._core.errors import BigLPError, ParameterError
from biglp._core.memory import parse_memory
from biglp._core.parameters import checked
from biglp._core.settings import Settings
from biglp._engines import Engine
from biglp._files.runfolder import RunFolder
from biglp._files.uri import StorePath, as_place, work_folder
from biglp._fit.choose_rows import Pool, Suggestions, suggest_rows
from biglp._fit.model import Model
from biglp._fit.pipeline import Pipeline
from biglp._jobs.job import from_stdin, typed_names, typed_options
from biglp._jobs.report import EarlierFit
from biglp._jobs.results import MODEL, RUN_FOLDER, SUMMARY
from biglp._jobs.table_job import TableJob
from biglp._labels.codes import Marks
from biglp._labels.reading import OWN_NAMES, LabelsRead
from biglp._labels.tools import labelling_interface
from biglp._rows import InputFiles, Source
from biglp._rows.options import LAYOUT
from biglp._rows.source import explained, explained_model


@dataclass(frozen=True)
class SuggestJob(TableJob):
    """Choose rows to label next with a model file.

    Parameters
    ----------
    model : path or URI
        A model file.
    n : int
        How many rows.
    labels, label_column, unlabelled
        Where the labels are that are known, as for ``fit``; none are needed.
    task_format : str, optional
        Format of the file: a name in ``TASK_FORMATS``; by default its ending says it.
    device, memory, gpu_memory, precision : str
        Where the arithmetic runs, the budgets of the whole process and of a card, and the digits.
    """

    model: Any = Path(MODEL)
    n: int = 10
    labels: tuple[str, ...] = ()
    label_column: str | None = None
    unlabelled: Marks = None
    task_format: str | None = None
    device: str = "cpu"
    memory: str | int = "auto"
    gpu_memory: str | int = "auto"
    precision: str = "float32"

    verb = "suggest"
    columns: ClassVar[tuple[str, ...]] = ("row", "label", "current_label", "confidence", "doubt")

    @property
    def beside(self) -> Any:
        """The model."""
        return as_place(self.model)

    @property
    def memory_given(self) -> str | int:
        """Memory budget that was given."""
        return self.memory

    def identity(self) -> dict[str, Any]:
        """Input and model."""
        parse_memory(self.memory)
        self.refuse_to_replace()
        _ = self.table_format
        own = [name for name in self.show if name in OWN_NAMES]
        if own:
            raise ParameterError(
                f"show={own[0]!r} is what a column of the suggestions is called; give the column "
                "another name, or leave it out."
            )
        self.check()
        return {"command": "suggest", "input": self.rows.facts, "n": self.n}

    @property
    def table_format(self) -> str:
        """Format of the file: as asked, or by its ending."""
        if self.task_format is not None:
            if self.table is None:
                raise ParameterError(
                    f"--format {self.task_format} is that of a file; say which with -o FILE."
                )
            asked: str = checked("task_format", self.task_format)
            return asked
        ending = "" if self.table is None else self.table.suffix.lower()
        if ending == ".json":
            raise ParameterError(
                f"{self.table}: say for which tool the file is with --format label-studio or "
                "--format argilla (or call it .csv or .jsonl)."
            )
        return "jsonl" if ending in (".jsonl", ".ndjson") else "csv"

    def interface(self, classes: Sequence[Any]) -> str | None:
        """Label Studio's configuration for the tasks, where they are for it."""
        if self.table is None or self.table_format != "label-studio":
            return None
        return labelling_interface(self.show[0] if self.show else "row", classes)

    def check(self) -> None:
        """Refuse what cannot work before any row is read."""
        Model.load(self.model)

    def work(self, engine: Engine, run: RunFolder) -> tuple[list[str], dict[str, Any]]:
        """Open rows and labels, choose, and write the table."""
        model = Model.load(self.model)
        no_features = engine.once(lambda: self.label_input.not_features)
        encoding = model.encoding_for_new_rows()
        source = self.open_source(engine, run, **no_features, encoding=encoding)
        gathered = engine.once(lambda: self._labels(source))
        labels = None if gathered is None else gathered.labels
        memory = engine.once(lambda: parse_memory(self.memory))
        place = Device.of(self.device, self.gpu_memory, self.precision)
        with explained_model(self.model):
            graph = model.graph(engine, source, memory, place)
        unlike = model.report.get("unlike_labels") or {"rows": ()}
        # Row numbers of the fit mean nothing in other rows.
        first = unlike["rows"] if model.report.get("rows") == source.n_rows else ()
        with explained(source), explained_model(self.model):
            found = suggest_rows(Pool(graph, model.answer, labels, first=first), self.n, seed=0)
        suggestions = engine.once(lambda: self.with_columns(as_table(found, model.classes)))
        labelled = source.n_rows - found.n_unlabelled
        facts = {
            "rows": source.n_rows,
            "labelled_rows": labelled,
            "told": [] if gathered is None else gathered.notes,
            "suggestions": suggestions,
            "interface": self.interface(model.classes.tolist()),
        }
        return self.publish(engine, suggestions), facts

    def _labels(self, source: Source) -> LabelsRead | None:
        found = self.label_input
        return found.gather(source.n_rows) if found.anywhere else None


def as_table(found: Suggestions, classes: np.ndarray) -> list[dict[str, Any]]:
    """Suggestions as rows of a table; "label" is empty, to be filled in."""
    names = classes.tolist()
    return [
        {
            "row": int(row),
            "label": "",
            "current_label": names[code],
            "confidence": round(float(confidence), 4),
            "doubt": round(float(doubt), 4),
        }
        for row, code, confidence, doubt in zip(
            found.rows, found.codes, found.confidence, found.doubts, strict=True
        )
    ]


def is_earlier_run(inputs: Sequence[str]) -> bool:
    """Whether what was named is the folder of a fit and not rows, such as a folder of tables."""
    if len(inputs) != 1 or not (folder := as_place(inputs[0])).is_dir():
        return False
    if (folder / SUMMARY).exists():
        return True
    try:
        InputFiles(inputs[0])
    except BigLPError:
        return True  # neither: what is said of a folder without a fit says more
    return False


def earlier_run(folder: Any) -> dict[str, Any]:
    """Arguments of a :class:`SuggestJob` for the rows and labels of a finished ``biglp fit``.

    Raises
    ------
    ParameterError
        When the folder holds no finished fit, or its rows have changed since.
    """
    fit = EarlierFit.in_folder(
        folder,
        instead="the rows with --model FILE",
        changed="fit again, or name the rows and --model yourself",
    )
    return {
        "inputs": fit.inputs,
        "model": folder / MODEL,
        "labels": fit.labels,  # which rows have one is all that counts here, not their weights
        "label_column": fit.label_column,
        "id_column": fit.id_column,
        "metadata": fit.metadata,
        "unlabelled": fit.unlabelled,
        "reading": {name: fit.options[name] for name in ("drop", *LAYOUT) if name in fit.options},
    }


# --------------------------------------------------------------------------------------------------
# From rows in files, without labels or model, to a table of rows to label first.


@dataclass(frozen=True)
class FirstJob(SuggestJob):
    """Choose rows to label first; there is no model yet.

    Parameters
    ----------
    parameters : dict
        Parameters of :class:`biglp.LowRankLabelPropagation` that the graph follows from.
    """

    parameters: dict[str, Any] = field(default_factory=dict)

    columns = ("row", "label")

    @property
    def scratch(self) -> Path:
        """Where text and Parquet are converted: beside the table, or in the working folder."""
        name = "biglp" if self.table is None else self.table.name
        if isinstance(self.table, StorePath):
            return work_folder(self.table, self.cache)
        return (self.table or Path(name)).with_name(f".{name}.suggest{RUN_FOLDER}")

    def settings(self) -> Settings:
        """Check the parameters, as the estimator does."""
        given = {
            "device": self.device,
            "memory": self.memory,
            "gpu_memory": self.gpu_memory,
            "precision": self.precision,
        }
        return Settings.without_labels({**self.parameters, **given})

    def check(self) -> None:
        """Refuse parameters that cannot be used, and labels: with these there is a model to fit."""
        self.settings()
        if self.labels:
            raise ParameterError(
                f"labels are given ({', '.join(self.labels)}), but no model: run biglp fit with "
                "them first, then biglp suggest on its folder. Without --labels, rows to label "
                "first are suggested."
            )

    def work(self, engine: Engine, run: RunFolder) -> tuple[list[str], dict[str, Any]]:
        """Open the rows, choose, and write the table."""
        settings = engine.once(self.settings)
        source = self.open_source(engine, run, **engine.once(lambda: self.label_input.not_features))
        rows = Pipeline(engine, settings).typical_rows(source, self.n)
        lines = [{"row": int(row), "label": ""} for row in rows]
        suggestions = engine.once(lambda: self.with_columns(lines))
        facts = {
            "rows": source.n_rows,
            "labelled_rows": 0,
            "suggestions": suggestions,
            "next": self.what_next(),
            "interface": self.interface(()),
        }
        return self.publish(engine, suggestions), facts

    def what_next(self) -> list[str]:
        """Commands that follow when the labels are filled in."""
        table, reading = str(self.table or "next.csv"), dict(self.reading)
        if self.label_column is not None and self.metadata is None:
            # What was no feature here is none there.
            reading["drop"] = (*reading.get("drop", ()), self.label_column)
        reading |= {"metadata": self.metadata, "id_column": self.id_column}
        fit = [
            "biglp",
            "fit",
            *typed_names(self.inputs),
            "--labels",
            table,
            *typed_options(reading),
        ]
        fit += ["-o", "out/"]
        return [shlex.join(fit), *([] if from_stdin(self.inputs) else ["biglp suggest out/"])]
