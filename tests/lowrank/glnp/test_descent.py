"""GLNP against the dense reference: its steps, its objective, and when it stops."""

import os

import numpy as np
import pytest
from sklearn.datasets import load_digits

import reference_glnp as reference
from biglp._engines import ThreadEngine
from biglp._graph.glnp.factor import GlnpFactor
from glnp_tools import SOLVERS, STARTS, fitted, relative, some_rows

REFERENCE = {
    "gradient": reference.accelerated_gradient,
    "multiplicative": reference.multiplicative,
}


def test_the_reference_gradient_is_the_derivative_of_the_reference_objective():
    X, rng = some_rows(9, 4), np.random.default_rng(1)
    F, direction = rng.random((9, 3)), rng.normal(size=(9, 3))
    h = 1e-6
    rise = reference.objective(X, F + h * direction) - reference.objective(X, F - h * direction)
    assert rise / (2 * h) == pytest.approx(np.sum(reference.gradient(X, F) * direction), rel=1e-6)


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-10), (np.float32, 1e-5)])
@pytest.mark.parametrize("iterations", [1, 12])
def test_agrees_with_the_dense_reference(solver, start, dtype, tolerance, iterations):
    X = some_rows(dtype=dtype)
    params = {"k": 4, "solver": solver, "start": start, "tol": 0.0, "seed": 3}
    _, _, first = fitted(X, max_iter=0, **params)
    factor, _, F = fitted(X, max_iter=iterations, **params)
    wide = X.astype(np.float64)
    expected, history = REFERENCE[solver](wide, first.astype(np.float64), iterations)
    assert F.dtype == dtype
    assert relative(F, expected) < tolerance
    np.testing.assert_allclose(factor.objective_, history, rtol=tolerance)
    np.testing.assert_allclose(
        factor.P, expected.T @ wide, rtol=0, atol=tolerance * abs(wide).sum()
    )


@pytest.mark.parametrize("solver", SOLVERS)
def test_rows_of_any_sign_are_shifted_and_agree_with_the_reference(solver):
    X = some_rows() - 0.3
    shifted = X - np.minimum(X.min(axis=0), 0)
    params = {"k": 3, "solver": solver, "tol": 0.0}
    _, _, first = fitted(X, max_iter=0, **params)
    factor, _, F = fitted(X, max_iter=10, **params)
    np.testing.assert_array_equal(factor.offsets, np.minimum(X.min(axis=0), 0))
    assert relative(F, REFERENCE[solver](shifted, first, 10)[0]) < 1e-10
    new = some_rows(seed=4) - 0.3  # of which some are below all training rows
    expected = fitted(shifted, max_iter=10, **params)[0].features(new - factor.offsets)
    assert relative(factor.features(new), expected) < 1e-10
    stored = GlnpFactor.from_state(factor.state())
    assert relative(stored.features(new), expected) < 1e-10


@pytest.mark.parametrize("start", STARTS)
def test_the_start_has_its_best_length(start):
    X = some_rows()
    factor, _, F = fitted(X, k=4, start=start, max_iter=0)
    assert (len(factor.objective_) - 1) == 0
    assert factor.objective_ == [pytest.approx(reference.objective(X, F), rel=1e-10)]
    assert all(factor.objective_[0] < reference.objective(X, F * c) for c in (0.98, 1.02))


def test_shifting_the_rows_does_not_change_their_clusters():
    X = some_rows()
    plain, shifted = (fitted(X - below, k=4, max_iter=0)[2] for below in (0.0, 0.5))
    np.testing.assert_array_equal(plain.argmax(axis=1), shifted.argmax(axis=1))


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("shift", [0.0, -0.5])
def test_the_objective_never_rises_and_is_the_true_one(solver, start, shift):
    X = some_rows(dtype=np.float32, seed=5) + np.float32(shift)
    factor, _, F = fitted(X, k=5, solver=solver, start=start, max_iter=120, tol=0.0)
    assert (F >= 0).all()
    assert np.diff(factor.objective_).max() <= 0
    assert factor.objective_[-1] < 0.6 * factor.objective_[0]
    expected = reference.objective((X - factor.offsets).astype(np.float64), F.astype(np.float64))
    assert factor.objective_[-1] == pytest.approx(expected, abs=1e-6)


def both_solvers(X, k, iterations, rows_each):
    """Q of both solvers after the same number of iterations from the same F."""
    params = {"k": k, "rows_each": rows_each, "engine": ThreadEngine(2), "tol": 0.0}
    starts = [fitted(X, max_iter=0, solver=solver, **params)[2] for solver in SOLVERS]
    np.testing.assert_array_equal(*starts)
    ends = [
        fitted(X, max_iter=iterations, solver=solver, **params)[0].objective_ for solver in SOLVERS
    ]
    assert [len(history) for history in ends] == [iterations + 1] * 2
    assert all(np.diff(history).max() <= 0 for history in ends)
    return [history[-1] for history in ends]


def test_gradient_ends_below_multiplicative_on_digits():
    accelerated, multiplied = both_solvers(load_digits().data.astype(np.float32), 20, 50, 600)
    assert accelerated < 0.95 * multiplied


def test_gradient_ends_below_multiplicative_on_mnist_7_v_9():
    folder = os.environ.get("BIGLP_DATA")
    if not folder or not os.path.exists(os.path.join(folder, "mnist.npz")):
        pytest.skip("BIGLP_DATA does not name a folder with mnist.npz")
    with np.load(os.path.join(folder, "mnist.npz")) as data:
        X = data["X"][np.isin(data["y"], (7, 9))].astype(np.float32)
    accelerated, multiplied = both_solvers(X, 20, 25, 4000)
    assert accelerated < 0.97 * multiplied


def test_stops_when_the_objective_has_settled():
    X = load_digits().data.astype(np.float32)
    factor, _, _ = fitted(X, k=5, solver="multiplicative", tol=0.01, rows_each=2000)
    history = np.array(factor.objective_)
    falls = 1 - history[10:] / history[:-10]
    assert 10 < (len(factor.objective_) - 1) < 200
    assert falls[-1] <= 0.01 < falls[:-1].min()


def test_the_rank_one_saddle_is_not_taken_for_an_end():
    X = load_digits().data.astype(np.float32)
    factor, _, _ = fitted(X, k=5, solver="multiplicative", start="uniform", rows_each=2000)
    history = np.array(factor.objective_)
    falls = 1 - history[10:] / history[:-10]
    assert falls[:40].min() < 1e-3  # it did sit there
    assert history[-1] < 0.9 * history[20]  # and left


def test_a_saddle_at_which_the_objective_only_rounds_is_left_too():
    # Features far from zero are nearly one constant vector: the saddle explains 99.9 % of them.
    X = (some_rows(400) + 10.0).astype(np.float32)
    params = {"k": 3, "solver": "multiplicative", "start": "uniform"}
    factor, _, _ = fitted(X, max_iter=60, rows_each=50, tol=0.0, **params)
    assert (len(factor.objective_) - 1) == 60


def test_rows_that_are_rebuilt_exactly_end_the_iteration():
    X = np.outer(np.linspace(1, 2, 40), [1.0, 2.0, 0.5])
    factor, _, F = fitted(X, k=1, max_iter=100)
    assert (len(factor.objective_) - 1) < 20
    assert reference.objective(X, F) < 1e-6
