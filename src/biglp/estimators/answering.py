"""What the classifier says of rows, in scikit-learn's forms, and how often that is right."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from biglp._core.arrays import namespace, to_numpy
from biglp._core.errors import LabelError, ParameterError
from biglp._core.parameters import positive_integer
from biglp._fit.model import Model
from biglp._labels.values import as_column, given_weights, n_columns, read_distributions, unlabelled
from biglp._output import ArraySink


class AnsweringMixin:
    """``predict`` and its relatives for an estimator with ``_model`` and ``classes_``."""

    if TYPE_CHECKING:
        _model: Model
        classes_: np.ndarray
        _source: Any
        _score_rows: Any

    def predict(self, X: Any) -> np.ndarray:
        """Return the label of each row.  (n_rows,)."""
        return self._score(X).labels

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the class probabilities of each row; rows add up to 1.  (n_rows, n_classes).

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from biglp import LowRankLabelPropagation
        >>> X, truth = load_iris(return_X_y=True)
        >>> y = truth.copy()
        >>> y[1::2] = -1
        >>> model = LowRankLabelPropagation().fit(X, y)
        >>> model.predict_proba(X[:2]).shape, model.predict_log_proba(X[:2]).shape
        ((2, 3), (2, 3))
        >>> model.predict(X[:2]), model.decision_function(X[:2]).argmax(axis=1)
        (array([0, 0]), array([0, 0]))
        """
        return self._score(X).probabilities

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Return the logarithms of the class probabilities; −inf for 0.  (n_rows, n_classes)."""
        with np.errstate(divide="ignore"):
            shares = self.predict_proba(X)
            return namespace(shares).log(shares)

    def predict_top(self, X: Any, n: int = 3) -> tuple[np.ndarray, np.ndarray]:
        """Return the likeliest classes of each row, the likeliest first, as ``--top`` writes them.

        Parameters
        ----------
        X : array, CSR matrix, data frame, path or Source of shape (n_rows, n_features)
        n : int
            How many classes, at most as many as there are.

        Returns
        -------
        labels : ndarray of shape (n_rows, n)
            The first column is what :meth:`predict` says.
        probabilities : ndarray of shape (n_rows, n)

        Examples
        --------
        >>> from sklearn.datasets import load_digits
        >>> from biglp import LowRankLabelPropagation
        >>> X, truth = load_digits(return_X_y=True)
        >>> y = truth.copy()
        >>> y[50:] = -1
        >>> labels, probabilities = LowRankLabelPropagation().fit(X, y).predict_top(X, 2)
        >>> labels.shape, probabilities.shape
        ((1797, 2), (1797, 2))
        """
        check_is_fitted(self)
        if positive_integer("n", n) > len(self.classes_):
            raise ParameterError(
                f"n={n} is more than the {len(self.classes_)} classes; give 1 to "
                f"{len(self.classes_)}."
            )
        probabilities = to_numpy(self.predict_proba(X))
        best = np.argsort(-probabilities, axis=1, kind="stable")[:, :n]
        return self.classes_[best], np.take_along_axis(probabilities, best, axis=1)

    def decision_function(self, X: Any) -> np.ndarray:
        """Return how far each row is on the side of a class, as finite logarithms.

        Of two classes the log-odds of the second, ``classes_[1]``: above 0 where :meth:`predict`
        says it.  (n_rows,). Of more classes the logarithms of their probabilities, of which the
        largest is the class of :meth:`predict`.  (n_rows, n_classes).
        """
        shares = to_numpy(self.predict_proba(X))
        # A probability of 0 is one that is too small to be written.
        logs = np.log(np.maximum(shares, np.finfo(shares.dtype).tiny), dtype=np.float64)
        return logs if logs.shape[1] > 2 else logs[:, 1] - logs[:, 0]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of the labelled rows whose label :meth:`predict` finds.

        Rows without a label in y count for nothing. Do not give labels that the model has learnt:
        :class:`biglp.SemiSupervisedKFold` hides some, and ``report_["estimated_accuracy"]`` is an
        estimate for all unlabelled rows.

        Parameters
        ----------
        X : array, CSR matrix, data frame, path or Source of shape (n_rows, n_features)
        y : array of shape (n_rows,) or (n_rows, n_classes)
            Labels or label distributions, of which the likeliest class counts; where unknown as in
            ``fit``.
        sample_weight : array of shape (n_rows,), optional
            How much each label counts.

        Raises
        ------
        LabelError
            When no row has a label.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from biglp import LowRankLabelPropagation
        >>> X, truth = load_iris(return_X_y=True)
        >>> y = truth.copy()
        >>> y[1::2] = -1
        >>> model = LowRankLabelPropagation().fit(X, y)
        >>> model.score(X[1::2], truth[1::2]) > 0.9
        True
        >>> paper = LowRankLabelPropagation.paper("nystrom-kmeans", k=50).fit(X, y)
        >>> paper.score(X[1::2], truth[1::2]) > 0.8
        True
        """
        predicted = to_numpy(self.predict(X))
        rows, truth = self._truth(y, len(predicted))
        weights = None
        if sample_weight is not None:
            weights = given_weights(sample_weight, rows, len(predicted))
        if not len(rows) or (weights is not None and not weights.any()):
            raise LabelError(
                f"none of the {len(predicted):,} rows has a label in y (all are -1, None, NaN or "
                "'', or of weight zero), so there is nothing to score; give rows with labels, in "
                "cross-validation by cv=SemiSupervisedKFold()."
            )
        right = predicted[rows].astype(object) == truth.astype(object)
        return float(np.average(right, weights=weights))

    def _truth(self, y: Any, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
        """Rows that have a label, and their labels."""
        if n_columns(y) > 1:
            rows, shares = read_distributions(y, n_rows)
            if shares.shape[1] != len(self.classes_):
                raise LabelError(
                    f"y has {shares.shape[1]} columns, but the model has {len(self.classes_)} "
                    "classes; give a column for each class, in the order of classes_."
                )
            return rows, self.classes_[shares.argmax(axis=1)]
        values = as_column(y)
        if len(values) != n_rows:
            raise LabelError(
                f"y has {len(values):,} entries but X has {n_rows:,} rows; give one label a row, "
                "with -1, None, NaN or '' where the label is unknown."
            )
        rows = np.flatnonzero(~unlabelled(values))
        truth = values[rows]
        if len(rows) and _are_texts(truth) != _are_texts(self.classes_):
            raise LabelError(
                f"y has labels such as {truth.tolist()[0]!r}, but the classes of the model are "
                f"such as {self.classes_.tolist()[0]!r}; give y in the type of classes_."
            )
        return rows, truth

    def _score(self, X: Any) -> ArraySink:
        check_is_fitted(self)
        source = self._source(X, reset=False)
        sink = ArraySink(self.classes_, source.n_rows, self._model.dtype, source.device)
        self._score_rows(source, sink)
        return sink


def _are_texts(values: np.ndarray) -> bool:
    """Whether labels are texts, by the first of them."""
    return isinstance(values.tolist()[0], (str, bytes))
