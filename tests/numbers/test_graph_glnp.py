"""GLNP against the dense reference: its steps and its end, new rows, any cut and lost memory."""

import pickle
import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import nnls

import reference_glnp as reference
from biglp._core import (
    Block,
    NonFiniteRowsError,
    ParameterError,
    StoppedShortWarning,
    cut_rows,
    to_numpy,
)
from biglp._engines import SerialEngine
from biglp._graph import FACTORS, TrainingRows
from biglp._rows import PreparedRows, Sample, as_source

SOLVERS = ("gradient", "multiplicative")
STARTS = ("clusters", "uniform")


def some_rows(n=90, m=12, rank=4, dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    groups = rng.random((rank, m)) ** 3
    mix = rng.random((n, rank)) ** 4
    return (mix @ groups + 0.05 * rng.random((n, m))).astype(dtype)


def prepared(X, device="cpu"):
    return PreparedRows(as_source(X), np.dtype(X.dtype), device=device)


def fitted(X, *, k, rows_each=25, engine=None, blocks=None, device="cpu", seed=0, **params):
    source = prepared(X, device)
    blocks = cut_rows(source, rows_each) if blocks is None else blocks
    engine = engine or SerialEngine()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StoppedShortWarning)
        factor = FACTORS["glnp"].learn(
            TrainingRows(engine, source, blocks, Sample.of_prepared(source, seed)), k, **params
        )
    return factor, blocks, gathered(factor, blocks, engine)


def gathered(factor, blocks, engine=None):
    engine = engine or SerialEngine()
    return np.concatenate(
        [to_numpy(part) for part in engine.map_blocks(factor.block_features, blocks)]
    )


def relative(found, expected):
    return np.linalg.norm(found - expected) / np.linalg.norm(expected)


GlnpFactor = FACTORS["glnp"]


REFERENCE = {"gradient": reference.accelerated_gradient, "multiplicative": reference.multiplicative}


# --------------------------------------------------------------------------------------------------
# Steps, objective and end.


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


# --------------------------------------------------------------------------------------------------
# New rows: they end where a training row of the same features ended.


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("max_iter", [0, 25])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_training_rows_taken_for_new_ones_have_the_same_factor(solver, max_iter, dtype):
    """With more prototypes than features, and before training has settled."""
    X = (some_rows() - 0.1).astype(dtype)[:, :3]
    factor, _, F = fitted(X, k=9, solver=solver, max_iter=max_iter, tol=0.0)
    stored = GlnpFactor.from_state(factor.for_new_rows().state())
    for known in (factor, factor.for_new_rows(), stored):
        found = gathered(known, cut_rows(prepared(X), 7))
        assert found.dtype == dtype
        assert relative(found, F) < 1e-3


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_matrix])
def test_multiplicative_steps_of_rows_that_are_mostly_zero_or_below_all_others(storage):
    """Rounding makes of zeros negative numbers, which have no root."""
    X = np.zeros((6, 3))
    X[1:, 0], X[4] = [3, 7, 255, 0, 5], [0, 0, 255]
    factor, _, F = fitted(X, k=6, solver="multiplicative", max_iter=200, tol=0.0)
    assert relative(factor.features(storage(X)), F) < 1e-3
    assert np.isfinite(factor.features(storage(X - 50.0))).all()


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-9), (np.float32, 1e-4)])
def test_new_rows_without_such_steps_are_where_training_would_end(solver, dtype, tolerance):
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


def test_the_formula_of_the_end_is_where_training_goes_to_and_agrees_with_scipy():
    """f ≥ 0 minimising ‖x − f·P‖ for every row, where FᵀF = I."""
    X = some_rows()
    factor, blocks, trained = fitted(X, k=4, solver="gradient", max_iter=3000, tol=1e-12)
    ended = GlnpFactor(factor.P, factor.offsets, factor.M)
    assert relative(gathered(ended, blocks), trained) < 1e-3
    rng = np.random.default_rng(2)
    many = rng.random((30, 40)) ** 2
    many[7] = 0.0  # a prototype that died
    alike, same = 1 + 0.01 * rng.random((20, 60)), np.array([[1.0, 2, 0], [2, 4, 0], [0, 1, 1]])
    of_many = [rng.random((60, 30)) @ many, rng.normal(size=(60, 40)), np.zeros((2, 40))]
    for P, rows in (
        (many, np.concatenate(of_many)),
        (alike, rng.random((200, 60))),
        (same, np.array([[1.0, 2.5, 0.5], [3.0, 6.0, 0.0], [-1.0, 0.0, 2.0]])),
    ):
        found = GlnpFactor(P, np.zeros(P.shape[1]), np.eye(len(P))).features(rows)
        best = [nnls(P.T, row, maxiter=10_000)[1] for row in rows]
        np.testing.assert_allclose(np.linalg.norm(rows - found @ P, axis=1), best, atol=1e-9)
        assert (found >= 0).all()


# --------------------------------------------------------------------------------------------------
# Rows of every kind.


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


@pytest.mark.parametrize("solver", SOLVERS)
def test_sparse_rows_and_tensors_equal_dense_rows(solver):
    X = some_rows(dtype=np.float32)
    X[X < 0.15] = 0.0
    params = {"k": 4, "solver": solver, "max_iter": 10, "start": X[[1, 30, 60, 80]], "tol": 0.0}
    for shift in (0.0, -0.2):
        X[X > 0] += np.float32(shift)
        dense, _, F = fitted(X, **params)
        csr, _, found = fitted(sparse.csr_matrix(X), **params)
        assert relative(found, F) < 1e-4
        assert relative(csr.features(sparse.csr_matrix(X[:10])), dense.features(X[:10])) < 1e-3
    pytest.importorskip("torch")
    factor, blocks, found = fitted(X, device="torch:cpu", **params)
    assert relative(found, F) < 1e-4
    assert factor.objective_ == pytest.approx(dense.objective_, rel=1e-5)
    rows = blocks[0].rows()
    assert relative(to_numpy(factor.features(rows)), dense.features(X[: len(rows)])) < 1e-3


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


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_cannot_be_used_is_refused(bad):
    X = some_rows()
    X[17, 2] = bad
    for solver in SOLVERS:
        with pytest.raises(NonFiniteRowsError):
            fitted(X, k=3, solver=solver, start="uniform")
        with pytest.raises(NonFiniteRowsError):
            fitted(some_rows(), k=3, solver=solver, max_iter=3)[0].features(X)
    with pytest.raises(ParameterError, match="clusters, uniform"):
        fitted(some_rows(), k=3, start="zeros")


# --------------------------------------------------------------------------------------------------
# Any cut, any number of threads, and lost memory.


@pytest.mark.parametrize("solver", SOLVERS)
def test_lost_rows_are_rebuilt_with_the_same_bits(solver):
    X = some_rows(dtype=np.float32)
    factor, blocks, F = fitted(X, k=4, solver=solver, max_iter=15, tol=0.0)
    assert all(len(block.memory["glnp"][1]) == 1 for block in blocks)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Block, "rows", None)  # what is remembered is not computed again
        np.testing.assert_array_equal(gathered(factor, blocks), F)
    for block in blocks:
        block.memory.clear()
    np.testing.assert_array_equal(gathered(factor, blocks), F)
    blocks[1].memory.clear()
    sent = pickle.loads(pickle.dumps(factor))
    np.testing.assert_array_equal(gathered(sent, blocks), F)
