"""Kernels and the search for the nearest landmarks, each against a naive version of itself."""

from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import reference as ref
from biglp._core.arrays import smallest, squared_norms
from biglp._core.errors import NonFiniteRowsError, ParameterError
from biglp._graph import kernels
from biglp._graph.kernels import (
    check_bandwidth,
    distances_to,
    gaussian,
    gaussian_matrix,
    scatter,
)
from helpers import blobs

TOLERANCE = {"float32": 1e-5, "float64": 1e-12}
DTYPES = ("float32", "float64")
STORAGE = {"dense": np.asarray, "csr": sparse.csr_matrix}


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
        found = distances_to(X[:7], rows)(rows) + squared_norms(rows)[:, None]
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


class TestSearch:
    @given(
        seed=st.integers(0, 2**32 - 1),
        b=st.integers(1, 40),
        k=st.integers(1, 60),
        count=st.integers(1, 4),
        kind=st.sampled_from(["random", "clustered", "repeated", "grid"]),
        storage=st.sampled_from([np.asarray, sparse.csr_matrix]),
    )
    @settings(max_examples=100, deadline=None)
    def test_it_is_the_start_of_a_stable_sort(self, seed, b, k, count, kind, storage):
        rng = np.random.default_rng(seed)
        X, L = rng.normal(size=(b, 3)), rng.normal(size=(k, 3))
        if kind == "clustered":
            X, L = X + 50.0 * rng.integers(0, 3, (b, 1)), L + 50.0 * rng.integers(0, 3, (k, 1))
        elif kind == "repeated":
            L = L[rng.integers(0, k, k)]
            X = L[rng.integers(0, k, b)]
        elif kind == "grid":  # whole numbers: ties are exact
            X, L = np.round(X), np.round(L)
        count = min(count, k)
        with mock.patch.multiple(kernels, SEARCH_CELLS=40, SEARCH_ROWS=2):
            columns, distances = kernels.nearest_landmarks(storage(X), L, count)
        squared = ref.squared_distances(X, L)
        found = np.take_along_axis(squared, columns, axis=1)
        np.testing.assert_allclose(found, np.sort(squared, axis=1)[:, :count], atol=1e-9)
        np.testing.assert_allclose(distances + (X**2).sum(axis=1)[:, None], found, atol=1e-9)
        assert all(len(set(row)) == count for row in columns.tolist())
        if kind == "grid":  # of equally near landmarks the first
            expected = np.argsort(squared, axis=1, kind="stable")[:, :count]
            np.testing.assert_array_equal(columns, expected)

    def test_it_holds_no_more_distances_than_it_says(self):
        sizes = []

        def spy(rows, matrix):
            sizes.append(len(rows))
            return products(rows, matrix)

        products = kernels.products
        rng = np.random.default_rng(0)
        X, L = rng.normal(size=(100, 3)), rng.normal(size=(50, 3))
        with (
            mock.patch.multiple(kernels, SEARCH_CELLS=500, SEARCH_ROWS=2),
            mock.patch.object(kernels, "products", spy),
        ):
            kernels.nearest_landmarks(X, L, 2)
            assert kernels.searched_at_once(50) == 10
            assert kernels.searched_at_once(10**6) == 2
        assert sizes == [10] * 10


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("density", [0.05, 0.5])
def test_first_hour_7_landmarks_of_sparse_rows_may_be_sparse(density, dtype):
    X = sparse.random(60, 200, density, "csr", random_state=0).astype(dtype)
    landmarks = X[:30].toarray()
    with mock.patch.multiple(kernels, SEARCH_CELLS=40, SEARCH_ROWS=2):
        columns, values = kernels.nearest_landmarks(X[20:], landmarks, 3)
    expected, distances = kernels.nearest_landmarks(X[20:].toarray(), landmarks, 3)
    np.testing.assert_array_equal(columns, expected)
    np.testing.assert_allclose(values, distances, atol=TOLERANCE[dtype], rtol=TOLERANCE[dtype])
