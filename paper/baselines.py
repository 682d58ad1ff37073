"""What low-rank propagation is compared with: exact propagation, and nearest neighbours.

:class:`DensePropagation` is label propagation on the whole n × n graph: the method that
:class:`biglp.LowRankLabelPropagation` approximates, for as many rows as fit in memory.
:class:`NearestNeighbours` looks at the labelled rows only.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Self

import numpy as np
from scipy import linalg, sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics.pairwise import linear_kernel, rbf_kernel
from sklearn.neighbors import KNeighborsClassifier, NearestNeighbors
from sklearn.utils.validation import check_is_fitted, validate_data

from biglp._algebra.balance import given_prior, power_prior, share_offsets
from biglp._core.arrays import Rows, to_numpy
from biglp._core.errors import LabelError, MemoryBudgetError, StoppedShortWarning, warn_caller
from biglp._core.memory import format_bytes, parse_memory
from biglp._core.parameters import checked, fraction, one_of, positive, positive_integer
from biglp._graph.kernels import check_bandwidth
from biglp._graph.linear import shifted
from biglp._labels.labels import Labels, encode_labels
from biglp._learn.spreading import as_probabilities
from biglp._rows import PreparedRows, as_source
from biglp._rows.source import explain_bad_rows

# --------------------------------------------------------------------------------------------------
# What the baselines share: reading rows, naming classes, answering for new rows.


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


# --------------------------------------------------------------------------------------------------
# Nearest neighbours: a vote of the labelled rows, and how far rows lie apart.


NEIGHBOUR = 7
"""The neighbour whose distance says how close together rows lie."""
DISTANCE_ROWS = 500
"""Rows that the typical distance is taken from."""


class NearestNeighbours(Baseline):
    """Vote of the nearest labelled rows, through scikit-learn; unlabelled rows are not used.

    Parameters
    ----------
    n_neighbors : int
        Labelled rows that vote; all of them when there are fewer.
    n_jobs : int, optional
        Processes of scikit-learn.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    transduction_ : ndarray of shape (n_rows,)
        Label of every training row; a labelled row keeps its own.
    label_distributions_ : ndarray of shape (n_rows, n_classes)
        Share of the votes.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from paper.baselines import NearestNeighbours
    >>> X, truth = load_iris(return_X_y=True)
    >>> y = truth.copy()
    >>> y[1::2] = -1
    >>> model = NearestNeighbours(3).fit(X, y)
    >>> model.predict(X[:2]), model.predict_proba(X[:2]).shape
    (array([0, 0]), (2, 3))
    """

    def __init__(self, n_neighbors: int = 5, n_jobs: int | None = None) -> None:
        self.n_neighbors = n_neighbors
        self.n_jobs = n_jobs

    def _fit(self, rows: Rows, labels: Labels) -> np.ndarray:
        count = min(positive_integer("n_neighbors", self.n_neighbors), len(labels.rows))
        self._voters = KNeighborsClassifier(count, n_jobs=self.n_jobs)
        self._voters.fit(rows[labels.rows], labels.codes)
        shares = self._score(rows)
        shares[labels.rows] = labels.one_hot(labels.codes)
        return shares

    def _score(self, rows: Rows) -> np.ndarray:
        return self._voters.predict_proba(rows)


def neighbour_distance(rows: Rows) -> float | None:
    """Typical distance of a row to its seventh neighbour; None where all rows are the same.

    Examples
    --------
    >>> import numpy as np
    >>> from paper.baselines import neighbour_distance
    >>> 3 < neighbour_distance(np.arange(100.0)[:, None]) < 5
    True
    """
    neighbours = NearestNeighbors(n_neighbors=min(NEIGHBOUR + 1, rows.shape[0])).fit(rows)
    step = max(1, rows.shape[0] // DISTANCE_ROWS)
    distances = neighbours.kneighbors(rows[::step])[0][:, -1]  # the first is the row itself
    apart = distances[distances > 0]
    return float(np.sqrt(np.mean(apart**2))) if apart.size else None


# --------------------------------------------------------------------------------------------------
# Exact label propagation on the dense n × n graph (Eq. 2.1 and 2.3 of the paper).
#
# Notation: W the graph, D its degrees, S = D^(−1/2)·W·D^(−1/2), Y the labels, F the scores.


KERNELS = ("rbf", "linear")
BALANCES = ("mass", "share", "none")
BANDWIDTH_SHARE = 0.3
"""The automatic bandwidth is this share of the typical distance to the seventh neighbour: the best
of 0.15 to 1 on digits, MNIST and Fashion-MNIST."""
ROWS_AT_ONCE = 1000
"""New rows that are scored together."""


class DensePropagation(Baseline):
    """Exact label propagation on the dense n × n graph.

    Memory grows with n² and time with n³ (closed form) or n² an iteration.

    Parameters
    ----------
    kernel : {"rbf", "linear"}
        Gaussian kernel, or inner products of the rows shifted to be non-negative.
    bandwidth : float or "auto"
        σ of the Gaussian kernel; "auto" takes it from the distance to the seventh neighbour.
    alpha : float
        Share of a row's score that comes from its neighbours, in (0, 1). The paper has 0.01.
    class_balance : {"mass", "share", "none"} or array of shape (n_classes,)
        "mass" makes classes equally heavy, an array gives their priors, "share" has the answers in
        the shares that the classes have among the labels.
    solver : {"closed_form", "iterative"}
        F = (1−α)(I − αS)⁻¹Y, or F ← αSF + (1−α)Y until nothing changes.
    max_iter, tol : int, float
        Most iterations and relative tolerance of the iterative solver.
    memory : str or int
        Memory that may be used, such as "4GB"; "auto" is half of what is free. More rows than fit
        are refused.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    transduction_ : ndarray of shape (n_rows,)
        Label of every training row.
    label_distributions_ : ndarray of shape (n_rows, n_classes)
        Class probabilities of every training row.
    scores_ : ndarray of shape (n_rows, n_classes)
        F, before the classes are balanced.
    bandwidth_ : float
        σ that was used.
    n_iter_ : int
        Iterations of the solver; 1 for the closed form.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from paper.baselines import DensePropagation
    >>> X, truth = load_iris(return_X_y=True)
    >>> y = truth.copy()
    >>> y[1::2] = -1
    >>> model = DensePropagation().fit(X, y)
    >>> bool((model.transduction_ == truth).mean() > 0.9)
    True
    >>> model.predict(X[:2]), model.predict_proba(X[:2]).shape
    (array([0, 0]), (2, 3))
    """

    def __init__(
        self,
        kernel: str = "rbf",
        bandwidth: float | str = "auto",
        alpha: float = 0.99,
        class_balance: Any = "mass",
        solver: str = "closed_form",
        max_iter: int = 10_000,
        tol: float = 1e-7,
        memory: str | int = "auto",
    ) -> None:
        self.kernel = kernel
        self.bandwidth = bandwidth
        self.alpha = alpha
        self.class_balance = class_balance
        self.solver = solver
        self.max_iter = max_iter
        self.tol = tol
        self.memory = memory

    def _fit(self, rows: Rows, labels: Labels) -> np.ndarray:
        self._check(rows, labels)
        self._training = rows
        self._lowest = np.minimum(_column_minimums(rows), 0.0)
        self.bandwidth_ = self._bandwidth(rows)
        graph = self._kernel(rows)
        self._degrees = _positive_degrees(graph.sum(axis=1))
        roots = 1.0 / np.sqrt(self._degrees)
        graph *= roots
        graph *= roots[:, None]
        targets = np.zeros((labels.n_rows, labels.n_classes))
        targets[labels.rows, labels.codes] = 1.0
        solve = self._closed_form if self.solver == "closed_form" else self._iterative
        self.scores_ = solve(graph, targets)
        self._weights, self._offsets = np.ones(labels.n_classes), np.zeros(labels.n_classes)
        self._prior = power_prior(labels.counts, 1.0)
        if not isinstance(self.class_balance, str):
            self._prior = given_prior(self.class_balance, labels.n_classes)
            self._weights = self._prior / self.scores_.sum(axis=0)
        elif self.class_balance == "mass":
            self._weights = 1.0 / self.scores_.sum(axis=0)
        elif self.class_balance == "share":
            # Without the label's own score, which says nothing about the graph around its row.
            spread = (self.scores_ - (1.0 - self.alpha) * targets) * roots[:, None]
            self._offsets = share_offsets(spread, self._prior)
        return self._probabilities(self.scores_, self._degrees)

    def _closed_form(self, graph: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """F = (1−α)(I − αS)⁻¹Y by Cholesky, in the memory of S."""
        self.n_iter_ = 1
        graph *= -self.alpha
        graph.flat[:: len(graph) + 1] += 1.0
        # The transpose of a symmetric matrix is itself, in the order that LAPACK works on in place.
        factor = linalg.cho_factor(graph.T, lower=True, overwrite_a=True, check_finite=False)
        return (1.0 - self.alpha) * linalg.cho_solve(factor, targets, check_finite=False)

    def _iterative(self, graph: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """F ← αSF + (1−α)Y from F = Y (Eq. 2.1, Algorithm S.5)."""
        scores, change = targets, np.inf
        for iteration in range(1, self.max_iter + 1):
            self.n_iter_ = iteration
            fresh = self.alpha * (graph @ scores) + (1.0 - self.alpha) * targets
            change = float(np.abs(fresh - scores).max() / np.abs(fresh).max())
            scores = fresh
            if change <= self.tol * (1.0 - self.alpha):
                return scores
        warn_caller(
            f"exact label propagation stopped after max_iter={self.max_iter} iterations with a "
            f"relative change of {change:.1e} (tolerance {self.tol:.0e}); use "
            f"solver='closed_form', or a smaller alpha (alpha={self.alpha} now).",
            StoppedShortWarning,
        )
        return scores

    def _score(self, rows: Rows) -> np.ndarray:
        """F of new rows: one more step of Eq. 2.1, α·S(x, ·)·F."""
        parts = []
        for start in range(0, rows.shape[0], ROWS_AT_ONCE):
            graph = self._kernel(rows[start : start + ROWS_AT_ONCE], self._training)
            degrees = _positive_degrees(graph.sum(axis=1))
            graph /= np.sqrt(degrees)[:, None]
            graph /= np.sqrt(self._degrees)
            parts.append(self._probabilities(self.alpha * (graph @ self.scores_), degrees))
        return np.concatenate(parts)

    def _probabilities(self, scores: np.ndarray, degrees: np.ndarray) -> np.ndarray:
        balanced = scores * self._weights - np.outer(np.sqrt(degrees), self._offsets)
        return np.asarray(as_probabilities(balanced, self._prior)[0])

    def _kernel(self, rows: Rows, others: Rows | None = None) -> np.ndarray:
        """W between rows.  (b, m), (n, m) → (b, n)."""
        others = rows if others is None else others
        if self.kernel == "rbf":
            return rbf_kernel(rows, others, gamma=0.5 / self.bandwidth_**2)
        moved = (shifted(rows, self._lowest), shifted(others, self._lowest))
        graph = linear_kernel(*moved)
        return np.maximum(graph, 0.0, out=graph)  # a new row may lie below the training minimum

    def _bandwidth(self, rows: Rows) -> float:
        if self.kernel == "linear":
            return 1.0
        given = None if self.bandwidth == "auto" else positive("bandwidth", self.bandwidth)
        if given is not None:
            return check_bandwidth(given, rows)
        distance = neighbour_distance(rows)
        return 1.0 if distance is None else BANDWIDTH_SHARE * distance

    def _check(self, rows: Rows, labels: Labels) -> None:
        one_of("kernel", self.kernel, KERNELS)
        checked("solver", self.solver)
        fraction("alpha", self.alpha)
        positive_integer("max_iter", self.max_iter)
        positive("tol", self.tol)
        if isinstance(self.class_balance, str):
            one_of("class_balance", self.class_balance, BALANCES)
        else:
            given_prior(self.class_balance, labels.n_classes)
        n_rows, budget = rows.shape[0], parse_memory(self.memory)
        needed = 8 * n_rows * (n_rows + 8 * labels.n_classes)  # the graph, and a few n × c arrays
        if needed > budget:
            raise MemoryBudgetError(
                f"exact label propagation on {n_rows:,} rows needs {format_bytes(needed)} for its "
                f"{n_rows:,} × {n_rows:,} graph, but memory={format_bytes(budget)} is allowed; use "
                "fewer rows, allow more memory, or use biglp.LowRankLabelPropagation, whose memory "
                "does not grow with the square of the rows.",
                least=needed,
            )


def _column_minimums(rows: Rows) -> np.ndarray:
    if sparse.issparse(rows):
        return np.asarray(rows.min(axis=0).toarray()).ravel()
    return np.asarray(rows.min(axis=0))


def _positive_degrees(degrees: np.ndarray) -> np.ndarray:
    """Degrees, with 1 for a row without any neighbour: its scores are 0 whatever its degree is."""
    return np.where(degrees > 0, degrees, 1.0)


# --------------------------------------------------------------------------------------------------


__all__ = ["DensePropagation", "NearestNeighbours", "neighbour_distance"]
