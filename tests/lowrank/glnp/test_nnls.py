"""Non-negative least squares against SciPy."""

import numpy as np
from scipy.optimize import nnls

from biglp._graph.glnp.new_rows import nonnegative_least_squares
from glnp_tools import relative


def test_many_small_problems_agree_with_scipy():
    rng = np.random.default_rng(2)
    P = rng.random((30, 40)) ** 2
    P[7] = 0.0  # a prototype that died
    X = np.concatenate([rng.random((60, 30)) @ P, rng.normal(size=(60, 40)), np.zeros((2, 40))])
    found = nonnegative_least_squares(X @ P.T, P @ P.T)
    expected = np.array([nnls(P.T, x)[0] for x in X])
    np.testing.assert_allclose(found, expected, atol=1e-10 * abs(expected).max())
    assert (found[:, 7] == 0).all()
    assert (found >= 0).all()


def test_nearly_parallel_prototypes_are_solved_too():
    rng = np.random.default_rng(3)
    P, X = 1 + 0.01 * rng.random((20, 60)), rng.random((200, 60))
    found = nonnegative_least_squares(X @ P.T, P @ P.T)
    expected = np.array([nnls(P.T, x, maxiter=10_000)[0] for x in X])
    assert relative(found, expected) < 1e-8


def test_parallel_prototypes_still_give_a_minimum():
    P = np.array([[1.0, 2.0, 0.0], [2.0, 4.0, 0.0], [0.0, 1.0, 1.0]])
    X = np.array([[1.0, 2.5, 0.5], [3.0, 6.0, 0.0], [-1.0, 0.0, 2.0]])
    found = nonnegative_least_squares(X @ P.T, P @ P.T)
    best = [nnls(P.T, x)[1] for x in X]
    np.testing.assert_allclose(np.linalg.norm(X - found @ P, axis=1), best, atol=1e-10)
