"""Pools: which rows, how many, and rows that are added later."""

import numpy as np
import pytest
from scipy import sparse

from biglp._labelling.learner import PoolSource, draw_pool, pool_size, stored_bytes
from biglp._rows import as_source


def test_small_data_is_all_in_the_pool():
    np.testing.assert_array_equal(draw_pool(10, 100, np.array([3]), 0), np.arange(10))


@pytest.mark.parametrize("seed", [0, 1])
def test_a_draw_has_the_labelled_rows_and_depends_on_the_seed(seed):
    rows = draw_pool(10_000, 500, np.array([7, 9_999, 7]), seed)
    assert len(rows) == len(set(rows.tolist())) == 500
    assert (np.diff(rows) > 0).all()
    assert {7, 9_999} <= set(rows.tolist())
    np.testing.assert_array_equal(rows, draw_pool(10_000, 500, np.array([7, 9_999]), seed))
    assert (rows != draw_pool(10_000, 500, np.array([7, 9_999]), 5)).any()


def test_of_very_many_labels_a_part_is_taken():
    rows = draw_pool(10_000, 500, np.arange(0, 10_000, 2), 0)
    assert len(rows) == 500
    assert np.mean(rows % 2) > 0.2


def test_memory_bounds_the_pool():
    assert pool_size(300_000, 400.0, 4 << 30) == 100_000
    assert pool_size(300_000, 400.0, 80 << 20) == (20 << 20) // 400
    assert pool_size(300_000, 400.0, 1 << 20) == 1000
    assert pool_size(300, 400.0, 4 << 30) == 300


def test_rows_in_memory():
    assert stored_bytes(as_source(np.zeros((5, 100), dtype=np.float32))) == 400
    matrix = sparse.random(5000, 1000, 0.01, format="csr", dtype=np.float32, random_state=0)
    assert 60 < stored_bytes(as_source(matrix)) < 130


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_rows_that_are_added(kind):
    X = np.random.default_rng(0).normal(size=(50, 4))
    X[X < 0] = 0
    pool = PoolSource(as_source(kind(X)), np.array([3, 5, 8]))
    more = pool.extended(np.array([40, 2])).extended(np.array([7]))
    assert pool.n_rows == 3
    assert more.rows.tolist() == [3, 5, 8, 40, 2, 7]
    assert more.places_of([7, 3, 49]).tolist() == [5, 0, -1]

    def dense(rows):
        return rows.toarray() if sparse.issparse(rows) else rows

    taken = dense(more.take(np.array([0, 2, 3, 5])))
    np.testing.assert_array_equal(taken, X[[3, 8, 40, 7]])
    np.testing.assert_array_equal(dense(more.read(0, 3)), X[[3, 5, 8]])
    np.testing.assert_array_equal(dense(more.read(3, 5)), X[[40, 2]])
    np.testing.assert_array_equal(dense(more.read(5, 6)), X[[7]])
