"""``biglp predict`` without its printing: new rows labelled with a model file."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from biglp._core.errors import ParameterError
from biglp._core.parameters import DEFAULTS
from biglp._engines import Engine
from biglp._files.runfolder import RunFolder
from biglp._fit.model import Model
from biglp._fit.novelty import drift_of, drift_warnings
from biglp._jobs.job import ModelJob, per_class
from biglp._jobs.results import MODEL
from biglp._output.sink import check_top
from biglp._rows import InputFiles
from biglp._rows.source import explained, explained_model


@dataclass(frozen=True)
class PredictJob(ModelJob):
    """Label new rows with a model file."""

    model: Any = Path(MODEL)

    @cached_property
    def known_by(self) -> str | None:
        """Column of the rows' IDs: that of the model, where the rows have it."""
        column = self.id_column or Model.load(self.model).id_column
        if self.id_column is None and not (
            self.rows.is_table and column in self.rows.peek(self.layout).columns
        ):
            return None
        return column

    def identity(self) -> dict[str, Any]:
        """Input, model and options."""
        _ = self.memory  # refused before anything is made, as is the model
        device = self.parameters.get("device", DEFAULTS["device"])
        identity = self.identity_with("predict", {"device": device})
        model = Model.load(self.model)
        if model.answer.kind == "regression":
            raise ParameterError(
                f"{self.model} predicts numbers, and biglp predict writes classes; use "
                "LowRankLabelPropagationRegressor.load in Python."
            )
        return {**identity, "model": InputFiles(str(self.model)).facts}

    def work(self, engine: Engine, run: RunFolder) -> tuple[list[str], dict[str, Any]]:
        """Open the rows as the model's were, score them, and stage the answers."""
        model = Model.load(self.model)
        check_top(self.top, len(model.classes))  # before rows are converted
        graph = self.open_graph(engine, run, self.model, model)
        source = graph.source.inner
        run.confirm({"option --memory: rows a block": graph.blocks[0].n_rows})
        sink = self.open_sink(engine, run, model.classes, source.n_rows)
        with explained(source), explained_model(self.model):
            answered = graph.answer(model.answer, sink, checkpoint=run)
            drift = engine.once(lambda: drift_of(graph, source, model.report))
        engine.once(sink.commit)
        where = "" if self.destination.is_file else " (drift in summary.json)"
        for warning in drift_warnings(drift, where):
            warnings.warn(warning, stacklevel=2)
        facts = {
            "rows": source.n_rows,
            "features": source.n_features,
            "found": per_class(model.classes, answered.counts),
            "unreached_rows": answered.n_unreached,
            "told": [*source.notes],
            "drift": drift,
        }
        return sink.names, facts
