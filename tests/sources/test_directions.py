"""Leading directions, against the whole decomposition."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from biglp._sources.directions import leading_directions, principal_directions


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    falling = rng.normal(size=(300, 60)) * 0.8 ** np.arange(60)
    return (falling @ np.linalg.qr(rng.normal(size=(60, 60)))[0]).astype(np.float32)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_leading_directions_are_singular_vectors(rows, form):
    directions, lengths = leading_directions(form(rows), seed=0, count=6)
    _, values, vectors = np.linalg.svd(rows, full_matrices=False)
    np.testing.assert_allclose(lengths, values[:6], rtol=1e-3)
    np.testing.assert_allclose(np.abs(np.sum(directions * vectors[:6].T, axis=0)), 1.0, rtol=1e-2)
    np.testing.assert_allclose(directions.T @ directions, np.eye(6), atol=1e-4)


def test_rows_of_low_rank_have_zeros_left():
    rows = np.outer(np.arange(1.0, 41.0), np.arange(1.0, 31.0))
    directions, lengths = leading_directions(sparse.csr_matrix(rows), seed=0, count=5)
    assert np.isfinite(directions).all()
    assert lengths[0] == pytest.approx(np.linalg.norm(rows))
    np.testing.assert_allclose(rows @ directions @ directions.T, rows, rtol=1e-6)


def test_no_more_directions_than_rows(rows):
    assert leading_directions(rows[:4], seed=0, count=10)[0].shape == (60, 4)
    assert principal_directions(rows[:4], 0, 10)[0].shape == (60, 4)


def test_share_of_the_variance(rows):
    centred = rows - rows.mean(axis=0)
    values = np.linalg.svd(centred, compute_uv=False) ** 2
    _, share = principal_directions(rows, 0, 8)
    assert share == pytest.approx(values[:8].sum() / values.sum(), rel=1e-3)


def test_wide_rows_have_the_same_share(rows, monkeypatch):
    _, share = principal_directions(rows, 0, 8)
    monkeypatch.setattr("biglp._sources.directions.COVARIANCE_FEATURES", 10)
    assert principal_directions(rows, 0, 8)[1] == pytest.approx(share, rel=1e-2)


def test_rows_of_zeros_have_no_directions():
    """And nothing is divided by zero, which would be told as a warning of NumPy."""
    directions, lengths = leading_directions(sparse.csr_matrix((9, 5)), 0, 2)
    assert not directions.any()
    assert not lengths.any()


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("power", [-500, 700])
def test_the_size_of_rows_does_not_matter(rows, form, power):
    exact = rows.astype(np.float64)
    expected = principal_directions(form(exact), seed=0, count=3)
    found = principal_directions(form(np.ldexp(exact, power)), seed=0, count=3)
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-9)
    assert found[1] == pytest.approx(expected[1])
