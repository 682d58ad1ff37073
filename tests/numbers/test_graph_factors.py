"""Kernels, the search for near landmarks, and each factor, against naive versions of themselves."""

from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import reference as ref
from biglp._core import NonFiniteRowsError, ParameterError, to_dense
from biglp._graph import FACTORS, nearest_landmarks
from helpers import blobs, model

TOLERANCE = {"float32": 1e-5, "float64": 1e-12}


DTYPES = ("float32", "float64")


def few_at_once():
    return mock.patch.multiple("biglp._graph.kernels", SEARCH_CELLS=40, SEARCH_ROWS=2)


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
        with few_at_once():
            columns, distances = nearest_landmarks(storage(X), L, count)
        squared = ref.squared_distances(X, L)
        found = np.take_along_axis(squared, columns, axis=1)
        np.testing.assert_allclose(found, np.sort(squared, axis=1)[:, :count], atol=1e-9)
        np.testing.assert_allclose(distances + (X**2).sum(axis=1)[:, None], found, atol=1e-9)
        assert all(len(set(row)) == count for row in columns.tolist())
        if kind == "grid":  # of equally near landmarks the first
            expected = np.argsort(squared, axis=1, kind="stable")[:, :count]
            np.testing.assert_array_equal(columns, expected)

    @pytest.mark.parametrize("dtype", DTYPES)
    @pytest.mark.parametrize("density", [0.05, 0.5])
    def test_landmarks_of_sparse_rows_may_be_sparse(self, density, dtype):
        X = sparse.random(60, 200, density, "csr", random_state=0).astype(dtype)
        landmarks = X[:30].toarray()
        with few_at_once():
            columns, values = nearest_landmarks(X[20:], landmarks, 3)
        expected, distances = nearest_landmarks(X[20:].toarray(), landmarks, 3)
        np.testing.assert_array_equal(columns, expected)
        np.testing.assert_allclose(values, distances, atol=TOLERANCE[dtype], rtol=TOLERANCE[dtype])


class TestAnchors:
    def test_far_rows_do_not_underflow(self):
        rows = np.array([[500, 1, 0]], dtype="float32")
        Z = FACTORS["anchors"](np.eye(3, dtype="float32"), 1e-3, 2).features(rows)
        np.testing.assert_allclose(Z.toarray(), [[1, 0, 0]])


class TestNystrom:
    @pytest.mark.parametrize("dtype", DTYPES)
    def test_eigenvalues_below_the_precision_of_the_rows_are_dropped(self, dtype):
        line = np.linspace(0, 1, 30, dtype=dtype)[:, None]
        factor = FACTORS["nystrom"](line, 1.0)
        values = np.linalg.eigvalsh(ref.gaussian_kernel(line, line, 1.0))
        cutoff = 30 * np.finfo(dtype).eps * values.max()
        assert factor.rank == (values > cutoff).sum() < 30
        assert np.isfinite(factor.features(line)).all()


FITTED = {
    "anchors": lambda X: FACTORS["anchors"](X[:9], 0.7, 2),
    "nystrom": lambda X: FACTORS["nystrom"](X[:9], 0.7),
    "linear": lambda X: FACTORS["linear"](X.min(axis=0)),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", FITTED)
def test_every_factor_is_rebuilt_from_its_state_and_finds_rows_that_are_not_finite(kind, dtype):
    X, _, _ = blobs(dtype=dtype)
    factor = FITTED[kind](X)
    again = FACTORS[kind].from_state(factor.state())
    np.testing.assert_array_equal(to_dense(again.features(X)), to_dense(factor.features(X)))
    assert again.describe() == factor.describe()
    for value in (np.nan, np.inf):
        X[1, 0] = value
        with pytest.raises(NonFiniteRowsError):
            factor.features(X[:3])


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_bandwidth_that_the_rows_cannot_resolve_is_refused(dtype):
    X, y, _ = blobs(dtype=dtype)
    for bad in (1e-200, 1e200):
        with pytest.raises(ParameterError, match=rf"bandwidth=.*{dtype}.*use 'auto'"):
            model(bandwidth=bad).fit(X, y)
        params = {"bandwidth_factor": bad}
        with pytest.raises(ParameterError, match=r"makes a bandwidth of .* give a factor near"):
            model(bandwidth="auto", factor_params=params).fit(X, y)
    for value in (0, "wide", float("nan")):
        with pytest.raises(ParameterError, match=r"bandwidth_factor=.* finite number above 0"):
            model(bandwidth="auto", factor_params={"bandwidth_factor": value}).fit(X, y)
    once, twice = (
        model(bandwidth="auto", factor_params={"bandwidth_factor": factor}).fit(X, y)
        for factor in (0.5, 1.0)
    )
    assert twice.report_["bandwidth"] == pytest.approx(2 * once.report_["bandwidth"])
