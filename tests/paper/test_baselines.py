"""The baselines against the dense reference and against scikit-learn."""

import tracemalloc

import numpy as np
import pytest
from sklearn.base import clone

import reference as ref
from biglp._core import MemoryBudgetError
from helpers import assert_scores_agree, blobs
from paper.baselines import DensePropagation

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
