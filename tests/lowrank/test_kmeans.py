"""k-means against the textbook."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.cluster import kmeans_plusplus

import reference as ref
from biglp._engines import SerialEngine, ThreadEngine
from biglp._graph.kmeans import Lloyd, assign_block, kmeans_start
from helpers import blobs, blocks_of

STORAGE = {"dense": np.asarray, "csr": sparse.csr_matrix}


def naive_lloyd(X, centres, iterations):
    for _ in range(iterations):
        nearest_centre = ref.squared_distances(X, centres).argmin(axis=1)
        centres = np.array([X[nearest_centre == j].mean(axis=0) for j in range(len(centres))])
    return centres


class TestKMeans:
    @pytest.mark.parametrize("storage", STORAGE)
    @pytest.mark.parametrize("rows_each", [200, 13])
    def test_lloyd_is_the_textbook_iteration(self, rows_each, storage):
        X, _, _ = blobs()
        blocks = blocks_of(STORAGE[storage](X), rows_each)
        for iterations in (1, 4):
            iteration = Lloyd(ThreadEngine(2), X[:6], max_iter=iterations, tol=0)
            centres, n_iter = iteration.run(blocks, X[:6])
            assert n_iter == iterations
            np.testing.assert_allclose(centres, naive_lloyd(X, X[:6], iterations), atol=1e-10)

    def test_first_hour_7_sums_of_sparse_rows_are_sparse(self):
        """20,000 × 17,600 took 35 s, most of them to add up zeros of each block."""
        X = sparse.random(40, 3000, 0.01, "csr", random_state=0)
        (block,) = blocks_of(X, 40)
        sums, counts, inertia = assign_block(block, X[:5].toarray())
        assert sparse.issparse(sums)
        (block,) = blocks_of(X.toarray(), 40)
        dense, same_counts, same_inertia = assign_block(block, X[:5].toarray())
        np.testing.assert_allclose(sums.toarray(), dense)
        np.testing.assert_array_equal(counts, same_counts)
        np.testing.assert_allclose(inertia, same_inertia)

    def test_lloyd_stops_when_nothing_is_gained(self):
        X, _, _ = blobs()
        _, n_iter = Lloyd(SerialEngine(), X[:3], max_iter=200, tol=1e-3).run(
            blocks_of(X, 50), X[:3]
        )
        assert 1 < n_iter < 200

    def test_empty_centres_are_put_on_rows(self):
        X, _, _ = blobs()
        start = np.vstack([X[:3], np.full((2, 5), 1e6)])  # no row is nearest to the last two
        centres, _ = Lloyd(SerialEngine(), X, max_iter=1).run(blocks_of(X, 50), start)
        assert np.isfinite(centres).all()
        assert {tuple(row) for row in centres[3:].tolist()} <= {tuple(row) for row in X.tolist()}
        later, _ = Lloyd(SerialEngine(), X, max_iter=10).run(blocks_of(X, 50), start)
        counts = np.bincount(ref.squared_distances(X, later).argmin(axis=1), minlength=5)
        assert (counts > 0).all()

    @pytest.mark.parametrize("k", [1, 5, 150])
    def test_start_takes_distinct_rows(self, k):
        X, _, _ = blobs()
        start = kmeans_start(X, k, seed=0)
        assert start.shape == (k, 5)
        assert len(np.unique(start, axis=0)) == k
        assert {tuple(row) for row in start.tolist()} <= {tuple(row) for row in X.tolist()}

    def test_start_is_as_spread_out_as_that_of_scikit_learn(self):
        X, _, _ = blobs(n=400)

        def inertia(centres):
            return ref.squared_distances(X, centres).min(axis=1).sum()

        ours = np.mean([inertia(kmeans_start(X, 8, seed)) for seed in range(20)])
        random = np.mean(
            [inertia(X[np.random.default_rng(s).choice(400, 8, False)]) for s in range(20)]
        )
        theirs = np.mean(
            [inertia(kmeans_plusplus(X, 8, random_state=s, n_local_trials=1)[0]) for s in range(20)]
        )
        assert ours < 1.15 * theirs
        assert ours < random

    def test_start_of_fewer_distinct_rows_than_asked_for(self):
        X = np.repeat(np.eye(3), 10, axis=0)
        start = kmeans_start(X, 8, seed=0)
        np.testing.assert_array_equal(np.unique(start, axis=0), np.unique(X, axis=0))


def test_a_part_of_the_sample_does_not_move_landmarks_of_rows_outside_it():
    X = np.random.default_rng(0).normal(size=(200, 2))
    start = np.array([[0.0, 0.0], [50.0, 50.0]])  # no row is near the second
    part = blocks_of(X, 64)
    centres, _ = Lloyd(SerialEngine(), None, max_iter=5).run(part, start)
    np.testing.assert_array_equal(centres[1], start[1])
    moved, _ = Lloyd(SerialEngine(), X[:3], max_iter=1).run(part, start)
    assert np.abs(moved[1]).max() < 10
