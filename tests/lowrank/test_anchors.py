"""The anchor graph against the reference."""

import numpy as np
import pytest
from scipy import sparse

import reference as ref
from biglp._graph.anchors import NEAREST, AnchorFactor
from helpers import blobs

STORAGE = {"dense": np.asarray, "csr": sparse.csr_matrix}


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
        assert (Z.getnnz(axis=1) == NEAREST).all()
        assert Z.min() >= 0
        np.testing.assert_allclose(Z.sum(axis=1), 1.0, rtol=1e-6)
        mass = np.asarray(Z.sum(axis=0)).ravel()
        degrees = Z @ ((Z.T @ np.ones(200)) / np.where(mass > 0, mass, 1.0))
        np.testing.assert_allclose(degrees, 1.0, rtol=1e-6)

    def test_far_rows_do_not_underflow(self):
        L = np.eye(3, dtype="float32")
        Z = AnchorFactor(L, 1e-3, 2).features(np.array([[500, 1, 0]], dtype="float32"))
        np.testing.assert_allclose(Z.toarray(), [[1, 0, 0]])
