"""What the estimators have in common: opening rows, an engine to work with, model files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, Self

from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from biglp._core.arrays import require_device
from biglp._core.blocks import rows_per_block
from biglp._core.errors import ModelFileError
from biglp._core.memory import parse_memory
from biglp._core.progress import LogProgress
from biglp._engines import Engine, make_engine
from biglp._fit.model import Model
from biglp._fit.prepare import explain_bad_rows
from biglp._lowrank.base import NonFiniteRowsError
from biglp._sources import Source, as_source


class Face(BaseEstimator):
    """Base of the estimators; ``_model`` is what was fitted.

    Attributes
    ----------
    _decides : tuple of str
        Kinds of decisions whose models it can load.
    """

    _decides: ClassVar[tuple[str, ...]]
    _model: Model

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a file of arrays and JSON, without pickle."""
        check_is_fitted(self)
        self._model.save(Path(path))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a model written by :meth:`save`; it predicts but holds no training rows."""
        model = Model.load(Path(path))
        if model.decision.kind not in cls._decides:
            what = "numbers" if model.decision.kind == "regression" else "classes"
            other = "Regressor" if model.decision.kind == "regression" else ""
            raise ModelFileError(
                f"{path} is a model that predicts {what}, which {cls.__name__} cannot load; use "
                f"LowRankLabelPropagation{other}.load."
            )
        estimator = cls()
        estimator._model = model
        estimator.report_ = model.report
        estimator.n_features_in_ = model.n_features
        estimator._loaded()
        return estimator

    def _loaded(self) -> None:
        """Set the attributes that follow from the model."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_model")

    def _score_rows(self, source: Source, sink: Any) -> None:
        """Write the answers for new rows to a sink."""
        model, device = self._model, require_device(self.device)
        row_bytes = model.factor.bytes_per_row(model.n_features, model.dtype.itemsize, device)
        budget = parse_memory(self.memory)
        try:
            rows_each = rows_per_block(row_bytes, budget, device=device)
            with self._working() as engine:
                model.score(engine, source, sink, rows_each, device)
        except NonFiniteRowsError:
            explain_bad_rows(source)

    @contextmanager
    def _working(self) -> Iterator[Engine]:
        """Yield the engine, closed afterwards unless the caller made it."""
        engine = make_engine(self.engine)
        if self.verbose:
            engine.progress = LogProgress()
        try:
            yield engine
        finally:
            if engine is not self.engine:
                engine.close()

    def _source(self, X: Any, *, reset: bool) -> Source:
        source = as_source(X)  # first, because its messages about shapes say more
        if not isinstance(X, (Source, str, os.PathLike)):
            validate_data(self, X, skip_check_array=True, reset=reset)
        if reset:
            self.n_features_in_ = source.n_features
        return source
