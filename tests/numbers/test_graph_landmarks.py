"""Landmarks of every kind, chosen, given and refused; and k-means against the textbook."""

import numpy as np
import pytest
from scipy import sparse

import reference as ref
from biglp._core import BadRowsError, LandmarkWarning, NonFiniteRowsError, ParameterError
from biglp._engines import SerialEngine, ThreadEngine
from biglp._graph import Lloyd, choose_landmarks, landmark_spacing
from helpers import blobs, blocks_of, training_rows

DTYPES = ("float32", "float64")


STORAGE = {"dense": np.asarray, "csr": sparse.csr_matrix}


def landmarks_for(X, strategy, k=10, seed=0, rows_each=50, engine=None):
    return choose_landmarks(training_rows(blocks_of(X, rows_each), engine, seed), strategy, k)


@pytest.mark.parametrize("strategy", ["random", "kmeans", "kmeans-full"])
class TestEveryStrategy:
    def test_landmarks_depend_on_the_seed_only(self, strategy):
        X, _, _ = blobs()
        first = landmarks_for(X, strategy, seed=1)
        for rows_each, engine in ((1, SerialEngine()), (7, ThreadEngine(5)), (200, None)):
            again = landmarks_for(X, strategy, seed=1, rows_each=rows_each, engine=engine)
            np.testing.assert_allclose(again, first, rtol=1e-12, atol=1e-12)
        assert not np.array_equal(landmarks_for(X, strategy, seed=2), first)

    def test_sparse_rows_give_the_landmarks_of_dense_rows(self, strategy):
        X, _, _ = blobs()
        found = landmarks_for(sparse.csr_matrix(X), strategy)
        assert isinstance(found, np.ndarray)
        np.testing.assert_allclose(found, landmarks_for(X, strategy), atol=1e-10)

    def test_more_landmarks_than_rows_warns_and_uses_the_rows(self, strategy):
        X, _, _ = blobs(n=12)
        with pytest.warns(LandmarkWarning, match=r"n_landmarks=30 .* 12 rows .* smaller"):
            L = landmarks_for(X, strategy, k=30)
        assert len(L) == 12
        found = {tuple(row) for row in np.round(L, 9).tolist()}
        assert found == {tuple(row) for row in np.round(X, 9).tolist()}

    def test_repeated_rows_give_distinct_landmarks(self, strategy):
        X = np.repeat(np.random.default_rng(0).normal(size=(4, 3)), 25, axis=0)
        L = landmarks_for(X, strategy, k=20)
        assert len(np.unique(L, axis=0)) == len(L) <= 20
        assert len(L) >= (1 if strategy == "random" else 4)
        # Every landmark is one of the four points, up to the rounding of a mean.
        assert ref.squared_distances(L, X).min(axis=1).max() < 1e-20

    def test_rows_that_are_not_finite_are_found_out(self, strategy):
        X, _, _ = blobs()
        X[::3, 2] = np.nan
        with pytest.raises(NonFiniteRowsError):
            landmarks_for(X, strategy, k=100)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (np.ones((3, 4)), ParameterError, r"landmarks has 4 features, but X has 5"),
        ([[np.nan] * 5], BadRowsError, r"landmarks holds NaN or infinity"),
        ("kmean", ParameterError, r"landmarks='kmean' is not known; use one of kmeans"),
        ([["a"] * 5], ParameterError, r"landmarks=.* must hold real numbers"),
        ([[1e300] * 5], BadRowsError, r"infinity in float32"),
    ],
)
def test_given_landmarks_are_used_once_each_or_refused(given, error, message):
    X = blobs(dtype="float32")[0]
    np.testing.assert_array_equal(landmarks_for(X, X[[5, 3, 5, 9]]), X[[5, 3, 9]])
    with pytest.raises(error, match=message):
        landmarks_for(X, given)


@pytest.mark.parametrize("dtype", DTYPES)
def test_spacing_is_the_distance_to_a_near_landmark_and_not_rounding_noise(dtype):
    X, _, _ = blobs(n=40, dtype=dtype)
    X += 5
    for L, neighbour, column in ((X[:20] + np.array(0.1, dtype), 3, 2), (X, 1, 1)):
        squared = np.sort(ref.squared_distances(X, L), axis=1)[:, column]
        expected = np.sqrt(squared.mean())
        assert landmark_spacing(X, L, neighbour) == pytest.approx(expected, rel=1e-4)
    assert landmark_spacing(np.ones((5, 2)), np.ones((1, 2)), 3) == 1.0


class TestKMeans:
    @pytest.mark.parametrize("storage", STORAGE)
    @pytest.mark.parametrize("rows_each", [200, 13])
    def test_lloyd_is_the_textbook_iteration(self, rows_each, storage):
        X, _, _ = blobs()
        blocks = blocks_of(STORAGE[storage](X), rows_each)
        expected = X[:6]
        for iterations in range(1, 5):
            nearest = ref.squared_distances(X, expected).argmin(axis=1)
            expected = np.array([X[nearest == j].mean(axis=0) for j in range(6)])
            lloyd = Lloyd(ThreadEngine(2), X[:6], max_iter=iterations, tol=0)
            centres, n_iter = lloyd.run(blocks, X[:6])
            assert n_iter == iterations
            np.testing.assert_allclose(centres, expected, atol=1e-10)
        _, n_iter = Lloyd(SerialEngine(), X[:3], max_iter=200).run(blocks, X[:3])
        assert 1 < n_iter < 200  # it stops when nothing is gained

    def test_empty_centres_are_put_on_rows_or_stay(self):
        X, _, _ = blobs()
        start = np.vstack([X[:3], np.full((2, 5), 1e6)])  # no row is nearest to the last two
        blocks = blocks_of(X, 50)
        centres, _ = Lloyd(SerialEngine(), X, max_iter=1).run(blocks, start)
        assert {tuple(row) for row in centres[3:].tolist()} <= {tuple(row) for row in X.tolist()}
        later, _ = Lloyd(SerialEngine(), X, max_iter=10).run(blocks, start)
        counts = np.bincount(ref.squared_distances(X, later).argmin(axis=1), minlength=5)
        assert (counts > 0).all()
        # Where the blocks are a part of the rows, a centre may have its rows among the others.
        centres, _ = Lloyd(SerialEngine(), None, max_iter=5).run(blocks, start)
        np.testing.assert_array_equal(centres[3:], start[3:])
