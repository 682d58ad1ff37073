"""Cross-validation where most rows have no label."""

from __future__ import annotations

import numbers
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.model_selection import BaseCrossValidator

from biglp._core.errors import LabelError, ParameterError
from biglp._core.parameters import seed_from
from biglp._labels.labels import as_column, encode_labels, n_columns


class SemiSupervisedKFold(BaseCrossValidator):
    """Split labelled rows into folds; unlabelled rows are in every training part.

    For ``cross_val_score``, ``GridSearchCV`` and whatever else takes ``cv``. Each fold's labelled
    rows are left out of training once and are the only rows that are scored then, as new rows.
    Classes are dealt out evenly, so that a class with two labels or more is never without one in
    training. A class with one label only is always in training, and is not scored.

    Parameters
    ----------
    n_splits : int
        Number of folds, 2 or more.
    random_state : int, RandomState, Generator or None
        Seed of the draw; None is 0. The folds depend on it and on y only.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.model_selection import cross_val_score
    >>> from biglp import LowRankLabelPropagation, SemiSupervisedKFold
    >>> X, truth = load_iris(return_X_y=True)
    >>> y = np.where(np.arange(len(truth)) % 2, truth, -1)
    >>> scores = cross_val_score(LowRankLabelPropagation(), X, y, cv=SemiSupervisedKFold(3))
    >>> bool(scores.mean() > 0.8)
    True
    """

    def __init__(self, n_splits: int = 5, *, random_state: Any = None) -> None:
        self.n_splits = n_splits
        self.random_state = random_state

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of folds; the parameters are ignored."""
        n: Any = self.n_splits
        if isinstance(n, bool) or not isinstance(n, numbers.Integral) or n < 2:
            raise ParameterError(f"n_splits={n!r} cannot be used; give an integer of 2 or more.")
        return int(n)

    def split(
        self, X: Any, y: Any = None, groups: Any = None
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield row numbers to train on and row numbers to score.

        Parameters
        ----------
        X : array or data frame of shape (n_rows, n_features)
            Only its number of rows counts.
        y : array of shape (n_rows,) or (n_rows, n_classes)
            Labels, with -1, None, NaN or "" where unknown; or label distributions, as in ``fit``.
            Numbers with fractions are measured: only NaN is unknown then, and there are no classes
            to deal out evenly.
        groups : None
            Ignored.

        Examples
        --------
        >>> import numpy as np
        >>> from biglp import SemiSupervisedKFold
        >>> y = np.array([0, 0, 1, 1, -1, -1])
        >>> folds = SemiSupervisedKFold(2)
        >>> folds.get_n_splits()
        2
        >>> [len(train) for train, scored in folds.split(y[:, None], y)]
        [4, 4]
        """
        yield from super().split(X, y, groups)

    def _iter_test_indices(
        self, X: Any = None, y: Any = None, groups: Any = None
    ) -> Iterator[np.ndarray]:
        n_splits = self.get_n_splits()
        if y is None:
            raise LabelError(
                "y is None, so there are no labels to hide; give one label a row, with -1, None, "
                "NaN or '' where the label is unknown."
            )
        values = as_column(y) if n_columns(y) == 1 else np.empty(0)
        known = values[np.isfinite(values)] if values.dtype.kind == "f" else values[:0]
        if (known != np.floor(known)).any():  # measured: there are no classes
            rows = np.flatnonzero(~np.isnan(values))
            codes = np.zeros(len(rows), dtype=np.int64)
        else:
            labels = encode_labels(y, y.shape[0] if hasattr(y, "shape") else len(y))
            rows, codes = labels.rows, labels.codes
        rng = np.random.default_rng(seed_from("random_state", self.random_state))
        order = rng.permutation(len(rows))
        rows, codes = rows[order], codes[order]
        dealt = np.argsort(codes, kind="stable")  # class by class, in a drawn order within each
        dealt = dealt[np.bincount(codes)[codes[dealt]] > 1]
        if len(dealt) < n_splits:
            raise LabelError(
                f"n_splits={n_splits}, but only {len(dealt):,} of the {len(rows):,} labels can be "
                "hidden (a class with one label keeps it); give a smaller n_splits or more labels."
            )
        for fold in range(n_splits):
            yield np.sort(rows[dealt[fold::n_splits]])
