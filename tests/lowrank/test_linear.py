"""The linear kernel and the shift that makes it non-negative."""

import numpy as np
import pytest
from scipy import sparse

import reference as ref
from biglp._engines import SerialEngine
from biglp._graph.linear import LinearFactor, negative_offsets
from helpers import blobs, blocks_of, model, settings_of, training_rows

STORAGE = {"dense": np.asarray, "csr": sparse.csr_matrix}


class TestLinear:
    def test_features_are_rows_shifted_to_be_non_negative(self):
        X, _, _ = blobs()
        X[:, 0] = np.abs(X[:, 0]) + 1
        factor = LinearFactor.fit(
            training_rows(blocks_of(X, 30)), settings_of(model(factor="linear")).graph
        )
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
        offsets = negative_offsets(SerialEngine(), blocks)
        np.testing.assert_array_equal(offsets, [0, 0, -3, 0, 0])
