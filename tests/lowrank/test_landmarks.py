"""Landmarks of every kind: chosen, given, refused, and thousands of them."""

import numpy as np
import pytest
from scipy import sparse

import reference as ref
from biglp._core.errors import BadRowsError, LandmarkWarning, NonFiniteRowsError, ParameterError
from biglp._engines import SerialEngine, ThreadEngine
from biglp._graph import landmarks
from biglp._graph.landmarks import choose_landmarks, landmark_spacing
from helpers import blobs, blocks_of, training_rows

DTYPES = ("float32", "float64")


def landmarks_for(X, strategy, k=10, seed=0, rows_each=50, engine=None):
    rows = training_rows(blocks_of(X, rows_each), engine, seed)
    return choose_landmarks(rows, strategy, k)


class TestLandmarks:
    def test_random_landmarks_are_distinct_rows(self):
        X, _, _ = blobs()
        L = landmarks_for(X, "random", k=50)
        rows = {tuple(row) for row in X.tolist()}
        assert len(L) == 50
        assert {tuple(row) for row in L.tolist()} <= rows
        assert len(np.unique(L, axis=0)) == 50

    @pytest.mark.parametrize("strategy", ["random", "kmeans", "kmeans-full"])
    def test_landmarks_depend_on_the_seed_only(self, strategy):
        X, _, _ = blobs()
        first = landmarks_for(X, strategy, seed=1)
        for rows_each, engine in (
            (1, SerialEngine()),
            (7, ThreadEngine(5)),
            (200, ThreadEngine(2)),
        ):
            again = landmarks_for(X, strategy, seed=1, rows_each=rows_each, engine=engine)
            np.testing.assert_allclose(again, first, rtol=1e-12, atol=1e-12)
        assert not np.array_equal(landmarks_for(X, strategy, seed=2), first)

    @pytest.mark.parametrize("strategy", ["random", "kmeans", "kmeans-full"])
    def test_sparse_rows_give_the_landmarks_of_dense_rows(self, strategy):
        X, _, _ = blobs()
        dense = landmarks_for(X, strategy)
        from_sparse = landmarks_for(sparse.csr_matrix(X), strategy)
        assert isinstance(from_sparse, np.ndarray)
        np.testing.assert_allclose(from_sparse, dense, atol=1e-10)

    @pytest.mark.parametrize("strategy", ["random", "kmeans", "kmeans-full"])
    def test_more_landmarks_than_rows_warns_and_uses_the_rows(self, strategy):
        X, _, _ = blobs(n=12)
        with pytest.warns(LandmarkWarning, match=r"n_landmarks=30 .* 12 rows .* smaller"):
            L = landmarks_for(X, strategy, k=30)
        assert len(L) == 12
        found = {tuple(row) for row in np.round(L, 9).tolist()}
        assert found == {tuple(row) for row in np.round(X, 9).tolist()}

    @pytest.mark.parametrize("strategy", ["random", "kmeans", "kmeans-full"])
    def test_repeated_rows_give_distinct_landmarks(self, strategy):
        X = np.repeat(np.random.default_rng(0).normal(size=(4, 3)), 25, axis=0)
        L = landmarks_for(X, strategy, k=20)
        assert len(np.unique(L, axis=0)) == len(L) <= 20
        assert len(L) >= (1 if strategy == "random" else 4)
        # Every landmark is one of the four points, up to the rounding of a mean.
        assert ref.squared_distances(L, X).min(axis=1).max() < 1e-20

    def test_full_and_sampled_kmeans_are_the_same_on_few_rows(self):
        X, _, _ = blobs()  # fewer rows than the sample holds, so the sample is all of them
        np.testing.assert_allclose(
            landmarks_for(X, "kmeans"), landmarks_for(X, "kmeans-full"), atol=1e-10
        )

    def test_sampled_kmeans_is_nearly_as_good_as_full_kmeans(self):
        X, _, _ = blobs(n=5000, features=4)  # five times the rows that the sample holds
        inertia = {
            strategy: ref.squared_distances(X, landmarks_for(X, strategy, k=10)).min(axis=1).sum()
            for strategy in ("kmeans", "kmeans-full", "random")
        }
        assert inertia["kmeans"] < 1.05 * inertia["kmeans-full"]
        assert inertia["kmeans-full"] < 0.9 * inertia["random"]

    def test_given_landmarks_are_used_as_they_are_but_once_each(self):
        X, _, _ = blobs()
        L = landmarks_for(X, X[[5, 3, 5, 9]])
        np.testing.assert_array_equal(L, X[[5, 3, 9]])

    @pytest.mark.parametrize(
        ("given", "error", "message"),
        [
            (np.ones((3, 4)), ParameterError, r"landmarks has 4 features, but X has 5"),
            ([[np.nan] * 5], BadRowsError, r"landmarks holds NaN or infinity"),
            ("kmean", ParameterError, r"landmarks='kmean' is not known; use one of kmeans"),
            (7, ParameterError, r"landmarks=7 .* array of shape .*two-dimensional"),
            (None, ParameterError, r"landmarks=None .* kmeans-full, random or an array"),
            ([["a"] * 5], ParameterError, r"landmarks=.* must hold real numbers"),
            ([[1e300] * 5], BadRowsError, r"infinity in float32"),
        ],
    )
    def test_landmarks_that_cannot_be_used_are_refused(self, given, error, message):
        with pytest.raises(error, match=message):
            landmarks_for(blobs(dtype="float32")[0], given)

    @pytest.mark.parametrize("strategy", ["random", "kmeans", "kmeans-full"])
    def test_rows_that_are_not_finite_are_found_out(self, strategy):
        X, _, _ = blobs()
        X[::3, 2] = np.nan
        with pytest.raises(NonFiniteRowsError):
            landmarks_for(X, strategy, k=100)

    @pytest.mark.parametrize("neighbour", [1, 3])
    def test_spacing_is_the_distance_to_a_near_landmark(self, neighbour):
        X, _, _ = blobs()
        L = X[:20] + 0.1
        squared = np.sort(ref.squared_distances(X, L), axis=1)[:, neighbour - 1]
        assert landmark_spacing(X, L, neighbour) == pytest.approx(np.sqrt(squared.mean()))

    @pytest.mark.parametrize("dtype", DTYPES)
    def test_spacing_is_not_rounding_noise_when_rows_sit_on_landmarks(self, dtype):
        X, _, _ = blobs(n=40, dtype=dtype)
        X += 5
        squared = np.sort(ref.squared_distances(X, X), axis=1)[:, 1]
        found = landmark_spacing(X, X, 1)
        assert found == pytest.approx(np.sqrt(squared.mean()), rel=1e-4)

    def test_spacing_of_identical_rows_is_one(self):
        assert landmark_spacing(np.ones((5, 2)), np.ones((1, 2)), 3) == 1.0


