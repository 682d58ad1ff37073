"""The leading eigenvectors of a graph: those of a dense decomposition, in bounded time."""

import numpy as np
from scipy import sparse

from biglp._fit.sample import DENSE_RANK, leading_eigenpairs


def test_small_graphs_are_taken_apart_exactly():
    features = np.random.default_rng(0).normal(size=(80, 20))
    values, vectors = leading_eigenpairs(features, 5)
    exact = np.linalg.eigvalsh(features.T @ features)[-5:]
    np.testing.assert_allclose(values, exact, rtol=1e-10)
    np.testing.assert_allclose(features.T @ features @ vectors, vectors * values, atol=1e-9)


def test_large_graphs_nearly_so():
    rng = np.random.default_rng(1)
    width = DENSE_RANK + 100
    sizes = 0.5 ** np.arange(width)
    features = np.linalg.qr(rng.normal(size=(700, width)))[0] * np.sqrt(sizes)
    values, vectors = leading_eigenpairs(features, 8)
    np.testing.assert_allclose(values[::-1], sizes[:8], rtol=1e-6)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(8), atol=1e-9)


def test_a_graph_of_many_parts():
    # Every part has the eigenvalue 1: more of them than are asked for, and no order among them.
    n_parts, each = DENSE_RANK + 50, 3
    rows = np.arange(n_parts * each)
    weights = np.full(len(rows), 1.0 / np.sqrt(each))
    features = sparse.csr_matrix((weights, (rows, rows // each)))
    values, vectors = leading_eigenpairs(features, 30)
    np.testing.assert_allclose(values, 1.0)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(30), atol=1e-9)


def test_more_features_than_rows():
    features = np.random.default_rng(2).normal(size=(30, 60))
    values, vectors = leading_eigenpairs(features, 40)
    exact = np.sort(np.linalg.svd(features, compute_uv=False) ** 2)
    np.testing.assert_allclose(values, exact, rtol=1e-8)
    np.testing.assert_allclose(features.T @ features @ vectors, vectors * values, atol=1e-7)
