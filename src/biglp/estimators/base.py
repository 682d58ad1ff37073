"""What the estimators have in common: rows, an engine, scoring, model files, the report."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from biglp._core.device import Device
from biglp._core.errors import ModelFileError, ParameterError, warn_caller
from biglp._core.memory import parse_memory
from biglp._core.progress import Progress, shown_progress
from biglp._engines import Engine, make_engine
from biglp._files.local import atomic_write
from biglp._files.uri import as_place
from biglp._fit.model import Model
from biglp._fit.novelty import FEWEST_ROWS, drift_of, drift_warnings
from biglp._fit.report import Report
from biglp._graph import FACTORS
from biglp._graph.graph import Graph
from biglp._labels.reading import LabelInput
from biglp._output import Sink
from biglp._report.page import Content, Step, report_html, short_html
from biglp._rows import Source, as_source
from biglp._rows.source import explained

READING = ("columns", "drop", "categorical", "missing", "text", "text_model", "strict")
"""Parameters that say how the columns of a table become features."""
EVERY = (
    Step("Keep the model, and label new rows.", 'model.save("model.biglp")\nmodel.predict(X)'),
)
NO_ROWS = (
    "There is no map, and there are no rows to look at: the model was loaded or unpickled, and "
    "holds no training rows."
)


class Estimator(BaseEstimator):
    """Base of the estimators; ``_model`` is what was fitted."""

    _measured: ClassVar[bool]  # whether it predicts numbers
    _model: Model
    report_: Report

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a file of arrays and JSON, without pickle.

        Parameters
        ----------
        path : path or URI
            A local name, or one such as ``s3://bucket/model.biglp``.

        Examples
        --------
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> from sklearn.datasets import load_iris
        >>> from biglp import LowRankLabelPropagation
        >>> X, y = load_iris(return_X_y=True)
        >>> y[1::2] = -1
        >>> model = LowRankLabelPropagation().fit(X, y)
        >>> with TemporaryDirectory() as folder:
        ...     model.save(Path(folder, "model.biglp"))
        ...     loaded = LowRankLabelPropagation.load(Path(folder, "model.biglp"))
        >>> bool((loaded.predict(X) == model.predict(X)).all())
        True
        """
        check_is_fitted(self)
        self._model.save(path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a model written by :meth:`save`; it predicts but holds no training rows."""
        model = Model.load(path)
        measured = model.answer.kind == "regression"
        if measured != cls._measured:
            what, other = ("numbers", "Regressor") if measured else ("classes", "")
            raise ModelFileError(
                f"{path} is a model that predicts {what}, which {cls.__name__} cannot load; use "
                f"LowRankLabelPropagation{other}.load."
            )
        estimator = cls()
        estimator._model = model
        estimator.report_ = model.report
        estimator._remember(model.input_names, model.n_columns)
        estimator._loaded()
        return estimator

    def _loaded(self) -> None:
        """Set the attributes that follow from the model."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        # Rows and columns of a graph are cut together, as scikit-learn does with kernels.
        named = isinstance(self.factor, str) and self.factor in FACTORS
        pairwise = named and FACTORS[self.factor].pairwise
        tags.input_tags.pairwise = tags.input_tags.positive_only = pairwise
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_model")

    def _score_rows(self, source: Source, sink: Sink) -> None:
        """Write the answers for new rows to a sink."""
        device = Device.of(self.device, self.gpu_memory, self.precision)
        with self._working() as engine, explained(source), device.precisely():
            graph = self._graph_of(engine, source)
            graph.answer(self._model.answer, sink)
            # Not of arrays, whose rows are whatever the caller made of them.
            table = source.encoding is not None and source.encoding.columns is not None
            drift: dict[str, Any] = {}
            if (table or source.stamps) and source.n_rows >= FEWEST_ROWS:
                drift = engine.once(lambda: drift_of(graph, source, self._model.report))
        for warning in drift_warnings(drift):
            warn_caller(str(warning), type(warning))

    def _graph_of(self, engine: Engine, source: Source) -> Graph:
        """New rows, tied to the training rows."""
        device = Device.of(self.device, self.gpu_memory, self.precision)
        return self._model.graph(engine, source, parse_memory(self.memory), device)

    def report_html(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return a report for people, one HTML page that needs no network and no script.

        It says in words what was done and chosen, and shows labels given and found, how sure the
        model is, a map, and rows of each class to look at; docs/report.md says how far each part
        can be trusted. A sample of the training rows is read, no sweep.

        Parameters
        ----------
        path : path or URI, optional
            File to write it to.

        Returns
        -------
        html : str

        Examples
        --------
        >>> from sklearn.datasets import load_digits
        >>> from biglp import LowRankLabelPropagation
        >>> X, truth = load_digits(return_X_y=True)
        >>> y = truth.copy()
        >>> y[50:] = -1
        >>> html = LowRankLabelPropagation().fit(X, y).report_html()
        >>> "of the unlabelled rows are right" in html
        True
        """
        check_is_fitted(self)
        html = report_html(self._content(look=True))
        if path is not None:
            with atomic_write(as_place(path)) as file:
                file.write(html.encode())
        return html

    def _content(self, *, look: bool = False) -> Content:
        """What the report says; with ``look`` also what its rows show."""
        raise NotImplementedError

    def _html_with_report(self, html: str) -> str:
        """Add the short form to scikit-learn's own picture of a fitted estimator."""
        return html + short_html(self._content()) if hasattr(self, "report_") else html

    def _repr_html_inner(self) -> str:
        return self._html_with_report(super()._repr_html_inner())

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle = super()._repr_mimebundle_(**kwargs)
        if "text/html" in bundle:
            bundle["text/html"] = self._html_with_report(bundle["text/html"])
        return dict(bundle)

    @contextmanager
    def _working(self) -> Iterator[Engine]:
        """Yield the engine, closed afterwards unless the caller made it."""
        engine = make_engine(self.engine)
        progress = shown_progress() if self.verbose else Progress()
        if self.verbose:
            engine.progress = progress
        try:
            # Rows may hold any numbers, and what comes of them is checked where it matters.
            with progress, np.errstate(all="ignore"):
                yield engine
        finally:
            if engine is not self.engine:
                engine.close()

    def _source(self, X: Any, *, reset: bool, **options: Any) -> Source:
        """Open the rows of a fit (``reset``) as the parameters say, new ones as those were."""
        if not reset:  # new rows are read as the training rows were
            table = isinstance(X, (str, os.PathLike, list)) or hasattr(X, "columns")
            if not isinstance(X, Source) and (self._model.encoding is not None or table):
                options["encoding"] = self._model.encoding_for_new_rows()
                options["strict"] = self.strict
        with np.errstate(all="ignore"):  # before scikit-learn looks: messages about shapes say more
            source = as_source(X, **options)
        encoding = source.encoding if reset else self._model.encoding
        by_name = encoding is not None and encoding.columns is not None
        # scikit-learn checks what it knows; a stream is used up, and a query would run again.
        known = hasattr(X, "__array__") or isinstance(X, (list, tuple)) or sparse.issparse(X)
        # Columns of a table are known by their names: their order and further ones do not matter.
        if known and not source.stamps and (reset or not by_name):
            validate_data(self, X, skip_check_array=True, reset=reset)
        elif reset:
            if hasattr(self, "feature_names_in_"):
                del self.feature_names_in_
            n_features = encoding.n_inputs if encoding is not None else source.n_features
            self._remember(source.input_names, n_features)
        return source

    def _remember(self, names: tuple[str, ...] | None, n_features: int) -> None:
        """Set what scikit-learn wants to know of the columns."""
        self.n_features_in_ = n_features if names is None else len(names)
        if names is not None:
            self.feature_names_in_ = np.asarray(names, dtype=object)


def label_files(X: Any, y: Any, estimator: Any, reading: dict[str, Any]) -> LabelInput | None:
    """Where labels are, when y names files or a column holds them; None when y holds them.

    The columns are those of the table that X names, or of the estimator's ``metadata``.
    """
    label_column, id_column = estimator.label_column, estimator.id_column
    metadata = estimator.metadata
    files = _paths(y)
    if files is None and y is not None:
        if label_column is not None:
            raise ParameterError(
                f"label_column={label_column!r}: y holds the labels, and a column would, too; give "
                "y as None or as files of labels, which count more than the column."
            )
        files = ()
    rows = X if _paths(X) else None
    if isinstance(y, str) and rows is None and y in getattr(X, "columns", ()):
        raise ParameterError(
            f"y={y!r} would be a file of labels, and is a column of X; give the labels themselves, "
            f"y=X[{y!r}], and rows without that column."
        )
    if metadata is not None and label_column is None and id_column is None:
        raise ParameterError(
            f"metadata={metadata!r}: nothing says which of its columns is wanted; name it with "
            "label_column= or id_column=."
        )
    for option, name in (("label_column", label_column), ("id_column", id_column)):
        if name is not None and rows is None and metadata is None:
            raise ParameterError(
                f"{option}={name!r} is a column of a table in files, but X is in memory; give the "
                "labels as y, and rows without that column, or name the table with metadata=."
            )
    if not files and label_column is None and id_column is None:
        return None
    return LabelInput(
        rows,
        files or (),
        label_column,
        id_column=id_column,
        reading=reading,
        metadata=metadata,
        memory=parse_memory(estimator.memory),
    )


def _paths(value: Any) -> tuple[Any, ...] | None:
    """The paths that a value names; None for anything else."""
    if isinstance(value, (str, os.PathLike)):
        return (value,)
    if not isinstance(value, (list, tuple)) or not value:
        return None
    if all(isinstance(item, os.PathLike) for item in value):
        return tuple(value)
    # Texts may be labels: they are paths when there is a file for each.
    texts = all(isinstance(item, str) for item in value)
    return tuple(value) if texts and all(map(os.path.isfile, value)) else None
