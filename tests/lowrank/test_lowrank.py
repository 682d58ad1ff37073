"""Kernels, landmarks, k-means and factors, each against a naive version of itself."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.cluster import kmeans_plusplus

import reference as ref
from biglp._core.arrays import smallest, to_dense
from biglp._core.errors import BadRowsError, LandmarkWarning, ParameterError
from biglp._engines import SerialEngine, ThreadEngine
from biglp._lowrank import FACTORS
from biglp._lowrank.anchors import AnchorFactor
from biglp._lowrank.base import NonFiniteRowsError
from biglp._lowrank.kernels import (
    check_bandwidth,
    gaussian,
    gaussian_matrix,
    relative_distances,
    scatter,
    squared_norms,
)
from biglp._lowrank.kmeans import kmeans_start, lloyd
from biglp._lowrank.landmarks import choose_landmarks, landmark_spacing
from biglp._lowrank.linear import LinearFactor
from biglp._lowrank.nystrom import NystromFactor, eigenvalue_cutoff
from biglp._lowrank.sampling import row_noise, sample_indices
from biglp._lowrank.shift import column_minimums, negative_offsets
from helpers import blobs, blocks_of

TOLERANCE = {"float32": 1e-5, "float64": 1e-12}
DTYPES = ("float32", "float64")
STORAGE = {"dense": np.asarray, "csr": sparse.csr_matrix}


def landmarks_for(X, strategy, k=10, seed=0, rows_each=50, engine=None):
    blocks = blocks_of(X, rows_each)
    return choose_landmarks(
        engine or SerialEngine(), blocks[0].source, blocks, strategy=strategy, k=k, seed=seed
    )


def naive_lloyd(X, centres, iterations):
    for _ in range(iterations):
        nearest_centre = ref.squared_distances(X, centres).argmin(axis=1)
        centres = np.array([X[nearest_centre == j].mean(axis=0) for j in range(len(centres))])
    return centres


def graph_of(factor, X):
    F = to_dense(factor.features(X))
    F = F if factor.mixing is None else F @ factor.mixing
    return F @ F.T


class TestKernels:
    @pytest.mark.parametrize("storage", STORAGE)
    @pytest.mark.parametrize("dtype", DTYPES)
    def test_gaussian(self, dtype, storage):
        X, _, _ = blobs(dtype=dtype)
        found = gaussian(STORAGE[storage](X), X[:7], 1.3)
        assert found.dtype == dtype
        np.testing.assert_allclose(found, ref.gaussian_kernel(X, X[:7], 1.3), atol=TOLERANCE[dtype])

    def test_gaussian_never_exceeds_one_by_more_than_rounding(self):
        rng = np.random.default_rng(0)
        rows = (rng.normal(size=(50, 4)) * 10.0 ** rng.integers(-3, 6, (50, 1))).astype("float32")
        kernel = gaussian(rows, rows, 0.01)
        assert np.isfinite(kernel).all()
        assert kernel.max() <= 1.001

    @pytest.mark.parametrize("value", [np.nan, np.inf, 1e30])
    def test_rows_that_cannot_be_squared_are_found_out(self, value):
        rows = np.ones((3, 2), dtype="float32")
        rows[1, 0] = value
        with pytest.raises(NonFiniteRowsError):
            gaussian(rows, np.ones((1, 2), dtype="float32"), 1.0)

    def test_gaussian_matrix_is_symmetric_with_ones_on_the_diagonal(self):
        X, _, _ = blobs(dtype="float32")
        G = gaussian_matrix(X[:30], 0.8)
        assert G.dtype == np.float64
        np.testing.assert_array_equal(np.diag(G), 1.0)
        np.testing.assert_allclose(G, G.T, atol=1e-15)
        np.testing.assert_allclose(G, ref.gaussian_kernel(X[:30], X[:30], 0.8), atol=1e-12)

    @pytest.mark.parametrize("storage", STORAGE)
    def test_relative_distances_and_norms(self, storage):
        X, _, _ = blobs()
        rows = STORAGE[storage](X)
        found = relative_distances(rows, X[:7]) + squared_norms(rows)[:, None]
        np.testing.assert_allclose(found, ref.squared_distances(X, X[:7]), atol=1e-10)

    @pytest.mark.parametrize("count", [1, 3, 9])
    def test_nearest_is_the_start_of_a_sort(self, count):
        distances = np.random.default_rng(0).random((40, 9))
        columns, values = smallest(distances.copy(), count)
        order = np.argsort(distances, axis=1)[:, :count]
        np.testing.assert_array_equal(columns, order)
        np.testing.assert_array_equal(values, np.take_along_axis(distances, order, axis=1))

    def test_scatter(self):
        matrix = scatter(np.array([[2, 0], [1, 2]]), np.array([[0.7, 0.3], [0.6, 0.4]]), 3)
        np.testing.assert_array_equal(matrix.toarray(), [[0.3, 0, 0.7], [0, 0.6, 0.4]])

    @pytest.mark.parametrize("dtype", DTYPES)
    def test_bandwidths_that_cannot_be_resolved_are_refused(self, dtype):
        rows = np.full((5, 4), 10.0, dtype=dtype)
        narrowest = float(2 * np.sqrt(np.finfo(dtype).eps) * 20)
        assert check_bandwidth(1.01 * narrowest, rows) == 1.01 * narrowest
        for bad in (0.99 * narrowest, 1e-200, 1e200):
            with pytest.raises(ParameterError, match=rf"bandwidth=.*{dtype}.*use 'auto'"):
                check_bandwidth(bad, rows)


class TestSampling:
    @pytest.mark.parametrize("size", [1, 10, 99, 100, 500])
    def test_indices_are_distinct_sorted_and_within(self, size):
        indices = sample_indices(100, size, seed=3)
        assert len(indices) == min(size, 100)
        assert (np.diff(indices) > 0).all()
        assert indices.min() >= 0
        assert indices.max() < 100

    def test_every_row_is_as_likely(self):
        drawn = np.concatenate([sample_indices(20, 5, seed) for seed in range(2000)])
        counts = np.bincount(drawn, minlength=20)
        assert abs(counts / 500 - 1).max() < 0.25  # five standard deviations

    @pytest.mark.parametrize("cut", [1, 7, 1000, 1024, 2500])
    def test_noise_belongs_to_rows_and_not_to_blocks(self, cut):
        whole = row_noise(5, 0, 2500, 3)
        parts = [row_noise(5, start, min(start + cut, 2500), 3) for start in range(0, 2500, cut)]
        np.testing.assert_array_equal(np.concatenate(parts), whole)
        assert 0 <= whole.min() < whole.max() < 1
        assert len(np.unique(whole)) == whole.size


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


class TestKMeans:
    @pytest.mark.parametrize("storage", STORAGE)
    @pytest.mark.parametrize("rows_each", [200, 13])
    def test_lloyd_is_the_textbook_iteration(self, rows_each, storage):
        X, _, _ = blobs()
        blocks = blocks_of(STORAGE[storage](X), rows_each)
        for iterations in (1, 4):
            centres, n_iter = lloyd(
                ThreadEngine(2), blocks, X[:6], X[:6], max_iter=iterations, tol=0
            )
            assert n_iter == iterations
            np.testing.assert_allclose(centres, naive_lloyd(X, X[:6], iterations), atol=1e-10)

    def test_lloyd_stops_when_nothing_is_gained(self):
        X, _, _ = blobs()
        _, n_iter = lloyd(SerialEngine(), blocks_of(X, 50), X[:3], X[:3], max_iter=200, tol=1e-3)
        assert 1 < n_iter < 200

    def test_empty_centres_are_put_on_rows(self):
        X, _, _ = blobs()
        start = np.vstack([X[:3], np.full((2, 5), 1e6)])  # no row is nearest to the last two
        centres, _ = lloyd(SerialEngine(), blocks_of(X, 50), start, X, max_iter=1)
        assert np.isfinite(centres).all()
        assert {tuple(row) for row in centres[3:].tolist()} <= {tuple(row) for row in X.tolist()}
        later, _ = lloyd(SerialEngine(), blocks_of(X, 50), start, X, max_iter=10)
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


class TestNystrom:
    @pytest.mark.parametrize("sigma", [0.2, 1.5])
    def test_the_graph_is_exact_between_landmarks(self, sigma):
        X, _, _ = blobs()
        factor = NystromFactor(X[:15], sigma)
        expected = ref.gaussian_kernel(X[:15], X[:15], sigma)
        np.testing.assert_allclose(graph_of(factor, X[:15]), expected, atol=1e-8)

    def test_narrow_kernels_leave_the_mixing_to_the_sums(self):
        X, _, _ = blobs()
        assert NystromFactor(X[:15], 0.2).mixing is not None
        assert NystromFactor(X[:15], 5.0).mixing is None

    def test_repeated_landmarks_lower_the_effective_rank(self):
        X, _, _ = blobs()
        twice = np.vstack([X[:10], X[:10]])
        factor = NystromFactor(twice, 0.5)
        assert factor.rank == 10
        assert factor.describe()["landmarks"] == 20
        single = NystromFactor(X[:10], 0.5)
        np.testing.assert_allclose(graph_of(factor, X), graph_of(single, X), atol=1e-8)

    @pytest.mark.parametrize("dtype", DTYPES)
    def test_eigenvalues_below_the_cut_off_are_dropped(self, dtype):
        line = np.linspace(0, 1, 30, dtype=dtype)[:, None]
        factor = NystromFactor(line, 1.0)
        values = np.linalg.eigvalsh(ref.gaussian_kernel(line, line, 1.0))
        kept = values > eigenvalue_cutoff(30, np.dtype(dtype)) * values.max()
        assert factor.rank == kept.sum() < 30
        assert np.isfinite(factor.features(line)).all()

    def test_cut_off_follows_the_precision(self):
        assert eigenvalue_cutoff(10, np.dtype("float32")) == pytest.approx(1.19e-6, rel=0.01)
        assert eigenvalue_cutoff(10, np.dtype("float64")) == pytest.approx(2.22e-15, rel=0.01)


class TestAnchors:
    @pytest.mark.parametrize("storage", STORAGE)
    @pytest.mark.parametrize("nearest_count", [1, 3, 100])
    def test_weights_are_those_of_the_reference(self, storage, nearest_count):
        X, _, _ = blobs()
        factor = AnchorFactor(X[:20], 0.8, nearest_count)
        Z = factor.features(STORAGE[storage](X)).toarray()
        np.testing.assert_allclose(
            Z, ref.anchor_weights(X, X[:20], 0.8, min(nearest_count, 20)), atol=1e-12
        )

    @pytest.mark.parametrize("sigma", [1e-3, 0.5, 1e3])
    def test_rows_add_up_to_one_and_degrees_are_one(self, sigma):
        X, _, _ = blobs(dtype="float32")
        Z = AnchorFactor(X[:20], sigma).features(X).astype(np.float64)
        assert (Z.getnnz(axis=1) == 3).all()
        assert Z.min() >= 0
        np.testing.assert_allclose(Z.sum(axis=1), 1.0, rtol=1e-6)
        mass = np.asarray(Z.sum(axis=0)).ravel()
        degrees = Z @ ((Z.T @ np.ones(200)) / np.where(mass > 0, mass, 1.0))
        np.testing.assert_allclose(degrees, 1.0, rtol=1e-6)

    def test_far_rows_do_not_underflow(self):
        L = np.eye(3, dtype="float32")
        Z = AnchorFactor(L, 1e-3, 2).features(np.array([[500, 1, 0]], dtype="float32"))
        np.testing.assert_allclose(Z.toarray(), [[1, 0, 0]])


class TestLinear:
    def test_features_are_rows_shifted_to_be_non_negative(self):
        X, _, _ = blobs()
        X[:, 0] = np.abs(X[:, 0]) + 1
        factor = LinearFactor.fit(SerialEngine(), blocks_of(X, 30))
        F = factor.features(X)
        np.testing.assert_allclose(F @ F.T, ref.linear_graph(X), atol=1e-10)
        assert F.min() == 0
        np.testing.assert_array_equal(F[:, 0], X[:, 0])
        np.testing.assert_allclose(factor.features(X[:3] - 1), F[:3] - 1, atol=1e-12)

    @pytest.mark.parametrize("storage", STORAGE)
    def test_minimums_over_blocks(self, storage):
        X, _, _ = blobs()
        X[X < 0.2] = 0
        X[7, 2] = -3
        blocks = blocks_of(STORAGE[storage](X), 30)
        np.testing.assert_array_equal(column_minimums(SerialEngine(), blocks), X.min(axis=0))
        offsets = negative_offsets(SerialEngine(), blocks)
        np.testing.assert_array_equal(offsets, [0, 0, -3, 0, 0])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", ["anchors", "nystrom", "linear"])
def test_a_factor_is_rebuilt_from_its_state(kind, dtype):
    X, _, _ = blobs(dtype=dtype)
    factor = {
        "anchors": lambda: AnchorFactor(X[:9], 0.7, 2),
        "nystrom": lambda: NystromFactor(X[:9], 0.7),
        "linear": lambda: LinearFactor(X.min(axis=0)),
    }[kind]()
    again = FACTORS[kind].from_state(factor.state())
    np.testing.assert_array_equal(to_dense(again.features(X)), to_dense(factor.features(X)))
    assert again.describe() == factor.describe()
    assert again.bytes_per_row(5, 4) == factor.bytes_per_row(5, 4) >= 4 * 5


def test_a_part_of_the_sample_does_not_move_landmarks_of_rows_outside_it():
    X = np.random.default_rng(0).normal(size=(200, 2))
    start = np.array([[0.0, 0.0], [50.0, 50.0]])  # no row is near the second
    part = blocks_of(X, 64)
    centres, _ = lloyd(SerialEngine(), part, start, None, max_iter=5)
    np.testing.assert_array_equal(centres[1], start[1])
    moved, _ = lloyd(SerialEngine(), part, start, X[:3], max_iter=1)
    assert np.abs(moved[1]).max() < 10
