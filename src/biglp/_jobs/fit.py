"""Runs from files to files: ``biglp fit`` and ``biglp predict`` without their printing.

>>> from pathlib import Path
>>> from biglp._jobs.fit import FitJob
>>> job = FitJob(("sim:10Kx8",), Path("out"))        # doctest: +SKIP
>>> summary = job.run()                              # doctest: +SKIP
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from biglp._core.blocks import rows_per_block
from biglp._core.checkpoint import RunFolder
from biglp._core.errors import ParameterError
from biglp._core.memory import parse_memory
from biglp._engines import Engine, ThreadEngine
from biglp._fit.memory import (
    Shape,
    decoding_bytes,
    plan_memory,
    scoring_budget,
    table_bytes,
    within,
)
from biglp._fit.model import Model
from biglp._fit.pipeline import fit_model, warnings_about
from biglp._fit.prepare import explain_bad_rows, values_per_row
from biglp._fit.settings import Settings, one_of
from biglp._jobs.base import Job, n_workers
from biglp._jobs.inputs import LabelInput, file_facts, label_input
from biglp._jobs.results import MODEL, STAGE
from biglp._labels.labels import Labels
from biglp._lowrank.base import NonFiniteRowsError
from biglp._lowrank.landmarks import STRATEGIES
from biglp._sources import Source, working_dtype
from biglp._sources.peek import peek
from biglp._sources.tables.encoding import Encoding

DEFAULTS: dict[str, Any] = {
    "factor": "auto",
    "n_landmarks": "auto",
    "landmarks": "kmeans",
    "bandwidth": "auto",
    "alpha": "auto",
    "class_balance": "auto",
    "scaling": "auto",
    "clamp": "soft",
    "filter": "auto",
    "solver": "closed_form",
    "max_iter": 10_000,
    "tol": 1e-7,
    "device": "cpu",
    "memory": "auto",
    "factor_params": None,
    "random_state": None,
}
"""The estimator's own defaults, which cannot be asked for without loading scikit-learn."""


@dataclass(frozen=True)
class FitJob(Job):
    """Fit a model and label all rows.

    Parameters
    ----------
    labels : str, optional
        File of the labels.
    label_column : str, optional
        Column of the labels, in the table of the rows or in the file of the labels.
    weight_column : str, optional
        Column of the labels' weights, in the same table.
    unlabelled : int or str
        What marks a row without a label, beside empty, null and NaN.
    parameters : dict
        Parameters of :class:`biglp.LowRankLabelPropagation`, except ``engine`` and ``verbose``.
    """

    labels: str | None = None
    label_column: str | None = None
    weight_column: str | None = None
    unlabelled: int | str = -1
    parameters: dict[str, Any] = field(default_factory=dict)

    @property
    def label_input(self) -> LabelInput:
        """Where the labels are."""
        return label_input(
            self.rows, self.labels, self.label_column, self.unlabelled, self.weight_column
        )

    @property
    def feature_options(self) -> dict[str, Any]:
        """Options of the rows that follow from where the labels are."""
        if self.labels is not None or self.label_column is None:
            return {}
        return not_features(self.label_column, self.weight_column, self.reading)

    def settings(self) -> Settings:
        """Check the parameters, as the estimator does."""
        one_of("landmarks", self.parameters.get("landmarks", "kmeans"), STRATEGIES)
        return settings_from(self.parameters)

    def identity(self) -> dict[str, Any]:
        """Input, labels and every option that the answers depend on."""
        if self.destination.is_file:
            raise ParameterError(f"{self.output} must name a folder: fit writes several files.")
        given = {name: value for name, value in self.parameters.items() if name != "memory"}
        self.settings()  # parameters before files: they are the quicker to refuse
        found = self.common_identity("fit", {**DEFAULTS, **given, "memory": None})
        return {**found, "labels": self.label_input.identity()}

    def work(self, engine: Engine, run: RunFolder) -> tuple[list[str], dict[str, Any]]:
        """Open rows and labels, plan the memory, fit, and stage labels and model."""
        settings = engine.once(self.settings)  # one budget for all: it decides the cut into blocks
        engine.once(lambda: self._refuse_early(settings))
        source = self.open_source(engine, run, **self.feature_options)
        labels = engine.once(lambda: self.label_input.read(source.n_rows))
        plan = plan_memory(
            settings.memory,
            shape_of(source, labels, engine.n_machines),
            settings,
            n_workers(engine),
        )
        run.confirm({"option --memory: rows a block": plan.rows_each})
        if isinstance(engine, ThreadEngine):
            engine.limit_threads(plan.workers)
        sink = self.open_sink(engine, run, labels.classes, source.n_rows)
        result = fit_model(engine, source, labels, within(settings, plan), sink, run)
        names = self.commit(engine, sink)
        model = result.model
        engine.once(lambda: model.save(run.folder / STAGE / MODEL))
        for warning in warnings_about(result, source.n_rows):
            warnings.warn(warning, stacklevel=2)
        facts = {
            "rows": source.n_rows,
            "features": source.n_features,
            "labelled_rows": len(labels.rows),
            "given": per_class(labels.classes, dict(enumerate(labels.rows_each.tolist()))),
            "found": per_class(labels.classes, result.counts),
            "settings": {**model.report, "memory": settings.memory, "threads": plan.workers},
            "memory_plan": asdict(plan),
        }
        return [*names, MODEL], facts

    def _refuse_early(self, settings: Settings) -> None:
        """Refuse a table that cannot fit the memory before it is converted."""
        if not self.rows.is_table:
            return
        layout = {name: value for name, value in self.reading.items() if name == "delimiter"}
        facts = peek(self.rows.paths, **layout)
        chosen = self.reading.get("columns") or facts.columns
        plan_memory(settings.memory, table_shape(facts.n_rows, len(chosen)), settings, 1)


