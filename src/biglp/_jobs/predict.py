"""``biglp predict`` without its printing: new rows labelled with a model file."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from biglp._core.device import Device
from biglp._core.errors import ParameterError
from biglp._core.memory import parse_memory
from biglp._engines import Engine
from biglp._files.runfolder import RunFolder
from biglp._fit.model import Model
from biglp._fit.novelty import drift_of, drift_warnings
from biglp._jobs.fit import per_class
from biglp._jobs.job import Job
from biglp._jobs.results import MODEL
from biglp._output.sink import check_top
from biglp._rows import InputFiles
from biglp._rows.source import explained, explained_model


@dataclass(frozen=True)
class PredictJob(Job):
    """Label new rows with a model file.

    Parameters
    ----------
    model : path or URI
        A model file.
    device : str
        Where the arithmetic runs.
    memory, gpu_memory : str
        Budgets of the whole process, and of a card.
    precision : str
        Digits of products on a card.
    """

    model: Any = Path(MODEL)
    device: str = "cpu"
    memory: str | int = "auto"
    gpu_memory: str | int = "auto"
    precision: str = "float32"

    @property
    def memory_given(self) -> str | int:
        """Memory budget that was given."""
        return self.memory

    def identity(self) -> dict[str, Any]:
        """Input, model and options."""
        parse_memory(self.memory)
        found = self.common_identity("predict", {"device": self.device})
        model = Model.load(self.model)  # says what is wrong with it before anything is made
        if model.answer.kind == "regression":
            raise ParameterError(
                f"{self.model} predicts numbers, and biglp predict writes classes; use "
                "LowRankLabelPropagationRegressor.load in Python."
            )
        return {**found, "model": InputFiles(str(self.model)).facts}

    def work(self, engine: Engine, run: RunFolder) -> tuple[list[str], dict[str, Any]]:
        """Open the rows as the model's were, score them, and stage the answers."""
        model = Model.load(self.model)
        check_top(self.top, len(model.classes))  # before rows are converted
        no_features = engine.once(lambda: self.label_input.not_features)
        encoding = model.encoding_for_new_rows()
        source = self.open_source(engine, run, **no_features, encoding=encoding)
        memory = engine.once(lambda: parse_memory(self.memory))
        place = Device.of(self.device, self.gpu_memory, self.precision)
        with explained_model(self.model):
            graph = model.graph(engine, source, memory, place)
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
            "told": self.told_of_ids(),
            "drift": drift,
        }
        return sink.names, facts
