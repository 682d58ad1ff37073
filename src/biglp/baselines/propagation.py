"""Exact label propagation on the dense n × n graph (Eq. 2.1 and 2.3 of the paper).

Notation: W the graph, D its degrees, S = D^(−1/2)·W·D^(−1/2), Y the labels, F the scores.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg, sparse
from sklearn.metrics.pairwise import linear_kernel, rbf_kernel

from biglp._answers.spreading import as_probabilities
from biglp._core.arrays import Rows
from biglp._core.errors import MemoryBudgetError, StoppedShortWarning, warn_caller
from biglp._core.memory import format_bytes, parse_memory
from biglp._core.parameters import checked, fraction, is_auto, one_of, positive, positive_integer
from biglp._labels.labels import Labels
from biglp._lowrank.kernels import check_bandwidth
from biglp._lowrank.shift import shifted
from biglp._propagate.class_balance import given_prior, power_prior
from biglp._propagate.class_shares import share_offsets
from biglp.baselines.base import Baseline
from biglp.baselines.neighbours import neighbour_distance

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
    >>> from biglp.baselines import DensePropagation
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
        given = None if is_auto(self.bandwidth) else positive("bandwidth", self.bandwidth)
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