@dataclass(frozen=True)
class PredictJob(Job):
    """Label new rows with a model file.

    Parameters
    ----------
    model : Path
        A model file.
    device : str
        Where the arithmetic runs.
    memory : str
        Budget of the whole process.
    """

    model: Path = Path(MODEL)
    device: str = "cpu"
    memory: str | int = "auto"

    def identity(self) -> dict[str, Any]:
        """Input, model and options."""
        parse_memory(self.memory)
        found = self.common_identity("predict", {"device": self.device})
        model = Model.load(self.model)  # says what is wrong with it before anything is made
        if model.decision.kind == "regression":
            raise ParameterError(
                f"{self.model} predicts numbers, and biglp predict writes classes; use "
                "LowRankLabelPropagationRegressor.load in Python."
            )
        return {**found, "model": file_facts(str(self.model))}

    def work(self, engine: Engine, run: RunFolder) -> tuple[list[str], dict[str, Any]]:
        """Open the rows as the model's were, score them, and stage the answers."""
        model = Model.load(self.model)
        source = self.open_source(engine, run, encoding=new_encoding(model))
        a_row = model.factor.bytes_per_row(model.n_features, model.dtype.itemsize, self.device)
        a_row += 3 * len(model.classes) * model.dtype.itemsize
        memory = engine.once(lambda: parse_memory(self.memory))
        budget = scoring_budget(memory, a_row, source, n_workers(engine))
        rows_each = rows_per_block(a_row, budget, device=self.device)
        run.confirm({"option --memory: rows a block": rows_each})
        sink = self.open_sink(engine, run, model.classes, source.n_rows)
        try:
            answered = model.score(engine, source, sink, rows_each, self.device, run)
        except NonFiniteRowsError:
            explain_bad_rows(source)
        names = self.commit(engine, sink)
        facts = {
            "rows": source.n_rows,
            "features": source.n_features,
            "found": per_class(model.classes, answered.counts),
            "unreached_rows": answered.n_unreached,
        }
        return names, facts


def not_features(
    label_column: str, weight_column: str | None, reading: Mapping[str, Any]
) -> dict[str, Any]:
    """Options of the rows when labels, and perhaps weights, are columns of the same table."""
    found: dict[str, Any] = {"label_column": label_column}
    if weight_column is not None:
        found["drop"] = (*reading.get("drop", ()), weight_column)
    return found


def new_encoding(model: Model) -> Encoding:
    """How new rows become features: as the training rows did, in the model's precision.

    A column that held whole numbers may hold fractions in a new file; they must not be cut off.
    """
    known = model.encoding or Encoding(None, model.n_features, model.dtype.str)
    return replace(known, dtype=model.dtype.str)


def shape_of(source: Source, labels: Labels, n_machines: int = 1) -> Shape:
    """Size of a problem, for planning the memory of one of ``n_machines``."""
    values = float(source.n_features)
    if source.is_sparse:
        values = values_per_row(source.read(0, min(source.n_rows, 1000)))
    return Shape(
        n_rows=source.n_rows,
        n_features=source.n_features,
        n_classes=labels.n_classes,
        n_labelled=len(labels.rows),
        values=values,
        dtype=working_dtype(source.dtype),
        decoding=decoding_bytes(source),
        part_bytes=int(getattr(source, "part_bytes", 0)),
        n_machines=n_machines,
    )


def table_shape(n_rows: int, n_columns: int) -> Shape:
    """Least size of a table that has not been looked into."""
    decoding = table_bytes(n_rows, n_columns)
    return Shape(n_rows, n_columns, 2, 2, float(n_columns), np.dtype(np.float32), decoding)


def per_class(classes: np.ndarray, counts: Mapping[int, int]) -> dict[str, int]:
    """Rows of each class by its name."""
    return {str(name): counts.get(code, 0) for code, name in enumerate(classes.tolist())}


def settings_from(parameters: Mapping[str, Any]) -> Settings:
    """Check parameters as the estimator does its own."""
    return Settings.of(_Parameters({**DEFAULTS, **parameters}))


class _Parameters:
    """Parameters in the form that :meth:`Settings.of` asks an estimator for."""

    def __init__(self, values: dict[str, Any]) -> None:
        self._values = values

    def get_params(self, deep: bool = False) -> dict[str, Any]:
        return self._values
