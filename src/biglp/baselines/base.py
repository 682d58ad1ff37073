"""What the baselines share: reading rows, naming classes, answering for new rows."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from biglp._core.arrays import Rows, to_numpy
from biglp._core.errors import LabelError
from biglp._fit.bad_rows import explain_bad_rows
from biglp._labels.labels import Labels, encode_labels
from biglp._sources import PreparedRows, as_source


class Baseline(ClassifierMixin, BaseEstimator):
    """A classifier that holds all rows in memory; a method adds ``_fit`` and ``_score``."""

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from all rows and the labels of some.

        Parameters
        ----------
        X : array, CSR matrix, data frame or path of shape (n_rows, n_features)
        y : array of shape (n_rows,)
            Labels of any type; -1, None, NaN or "" where unknown.
        """
        rows = self._rows(X, reset=True)
        labels = encode_labels(y, rows.shape[0])
        if labels.distribution is not None:
            raise LabelError(
                "y holds label distributions, which the baselines do not take; give one label a "
                "row, or use LowRankLabelPropagation."
            )
        self.classes_ = labels.classes
        self.label_distributions_ = self._fit(rows, labels)
        self.transduction_ = self.classes_[self.label_distributions_.argmax(axis=1)]
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return the label of each row.  (n_rows,)."""
        probabilities = self.predict_proba(X)
        return self.classes_[probabilities.argmax(axis=1)]

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the class probabilities of each row; rows add up to 1.  (n_rows, n_classes)."""
        check_is_fitted(self)
        return self._score(self._rows(X, reset=False))

    @abstractmethod
    def _fit(self, rows: Rows, labels: Labels) -> np.ndarray:
        """Learn, and return the class probabilities of the training rows."""

    @abstractmethod
    def _score(self, rows: Rows) -> np.ndarray:
        """Class probabilities of new rows."""

    def _rows(self, X: Any, *, reset: bool) -> Rows:
        """All rows in float64, checked."""
        source = as_source(X)
        validate_data(self, X, skip_check_array=True, reset=reset)
        rows = to_numpy(PreparedRows(source, np.dtype(np.float64)).read(0, source.n_rows))
        if not np.isfinite(rows.data if sparse.issparse(rows) else rows).all():
            explain_bad_rows(source)
        return rows

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
