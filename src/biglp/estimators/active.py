"""The estimator's side of active learning: which rows to label next, and taking their labels in."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from biglp._core.arrays import require_device
from biglp._core.blocks import cut_rows, rows_per_block
from biglp._core.errors import ParameterError, UnreachedRowsWarning
from biglp._core.memory import parse_memory
from biglp._fit.model import Model, check_columns
from biglp._fit.prepare import explain_bad_rows
from biglp._fit.suggest import Pool, Suggestions, suggest_rows
from biglp._lowrank.base import NonFiniteRowsError
from biglp._lowrank.graph import sweep_labels
from biglp._sinks import ArraySink
from biglp._sources import PreparedSource

if TYPE_CHECKING:
    from biglp._fit.training import Training

ANSWERS = ("transduction_", "label_distributions_")
NO_ROWS = (
    "this estimator does not hold its training rows, because it was loaded, unpickled or copied; "
)


class ActiveLearningMixin:
    """``suggest`` and ``update_labels`` for an estimator with ``_model`` and ``_training``."""

    if TYPE_CHECKING:
        _model: Model
        _training: Training
        classes_: np.ndarray
        report_: dict[str, Any]
        memory: Any
        device: str
        _working: Any
        _source: Any

    def suggest(self, n: int = 10, X: Any = None) -> np.ndarray:
        """Return the rows whose labels would help most, the most helpful first.

        They are rows that the model is in doubt about, in places that many other doubtful rows are
        close to and no labelled row is, and not close to each other. One sweep over the rows.

        Parameters
        ----------
        n : int
            How many rows; fewer are returned when fewer are unlabelled.
        X : array, CSR matrix, data frame, path or Source, optional
            Rows to choose from, all of which count as unlabelled; by default the unlabelled
            training rows.

        Returns
        -------
        rows : ndarray of shape (n,)
            Row numbers, counted from 0.

        Examples
        --------
        >>> from sklearn.datasets import load_digits
        >>> from biglp import LowRankLabelPropagation
        >>> X, truth = load_digits(return_X_y=True)
        >>> y = truth.copy()
        >>> y[50:] = -1
        >>> model = LowRankLabelPropagation().fit(X, y)
        >>> rows = model.suggest(5)
        >>> model = model.update_labels(rows, truth[rows])
        """
        return self._suggestions(n, X).rows

    def update_labels(self, rows: Any, labels: Any) -> Self:
        """Learn the labels of some training rows, without another sweep over the features.

        The result is that of :meth:`fit` with all labels so far. Only the named rows are read;
        ``transduction_`` and ``label_distributions_`` are renewed when they are next asked for.

        Parameters
        ----------
        rows : array of shape (q,)
            Numbers of training rows, counted from 0.
        labels : array of shape (q,)
            Their labels, of old or new classes. A row that has a label gets this one instead;
            -1, None, NaN or "" takes its label away.
        """
        check_is_fitted(self)
        if "_training" not in self.__dict__:
            raise ParameterError(f"{NO_ROWS}fit it with all labels instead.")
        with self._working() as engine:
            training = self._training.relabelled(engine, rows, labels)
            decision, chosen, n_iter = training.decide(engine)
        report = {
            **self._model.report,
            **chosen,
            "labelled_rows": len(training.labels.rows),
            "unreached_rows": None,  # known when the answers are renewed
        }
        self._model = replace(
            self._model, classes=training.labels.classes, decision=decision, report=report
        )
        self._training, self.n_iter_ = training, n_iter
        self.classes_, self.report_ = training.labels.classes, report
        for name in ANSWERS:
            self.__dict__.pop(name, None)
        return self

    def _renew(self) -> None:
        """Label the training rows with the model as it is now."""
        training, source = self._training, self._training.rows.source
        sink = ArraySink(self.classes_, source.n_rows, source.dtype)
        with self._working() as engine:
            answered = sweep_labels(
                engine,
                training.rows.blocks,
                training.factor,
                training.normalisation,
                self._model.decision,
                sink,
                training.labels,
                clamp=training.settings.clamp,
            )
        self.label_distributions_ = sink.probabilities
        self.transduction_ = self.classes_[sink.codes]
        self.report_["unreached_rows"] = answered.n_unreached
        if answered.n_unreached:
            warnings.warn(
                f"{answered.n_unreached:,} of {source.n_rows:,} rows are reached by no label and "
                "got the class prior; label rows near them.",
                UnreachedRowsWarning,
                stacklevel=4,
            )

    def _suggestions(self, n: int, X: Any = None) -> Suggestions:
        check_is_fitted(self)
        if X is None and "_training" not in self.__dict__:
            raise ParameterError(f"{NO_ROWS}give the rows to choose from: suggest(n, X).")
        training, seed = self.__dict__.get("_training"), 0
        with self._working() as engine:
            pool = None
            if training is not None:
                seed = training.settings.seed
                pool = training_pool(training)
            if X is not None:
                pool = self._pool(X, None if pool is None else pool.known_features(engine, seed))
            assert pool is not None
            try:
                return suggest_rows(engine, pool, self._model.decision, n, seed)
            except NonFiniteRowsError:
                explain_bad_rows(pool.source.inner)

    def _pool(self, X: Any, known: Any) -> Pool:
        """New rows to choose from."""
        source, model = self._source(X, reset=False), self._model
        check_columns(source, model.n_features)
        device, budget = require_device(self.device), parse_memory(self.memory)
        row_bytes = model.factor.bytes_per_row(model.n_features, model.dtype.itemsize, device)
        rows = PreparedSource(source, model.dtype, model.scaling, device)
        blocks = cut_rows(rows, rows_per_block(row_bytes, budget, device=device))
        return Pool(rows, blocks, model.factor, model.normalisation, None, known)

    def __getstate__(self) -> Any:
        """Leave the training rows behind: a pickled estimator is as small as its model."""
        if "_training" in self.__dict__ and "transduction_" not in self.__dict__:
            self._renew()
        state: Any = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_training"}

    if not TYPE_CHECKING:  # a type checker would take any name for known

        def __getattr__(self, name: str) -> Any:
            """Renew the answers after new labels, when they are asked for."""
            if name in ANSWERS and "_training" in self.__dict__:
                self._renew()
                return self.__dict__[name]
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


def training_pool(training: Training) -> Pool:
    """The training rows, to choose from."""
    rows = training.rows
    return Pool(rows.source, rows.blocks, training.factor, training.normalisation, training.labels)
