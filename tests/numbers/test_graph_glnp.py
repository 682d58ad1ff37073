"""GLNP against the dense reference: its steps and its end, new rows, any cut and lost memory."""

import os
import pickle
import warnings
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import nnls
from sklearn.datasets import load_digits, make_moons

import reference_glnp as reference
from biglp import LowRankLabelPropagation
from biglp._core import (
    LandmarkWarning,
    NonFiniteRowsError,
    ParameterError,
    StoppedShortWarning,
    cut_rows,
)
from biglp._core.arrays import to_numpy
from biglp._core.blocks import Block, Cut
from biglp._engines import SerialEngine, ThreadEngine
from biglp._graph import FACTORS, TrainingRows
from biglp._graph.glnp.descent import Sums
from biglp._graph.glnp.steps import Momentum, descend_multiplicative
from biglp._rows import Sample
from glnp_tools import SOLVERS, STARTS, fitted, gathered, prepared, relative, some_rows

GlnpFactor = FACTORS["glnp"]
REFERENCE = {
    "gradient": reference.accelerated_gradient,
    "multiplicative": reference.multiplicative,
}


# --------------------------------------------------------------------------------------------------
# Steps, objective and end.


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


def test_the_momentum_is_dropped_when_the_objective_would_rise(monkeypatch):
    X = load_digits().data[:300]
    restarts = []
    plain = Momentum.restart
    monkeypatch.setattr(
        Momentum, "restart", lambda self: (restarts.append(self.beta), plain(self))[1]
    )
    factor, _, _ = fitted(X, k=2, max_iter=300, tol=0.0, rows_each=300)
    assert restarts
    assert min(restarts) > 0
    assert np.diff(factor.objective_).max() <= 0


def test_stops_when_the_projected_gradient_is_small(monkeypatch):
    # So that no other rule can.
    monkeypatch.setattr("biglp._graph.glnp.descent.Descent.settled", lambda self, tol: False)
    X, tol = some_rows(200, 8, rank=3), 1e-3
    first = fitted(X, k=3, max_iter=0)[2]
    factor, _, F = fitted(X, k=3, max_iter=2000, tol=tol)
    limit = tol * np.linalg.norm(reference.gradient(X, first))
    sizes = {
        n: np.linalg.norm(reference.projected_gradient(X, fitted(X, k=3, max_iter=n, tol=0.0)[2]))
        for n in range(0, (len(factor.objective_) - 1), 10)
    }
    # It is looked at every few iterations, before the step that is taken there all the same.
    last = (len(factor.objective_) - 1) - 1
    assert sizes.pop(last) <= limit
    assert min(sizes.values()) > limit
    assert np.linalg.norm(reference.gradient(X, F)) > 10 * limit  # on the boundary it stays large
    assert (F == 0).any()


def test_a_step_that_would_raise_the_objective_is_taken_again_with_caution():
    class Stubborn:
        """A fit in which only cautious steps lower Q."""

        sums = Sums(np.array([[0.5]]), np.array([[1.0]]))
        tried, accepted = (), ()
        rounding = 1e-6

        def next_serial(self):
            return len(self.tried) + 1

        def for_rows(self, P):
            return P

        small = for_rows

        def trial(self, step):
            self.tried += (step,)
            return Sums(self.sums.P * (1.1 if step.cautious else 0.9), self.sums.M), ()

        def settled(self, tol):
            return True

        def accept(self, step, sums):
            self.accepted += (step,)

    descent = Stubborn()
    assert descend_multiplicative(descent, max_iter=1, tol=0.0)
    assert [step.cautious for step in descent.tried] == [False, True]
    assert descent.accepted == descent.tried[1:]


# --------------------------------------------------------------------------------------------------
# New rows: they end where a training row of the same features ended.


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("max_iter", [0, 1, 25])
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


def test_a_start_that_is_drawn_by_row_has_no_steps_for_new_rows():
    factor, _, _ = fitted(some_rows(), k=4, start="uniform", max_iter=5)
    assert factor.new_rows is None
    assert "course_moves" not in factor.state()


@pytest.mark.filterwarnings("ignore::biglp._core.errors.BigLPWarning")
@pytest.mark.parametrize("solver", ["glnp", "glnp-mu"])
def test_predict_agrees_with_transduction(solver, tmp_path):
    """A quarter of the rows of two moons had another label, and a third of overlapping blobs."""
    X, truth = make_moons(300, noise=0.2, random_state=0)
    y = np.where(np.arange(300) < 20, truth, -1)
    params = {"max_iter": 60, "tol": 0.0}
    model = LowRankLabelPropagation(solver, n_landmarks=20, factor_params=params)
    model.fit(X, y)
    assert (model.predict(X) != model.transduction_).mean() < 0.01
    model.save(tmp_path / "model.biglp")
    loaded = LowRankLabelPropagation.load(tmp_path / "model.biglp")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


def nearest_combinations(X, P):
    """f ≥ 0 minimising ‖x − f·P‖ for every row: the formula of the end where FᵀF = I."""
    return GlnpFactor(P, np.zeros(P.shape[1]), np.eye(len(P))).features(X)


def test_many_small_problems_agree_with_scipy():
    rng = np.random.default_rng(2)
    P = rng.random((30, 40)) ** 2
    P[7] = 0.0  # a prototype that died
    X = np.concatenate([rng.random((60, 30)) @ P, rng.normal(size=(60, 40)), np.zeros((2, 40))])
    found = nearest_combinations(X, P)
    expected = np.array([nnls(P.T, x)[0] for x in X])
    np.testing.assert_allclose(found, expected, atol=1e-10 * abs(expected).max())
    assert (found[:, 7] == 0).all()
    assert (found >= 0).all()


