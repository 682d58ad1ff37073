"""What more labels bring."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone

from biglp._core.errors import LabelError, ParameterError
from biglp._labels.values import as_column, unlabelled
from biglp.plot.base import Display

FEWEST = 2
"""Labels of each class that the first part has."""
PARTS = 5


@dataclass
class LearningCurveDisplay(Display):
    """Accuracy over the number of labels: estimated, and found on the labels that were left out.

    Parameters
    ----------
    n_labels : ndarray of shape (p,)
    estimated : ndarray of shape (p,)
        Estimated accuracy on the unlabelled rows; NaN where labels are too few for one.
    low, high : ndarrays of shape (p,)
        Its 90 % interval.
    found : ndarray of shape (p,)
        Share of the labels that were left out that is found; NaN where none were.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from biglp import LowRankLabelPropagation
    >>> from biglp.plot import LearningCurveDisplay
    >>> X, truth = (part[:600] for part in load_digits(return_X_y=True))
    >>> y = truth.copy()
    >>> y[300:] = -1
    >>> model = LowRankLabelPropagation()
    >>> display = LearningCurveDisplay.from_estimator(model, X, y, sizes=[50, 300])
    >>> display.n_labels.tolist()
    [50, 300]
    """

    title: ClassVar[str] = "Accuracy over labels"

    n_labels: np.ndarray
    estimated: np.ndarray
    low: np.ndarray
    high: np.ndarray
    found: np.ndarray

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, sizes: Sequence[int] | None = None, ax: Any = None
    ) -> LearningCurveDisplay:
        """Fit copies of a classifier on parts of the labels, each part within the next.

        Labels are taken class by class in turn, in an order that depends on nothing but the number
        of rows.

        Parameters
        ----------
        estimator : LowRankLabelPropagation
            It is not changed, and need not be fitted.
        X : array, CSR matrix, data frame or path
            The rows.
        y : array of shape (n_rows,)
            Labels; -1, None, NaN or "" where unknown.
        sizes : sequence of int, optional
            Numbers of labels; by default five, up to all of them.
        ax : matplotlib.axes.Axes, optional

        Returns
        -------
        display : LearningCurveDisplay
        """
        y = as_column(y)
        order = _class_by_class(y)
        sizes = _sizes(sizes, y[order], len(order))
        lines = [_accuracies(estimator, X, y, order, size) for size in sizes]
        return cls(np.array(sizes), *np.array(lines).T).plot(ax)

    def _draw(self, ax: Any) -> None:
        ax.fill_between(self.n_labels, self.low, self.high, alpha=0.2, color="#0072b2", linewidth=0)
        ax.plot(self.n_labels, self.estimated, "o-", color="#0072b2", label="estimated, 90 %")
        if np.isfinite(self.found).any():
            words = "found of the labels left out"
            ax.plot(self.n_labels, self.found, "s--", color="#d55e00", label=words)
        ax.set(xlabel="labels", ylabel="accuracy", ylim=(0, 1.02))
        ax.legend(loc="lower right", frameon=False)


def _class_by_class(y: np.ndarray) -> np.ndarray:
    """Labelled rows: one of each class, then a second of each, and so on."""
    rows = np.flatnonzero(~unlabelled(y))
    if not len(rows):
        raise LabelError(
            f"none of the {len(y):,} rows has a label in y, so that there is no curve; give labels."
        )
    rows = np.random.default_rng(0).permutation(rows)
    codes = np.unique(y[rows].astype(str), return_inverse=True)[1]
    turns = np.empty(len(rows), dtype=np.int64)
    for code in range(codes.max() + 1):
        own = np.flatnonzero(codes == code)
        turns[own] = np.arange(len(own))
    return np.asarray(rows[np.lexsort((codes, turns))])


def _sizes(sizes: Sequence[int] | None, labels: np.ndarray, n_labels: int) -> list[int]:
    n_classes = len(set(labels.astype(str).tolist()))
    if sizes is None:
        first = min(FEWEST * n_classes, n_labels)
        return sorted({round(size) for size in np.geomspace(first, n_labels, PARTS)})
    bad = [size for size in sizes if not n_classes <= size <= n_labels]
    if bad or not len(sizes):
        raise ParameterError(
            f"sizes={list(sizes)} must be numbers of labels from {n_classes} (one of each class) "
            f"to {n_labels} (all of them)."
        )
    return sorted({int(size) for size in sizes})


def _accuracies(
    estimator: Any, X: Any, y: np.ndarray, order: np.ndarray, size: int
) -> tuple[float, float, float, float]:
    """Estimated accuracy with its interval, and what is found of the labels left out."""
    part, others = y.copy(), order[size:]
    nothing = -1 if part.dtype.kind in "iuf" else None
    part = part.astype(object) if nothing is None else part
    part[others] = nothing
    model = clone(estimator).fit(X, part)
    estimate = model.report_.get("estimated_accuracy")
    found = np.nan
    if len(others):
        right = model.transduction_[others].astype(object) == y[others].astype(object)
        found = float(right.mean())
    if estimate is None:
        return np.nan, np.nan, np.nan, found
    return estimate["accuracy"], *estimate["interval"], found
