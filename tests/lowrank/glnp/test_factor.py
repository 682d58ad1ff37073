"""The factor of GLNP: new rows, rows of every kind, and input that cannot be used."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import nnls

from biglp._core.arrays import to_numpy
from biglp._core.blocks import cut_rows
from biglp._core.errors import (
    LandmarkWarning,
    NonFiniteRowsError,
    ParameterError,
    StoppedShortWarning,
)
from biglp._engines import SerialEngine
from biglp._graph.factor import TrainingRows
from biglp._graph.glnp.factor import GlnpFactor
from biglp._rows import Sample
from glnp_tools import SOLVERS, STARTS, fitted, gathered, prepared, relative, some_rows


@pytest.mark.parametrize("solver", SOLVERS)
def test_warns_only_when_stopping_short_matters(solver):
    X = some_rows(dtype=np.float32)
    source = prepared(X)
    rows = TrainingRows(SerialEngine(), source, cut_rows(source, 25), Sample.of_prepared(source, 0))
    with pytest.warns(StoppedShortWarning, match="after 2 iterations"):
        GlnpFactor.learn(rows, 4, solver=solver, max_iter=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        GlnpFactor.learn(replace(rows, blocks=cut_rows(source, 25)), 4, solver=solver)


def test_the_formula_of_the_end_is_where_training_goes_to():
    X = some_rows()
    factor, blocks, trained = fitted(X, k=4, solver="gradient", max_iter=3000, tol=1e-12)
    ended = GlnpFactor(factor.P, factor.offsets, factor.M)
    assert relative(gathered(ended, blocks), trained) < 1e-3


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-9), (np.float32, 1e-4)])
def test_new_rows_without_a_course_are_where_training_would_end(solver, dtype, tolerance):
    """f ≥ 0 minimising f·PPᵀ·fᵀ − 2·x·Pᵀ·(2I − FᵀF)·fᵀ, solved by SciPy row by row."""
    X = (some_rows() - 0.1).astype(dtype)
    factor, _, _ = fitted(X, k=4, solver=solver, max_iter=30, start="uniform")
    new = (some_rows(seed=8)[:40] - 0.15).astype(dtype)
    P, offsets = factor.P.astype(np.float64), factor.offsets
    linear = (new.astype(np.float64) - offsets) @ P.T @ (2.0 * np.eye(len(P)) - factor.M)
    expected = np.array([nnls(P.T, row)[0] for row in linear @ np.linalg.pinv(P).T])
    blocks = cut_rows(prepared(new), 7)
    for known in (factor, factor.for_new_rows(), GlnpFactor.from_state(factor.state())):
        found = gathered(known, blocks)
        assert found.dtype == dtype
        assert relative(found, expected) < tolerance
    assert factor.describe()["iterations"] == (len(factor.objective_) - 1)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("shift", [0.0, -0.2])
def test_sparse_rows_equal_dense_rows(solver, shift):
    X = some_rows(dtype=np.float32)
    X[X < 0.15] = 0.0
    X[X > 0] += np.float32(shift)
    params = {"k": 4, "solver": solver, "max_iter": 10, "start": X[[1, 30, 60, 80]], "tol": 0.0}
    dense, _, F = fitted(X, **params)
    csr, _, found = fitted(sparse.csr_matrix(X), **params)
    assert relative(found, F) < 1e-4
    rows = X[:10]
    assert relative(csr.features(sparse.csr_matrix(rows)), dense.features(rows)) < 1e-3


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_and_columns_that_say_nothing_give_no_nan(solver, start, dtype):
    X = some_rows(dtype=dtype)
    X[::7] = 0.0
    X[:, 3] = 0.0
    X[40:50] = X[39]
    X[60:] = 0.0
    factor, _, F = fitted(X, k=12, solver=solver, start=start, max_iter=150, tol=0.0)
    assert np.isfinite(F).all()
    assert np.isfinite(factor.objective_).all()
    assert np.isfinite(factor.features(X)).all()
    if start == "clusters":  # a row of zeros has what training rows of zeros have
        assert relative(factor.features(X), F) < 1e-3
    else:
        assert (factor.features(np.zeros_like(X[:3])) == 0).all()


@pytest.mark.parametrize("solver", SOLVERS)
def test_rows_of_nothing_but_zeros(solver):
    X = np.zeros((30, 4))
    factor, _, F = fitted(X, k=3, solver=solver, start="uniform")
    assert np.isfinite(F).all()
    assert factor.objective_ == [0.0]
    assert (factor.features(X) == 0).all()


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("size", [1e-15, 1e15])
def test_the_size_of_the_numbers_does_not_matter(solver, size):
    X = some_rows(dtype=np.float32)
    params = {"k": 4, "solver": solver, "max_iter": 10, "start": "uniform", "tol": 0.0}
    plain, _, F = fitted(X, **params)
    factor, _, found = fitted(X * np.float32(size), **params)
    np.testing.assert_allclose(factor.objective_, plain.objective_, rtol=1e-5)
    assert relative(found, F) < 1e-4
    rebuilt = factor.features(X * np.float32(size)) @ factor.P
    assert relative(rebuilt / np.float32(size), plain.features(X) @ plain.P) < 1e-5


@pytest.mark.parametrize("solver", SOLVERS)
def test_torch_rows_equal_numpy_rows(solver):
    pytest.importorskip("torch")
    X = some_rows(dtype=np.float32)
    params = {"k": 4, "solver": solver, "max_iter": 10, "start": X[[1, 30, 60, 80]], "tol": 0.0}
    plain, _, F = fitted(X, **params)
    factor, blocks, found = fitted(X, device="torch:cpu", **params)
    assert relative(found, F) < 1e-4
    assert factor.objective_ == pytest.approx(plain.objective_, rel=1e-5)
    rows = blocks[0].rows()
    assert relative(to_numpy(factor.features(rows)), plain.features(X[: len(rows)])) < 1e-3


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"k": 3, "start": "zeros"}, "clusters, uniform"),
    ],
)
def test_parameters_that_mean_nothing_are_refused(params, message):
    with pytest.raises(ParameterError, match=message):
        fitted(some_rows(), **params)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_rows_that_are_not_numbers_are_refused(solver, bad):
    X = some_rows()
    X[17, 2] = bad
    with pytest.raises(NonFiniteRowsError):
        fitted(X, k=3, solver=solver, start="uniform")
    with pytest.raises(NonFiniteRowsError):
        fitted(some_rows(), k=3, solver=solver, max_iter=3)[0].features(X)


def test_more_columns_than_rows():
    with pytest.warns(LandmarkWarning, match="9 rows"):
        factor, _, F = fitted(some_rows(9), k=20, start="uniform", max_iter=3)
    assert factor.rank == F.shape[1] == 9
