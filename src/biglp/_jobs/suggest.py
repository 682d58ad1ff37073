"""``biglp suggest`` without its printing: from rows in files to a table of rows to label.

With a model (:class:`SuggestJob`) the rows whose labels help most; without one (:class:`FirstJob`)
typical rows to label first.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from biglp._core.errors import BigLPError, ParameterError
from biglp._core.parameters import checked
from biglp._core.settings import Settings
from biglp._engines import Engine
from biglp._files.hub import HUB
from biglp._files.runfolder import RunFolder
from biglp._files.uri import as_place
from biglp._fit.choose_rows import Pool, suggest_rows
from biglp._fit.model import Model
from biglp._fit.pipeline import Pipeline
from biglp._jobs.job import ModelJob, TableJob, from_stdin, typed_options, unused_table
from biglp._jobs.results import MODEL, SUMMARY, FinishedFit
from biglp._labels.labels import LabelsRead
from biglp._labels.reading import OWN_NAMES
from biglp._labels.tools import labelling_interface
from biglp._rows import InputFiles
from biglp._rows.source import explained, explained_model


@dataclass(frozen=True)
class SuggestJob(TableJob, ModelJob):
    """Choose rows to label next with a model file."""

    model: Any = Path(MODEL)
    n: int = 10
    task_format: str | None = None  # a name in TASK_FORMATS; by default the file's ending says it

    verb = "suggest"
    columns: ClassVar[tuple[str, ...]] = ("row", "label", "current_label", "confidence", "doubt")

    @property
    def neighbour(self) -> Any:
        """The model."""
        return as_place(self.model)

    def identity(self) -> dict[str, Any]:
        """Input and model."""
        _ = self.memory
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
            return str(checked("task_format", self.task_format))
        ending = "" if self.table is None else self.table.suffix.lower()
        if ending == ".json":
            raise ParameterError(
                f"{self.table}: say for which tool the file is with --format label-studio or "
                "--format argilla (or call it .csv or .jsonl)."
            )
        return "jsonl" if ending in (".jsonl", ".ndjson") else "csv"

    @property
    def to_fill_in(self) -> str:
        """File of the labels that come next."""
        return str(self.table or unused_table(self.labels))

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
        graph = self.open_graph(engine, run, self.model, model)
        source, given = graph.source.inner, self.label_input
        read: LabelsRead | None = engine.once(
            lambda: given.gather(source.n_rows) if given.anywhere else None
        )
        novel = model.report.get("unlike_labels") or {"rows": ()}
        # Row numbers of the fit mean nothing in other rows.
        first = novel["rows"] if model.report.get("rows") == source.n_rows else ()
        with explained(source), explained_model(self.model):
            pool = Pool(graph, model.answer, None if read is None else read.labels, first=first)
            chosen = suggest_rows(pool, self.n, seed=0)
        classes = model.classes.tolist()
        lines = [
            {
                "row": int(row),
                "label": "",  # to be filled in
                "current_label": classes[code],
                "confidence": round(float(confidence), 4),
                "doubt": round(float(uncertainty), 4),
            }
            for row, code, confidence, uncertainty in zip(
                chosen.rows, chosen.codes, chosen.confidence, chosen.doubts, strict=True
            )
        ]
        names, suggestions = self.publish(engine, lines)
        facts = {
            "rows": source.n_rows,
            "labelled_rows": source.n_rows - chosen.n_unlabelled,
            "told": [] if read is None else read.notes,
            "suggestions": suggestions,
            "to_fill_in": self.to_fill_in,
            "next": self.fit_again(self.to_fill_in) if lines else [],
            "interface": self.interface(classes),
        }
        return names, facts


@dataclass(frozen=True)
class FirstJob(SuggestJob):
    """Choose rows to label first; there is no model yet."""

    columns = ("row", "label")

    @property
    def neighbour(self) -> Any:
        """The working folder: rows may be where nothing can be written."""
        return Path("biglp")

    def settings(self) -> Settings:
        """Check the parameters, as the estimator does."""
        return Settings.without_labels(self.parameters)

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
        source = self.open_source(engine, run)
        rows = Pipeline(engine, settings).typical_rows(source, self.n)
        lines = [{"row": int(row), "label": ""} for row in rows]
        names, suggestions = self.publish(engine, lines)
        facts = {
            "rows": source.n_rows,
            "labelled_rows": 0,
            "first": True,
            "suggestions": suggestions,
            "to_fill_in": self.to_fill_in,
            "next": self._next_commands(),
            "interface": self.interface(()),
        }
        return names, facts

    def _next_commands(self) -> list[str]:
        """Commands that follow when the labels are filled in."""
        table, reading = self.to_fill_in, dict(self.reading)
        if self.label_column is not None and self.metadata is None:
            # What was no feature here is none there.
            reading["drop"] = (*reading.get("drop", ()), self.label_column)
        reading |= {"metadata": self.metadata, "id_column": self.id_column}
        gone = from_stdin(self.inputs)
        fit = ["biglp", "fit", *(["-"] if gone else self.inputs), "--labels", table]
        fit += [*typed_options(reading), "-o", "out/"]
        return [shlex.join(fit), *([] if gone else ["biglp suggest out/"])]


def is_finished_fit(inputs: Sequence[str]) -> bool:
    """Whether what was named is the folder of a fit and not rows, such as a folder of tables."""
    if len(inputs) != 1 or inputs[0].startswith(HUB):
        return False
    if not (folder := as_place(inputs[0])).is_dir():
        return False
    if (folder / SUMMARY).exists():
        return True
    try:
        InputFiles(inputs[0])
    except BigLPError:
        return True  # neither: what is said of a folder without a fit says more
    return False


def suggest_of_fit(folder: Any) -> dict[str, Any]:
    """Arguments of a :class:`SuggestJob` for the rows and labels of a finished ``biglp fit``."""
    fit = FinishedFit.in_folder(
        folder,
        instead="the rows with --model FILE",
        changed="fit again, or name the rows and --model yourself",
    )
    # Which rows have a label is all that counts here, not their weights.
    return {**fit.as_arguments(), "model": folder / MODEL}
