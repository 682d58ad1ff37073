"""Cholesky's factor in groups of columns: LAPACK's numbers, and the signs of the graph."""

import numpy as np
import pytest
from scipy import linalg

from biglp._algebra.systems import COLUMNS, GROUP, Cholesky


def anchor_system(rank, alpha=0.99, parts=1, seed=0):
    """I − αH of a graph in some parts that nothing ties to each other."""
    rng = np.random.default_rng(seed)
    shared = np.arange(rank)[:, None] % parts == np.arange(rank) % parts
    ties = rng.random((rank, rank)) * (rng.random((rank, rank)) < 0.1) * shared
    ties += ties.T + np.eye(rank)
    sizes = np.sqrt(ties.sum(axis=1))
    return np.eye(rank) - alpha * ties / np.outer(sizes, sizes)


@pytest.mark.parametrize("rank", [1, 5, COLUMNS, COLUMNS + 1, 3 * COLUMNS, 333, GROUP + 70])
def test_it_solves_as_lapack_does(rank):
    system = anchor_system(rank)
    right = np.random.default_rng(1).normal(size=(rank, 7))
    factor = Cholesky.factorise(system.copy())
    np.testing.assert_allclose(
        np.tril(factor.lower), linalg.cholesky(system, lower=True), rtol=1e-12, atol=1e-14
    )
    np.testing.assert_allclose(factor.solve(right), linalg.solve(system, right), rtol=1e-9)
    half = factor.half(right)
    np.testing.assert_allclose(half.T @ half, right.T @ linalg.solve(system, right), rtol=1e-8)
    np.testing.assert_array_equal(factor.solve(right[:, 0]).shape, (rank,))
    inverse = factor.inverse()
    np.testing.assert_array_equal(inverse, np.triu(inverse))
    np.testing.assert_allclose(inverse.T @ np.tril(factor.lower), np.eye(rank), atol=1e-12)


def test_nothing_cancels_and_no_label_leaks_into_other_parts():
    system = anchor_system(300, parts=3)
    right = np.zeros((300, 2))
    right[[0, 3, 150], [0, 0, 1]] = 1.0  # all of the first part
    solved = Cholesky.factorise(system).solve(right)
    assert (solved >= 0).all()
    assert (solved[np.arange(300) % 3 != 0] == 0).all()


def test_a_matrix_that_is_not_positive_is_refused():
    with pytest.raises(np.linalg.LinAlgError):
        Cholesky.factorise(np.diag(np.r_[np.ones(100), -1.0]))


def test_what_is_given_stays_as_it_is():
    right = np.ones((70, 2), order="F")
    Cholesky.factorise(anchor_system(70)).solve(right)
    assert (right == 1.0).all()
