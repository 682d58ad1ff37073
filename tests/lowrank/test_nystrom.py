"""The Nyström factor against the exact kernel."""

import numpy as np
import pytest

import reference as ref
from biglp._core.arrays import to_dense
from biglp._graph.nystrom import NystromFactor, eigenvalue_cutoff
from helpers import blobs

DTYPES = ("float32", "float64")


def graph_of(factor, X):
    F = to_dense(factor.features(X))
    F = F if factor.mixing is None else F @ factor.mixing
    return F @ F.T


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
