"""From rows in files, without labels or model, to a table of rows to label first."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from biglp._core.errors import ParameterError
from biglp._core.settings import Settings
from biglp._engines import Engine
from biglp._files.runfolder import RunFolder
from biglp._files.uri import StorePath, work_folder
from biglp._fit.pipeline import Pipeline
from biglp._jobs.inputs import from_stdin, typed_names, typed_options
from biglp._jobs.results import RUN_FOLDER
from biglp._jobs.suggest import SuggestJob


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