class TestManyLandmarks:
    @pytest.mark.parametrize("storage", [np.asarray, sparse.csr_matrix])
    def test_many_landmarks_are_nearly_as_good_for_less_work(self, storage, monkeypatch):
        X = np.random.default_rng(0).normal(size=(3000, 4)).astype(np.float32)
        blocks = blocks_of(storage(X), 500)

        def choose(engine, blocks=blocks):
            return landmarks.choose_landmarks(training_rows(blocks, engine), "kmeans", 100)

        visited = [0, 0]

        def squares(centres):
            return ref.squared_distances(X, centres).min(axis=1).sum()

        class Counting(SerialEngine):
            def sum_blocks(self, func, blocks, label="sum"):
                visited[0] += sum(block.n_rows for block in blocks)
                return super().sum_blocks(func, blocks, label)

        monkeypatch.setattr(landmarks, "FEWEST_ROWS_PER_LANDMARK", len(X))
        usual = squares(choose(Counting()))
        visited = [0, visited[0]]
        monkeypatch.setattr(landmarks, "FEWEST_ROWS_PER_LANDMARK", 2)
        monkeypatch.setattr(landmarks, "FEWEST_ROWS", 0)
        quick = choose(Counting())
        assert squares(quick) < 1.06 * usual
        assert visited[0] < 0.4 * visited[1]
        other = choose(ThreadEngine(3), blocks=blocks_of(storage(X), 500))
        assert other.tobytes() == quick.tobytes()
