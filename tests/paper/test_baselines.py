"""The baselines against the dense reference and against scikit-learn."""

import tracemalloc

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.neighbors import KNeighborsClassifier

import reference as ref
from biglp._core import (
    BadRowsError,
    LabelError,
    MemoryBudgetError,
)
from helpers import assert_scores_agree, blobs
from paper.baselines import DensePropagation, NearestNeighbours

SOLVERS = {"closed_form": ref.closed_form, "iterative": ref.iterative}
GRAPHS = {"rbf": lambda X: ref.rbf_graph(X, 1.3), "linear": ref.linear_graph}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("alpha", [0.01, 0.9, 0.99])
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("kernel", GRAPHS)
def test_scores_are_those_of_the_reference(kernel, solver, alpha, dtype):
    X, y, _ = blobs(dtype=dtype)
    fitted = DensePropagation(
        kernel=kernel, bandwidth=1.3, alpha=alpha, solver=solver, tol=1e-12
    ).fit(X, y)
    S, Y = ref.normalised_graph(GRAPHS[kernel](X)), ref.one_hot(y)
    F = SOLVERS[solver](S, Y, alpha)
    assert_scores_agree(fitted.scores_[y < 0], F[y < 0], 1e-9)
    expected = ref.probabilities(ref.balanced(F, Y, alpha, np.ones(3)), 1 / 3)
    np.testing.assert_allclose(fitted.label_distributions_, expected, atol=1e-7)
    np.testing.assert_array_equal(fitted.transduction_, expected.argmax(axis=1))


@pytest.mark.parametrize("kernel", GRAPHS)
def test_class_shares(kernel):
    X, y, _ = blobs()
    y[np.flatnonzero(y == 0)[3:]] = -1  # labels of unequal shares
    fitted = DensePropagation(kernel=kernel, bandwidth=1.3, class_balance="share", alpha=0.9).fit(
        X, y
    )
    W, Y = GRAPHS[kernel](X), ref.one_hot(y)
    F = ref.closed_form(ref.normalised_graph(W), Y, 0.9)
    scores = ref.with_shares(F, Y, W.sum(axis=1), 0.9)
    expected = ref.probabilities(scores, 0)
    # A threshold is anywhere between two rows, so that a few may be on either side of it.
    assert (fitted.transduction_ == expected.argmax(axis=1)).mean() > 0.98
    again = fitted.predict(X[y < 0])  # new rows have the same thresholds
    assert (again == expected[y < 0].argmax(axis=1)).mean() > 0.97


@pytest.mark.parametrize("kernel", GRAPHS)
@pytest.mark.parametrize("solver", SOLVERS)
def test_memory_is_refused_beyond_the_limit_and_kept_within_it(kernel, solver):
    X, y, _ = blobs(n=1000)
    estimator = DensePropagation(kernel=kernel, solver=solver, alpha=0.9, bandwidth=1.3)
    with pytest.raises(MemoryBudgetError, match=r"1,000 rows needs 7\.8\d MB .*memory=7 MB"):
        estimator.set_params(memory="7MB").fit(X, y)
    tracemalloc.start()
    clone(estimator).set_params(memory="8MB").fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 9 * 2**20


def test_rows_that_nothing_reaches_get_the_prior():
    X, y, _ = blobs(n=60, classes=2)
    X[50:] += 1e4 * np.arange(1, 11)[:, None]
    y[50:] = -1
    fitted = DensePropagation(bandwidth=0.5, class_balance=[0.3, 0.7]).fit(X, y)
    np.testing.assert_allclose(fitted.label_distributions_[50:], [[0.3, 0.7]] * 10)
    np.testing.assert_allclose(fitted.predict_proba([[-1e9] * 5]), [[0.3, 0.7]])


def test_only_labelled_rows_vote():
    X, y, _ = blobs()
    fitted = NearestNeighbours().fit(X, y)
    known = y >= 0
    plain = KNeighborsClassifier(5).fit(X[known], y[known])
    np.testing.assert_array_equal(fitted.transduction_[~known], plain.predict(X[~known]))
    np.testing.assert_array_equal(fitted.transduction_[known], y[known])
    np.testing.assert_array_equal(fitted.predict(X), plain.predict(X))
    np.testing.assert_allclose(fitted.predict_proba(X), plain.predict_proba(X))


@pytest.mark.parametrize("baseline", [DensePropagation, NearestNeighbours])
def test_bad_rows_and_labels_are_explained(baseline):
    X, y, _ = blobs()
    with pytest.raises(LabelError, match="none of the 200 rows"):
        baseline().fit(X, np.full(200, -1))
    X[3, 1] = np.nan
    for rows in (X, sparse.csr_matrix(X)):
        with pytest.raises(BadRowsError, match=r"in 1 of 200 rows .*rows 3\)"):
            baseline().fit(rows, y)