def test_nearly_parallel_prototypes_are_solved_too():
    rng = np.random.default_rng(3)
    P, X = 1 + 0.01 * rng.random((20, 60)), rng.random((200, 60))
    found = nearest_combinations(X, P)
    expected = np.array([nnls(P.T, x, maxiter=10_000)[0] for x in X])
    assert relative(found, expected) < 1e-8


def test_parallel_prototypes_still_give_a_minimum():
    P = np.array([[1.0, 2.0, 0.0], [2.0, 4.0, 0.0], [0.0, 1.0, 1.0]])
    X = np.array([[1.0, 2.5, 0.5], [3.0, 6.0, 0.0], [-1.0, 0.0, 2.0]])
    found = nearest_combinations(X, P)
    best = [nnls(P.T, x)[1] for x in X]
    np.testing.assert_allclose(np.linalg.norm(X - found @ P, axis=1), best, atol=1e-10)


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


def test_the_formula_of_the_end_is_where_training_goes_to():
    X = some_rows()
    factor, blocks, trained = fitted(X, k=4, solver="gradient", max_iter=3000, tol=1e-12)
    ended = GlnpFactor(factor.P, factor.offsets, factor.M)
    assert relative(gathered(ended, blocks), trained) < 1e-3


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


def test_a_start_that_is_not_known_is_refused():
    with pytest.raises(ParameterError, match="clusters, uniform"):
        fitted(some_rows(), k=3, start="zeros")


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


# --------------------------------------------------------------------------------------------------
# Any cut, any number of threads, and lost memory.


@pytest.mark.parametrize("solver", SOLVERS)
def test_same_bits_on_every_engine_with_any_number_of_workers(engine, solver):
    X = some_rows(400, dtype=np.float32)
    params = {"k": 4, "solver": solver, "max_iter": 6, "rows_each": 61, "start": "uniform"}
    plain, _, F = fitted(X, **params)
    factor, _, found = fitted(X, engine=engine, **params)
    np.testing.assert_array_equal(found, F)
    assert factor.objective_ == plain.objective_


@pytest.mark.parametrize("solver", SOLVERS)
@settings(max_examples=15, deadline=None)
@given(cuts=st.sets(st.integers(1, 1499), max_size=12), start=st.sampled_from(STARTS))
def test_any_cut_into_blocks_gives_the_same_factor(solver, cuts, start):
    X = some_rows(1500, 5, rank=3)
    centres = X[[3, 700, 1400]] if start == "clusters" else "uniform"
    params = {"k": 3, "solver": solver, "start": centres, "max_iter": 8, "tol": 0.0}
    _, _, F = fitted(X, rows_each=1500, **params)
    edges = [0, *sorted(cuts), len(X)]
    plan = Cut(len(edges) - 1)
    pieces = enumerate(pairwise(edges))
    source = prepared(X)
    blocks = [Block(source, i, first, last, plan=plan) for i, (first, last) in pieces]
    assert relative(fitted(X, blocks=blocks, **params)[2], F) < 1e-10


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


class SendingEngine(SerialEngine):
    """Sends every function and block by pickle to workers that keep the memory of their blocks."""

    def __init__(self, lose=()):
        super().__init__()
        self.lose = dict(lose)  # sweep: blocks whose memory is gone before it
        self.kept, self.sent, self.most = {}, [], 0

    def results(self, func, items):
        for index in self.lose.get(len(self.sent), ()):
            assert self.kept.pop(index)
        message = pickle.dumps(func)
        self.sent.append(len(message))
        for item in items:
            there = pickle.loads(pickle.dumps(item))
            for block in getattr(there, "blocks", [there]):
                block.memory = self.kept.setdefault(block.index, {})
            yield pickle.loads(message)(there)
            for memory in self.kept.values():
                self.most = max(self.most, len(memory.get("glnp", ("", {}))[1]))


@pytest.mark.parametrize("solver", SOLVERS)
def test_blocks_elsewhere_give_the_same_bits_also_when_workers_are_lost(solver):
    X = some_rows(dtype=np.float32)
    params = {"k": 4, "solver": solver, "max_iter": 15, "tol": 0.0, "start": X[[1, 30, 60, 80]]}
    _, _, F = fitted(X, **params)
    faithful = SendingEngine()
    forgetful = SendingEngine({7: [0], 9: [1, 3], 12: [0, 1, 2, 3]})
    for engine in (faithful, forgetful):
        np.testing.assert_array_equal(fitted(X, engine=engine, **params)[2], F)
    assert faithful.most == (3 if solver == "gradient" else 2)
    # A sweep sends as much after 15 steps as after 5. A sweep that finds rows missing is repeated
    # with the whole recipe, and so is the reading of F at the end.
    steps = faithful.sent[7:-1]
    assert max(steps) < 1.4 * min(steps)
    assert len(forgetful.sent) - len(faithful.sent) == 3
    assert max(forgetful.sent[:-1]) > 2 * max(steps)


def test_two_fits_of_the_same_blocks_do_not_mix():
    X = some_rows()
    blocks = cut_rows(prepared(X), 25)
    params = {"blocks": blocks, "k": 3, "solver": "multiplicative", "start": "uniform"}
    one, _, first = fitted(X, max_iter=5, seed=1, **params)
    other, _, second = fitted(X, max_iter=5, seed=2, **params)
    np.testing.assert_array_equal(gathered(one, blocks), first)
    np.testing.assert_array_equal(gathered(other, blocks), second)
