"""Leading directions, against the whole decomposition."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from biglp._transforms import Chain, Project
from biglp._transforms.project import leading_directions, principal_directions


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
    monkeypatch.setattr("biglp._transforms.project.COVARIANCE_FEATURES", 10)
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


def test_features_that_never_change_have_no_part(rows):
    wide = np.zeros((len(rows), 100), dtype=np.float32)
    places = np.sort(np.random.default_rng(1).permutation(100)[:60])
    wide[:, places] = rows
    wide[:, np.setdiff1d(np.arange(100), places)[:3]] = 7.0
    directions, share = principal_directions(wide, 0, 8)
    alone, expected = principal_directions(rows, 0, 8)
    np.testing.assert_allclose(directions[places], alone, atol=1e-6)
    assert np.count_nonzero(directions.any(axis=1)) == 60
    assert share == pytest.approx(expected)


def test_single_precision_finds_what_double_does(rows):
    directions, share = principal_directions(rows, 0, 8)
    exact, expected = principal_directions(rows.astype(np.float64), 0, 8)
    assert directions.dtype == np.float64
    across = directions - exact @ (exact.T @ directions)
    assert np.linalg.norm(across, 2) < 1e-4
    assert share == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("size", [1e-9, 1.0, 1e9])
def test_rows_of_few_dimensions_among_many_features(size):
    """ARPACK finds no more than the five that there are, and must not try for long."""
    rng = np.random.default_rng(0)
    rows = (rng.normal(size=(400, 5)) @ rng.normal(size=(5, 300)) * size).astype(np.float32)
    directions, share = principal_directions(rows, 0, 40)
    assert directions.shape == (300, 40)
    assert share == pytest.approx(1.0, abs=1e-4)
    centred = rows - rows.mean(axis=0)
    seen = centred @ directions @ directions.T
    np.testing.assert_allclose(seen, centred, atol=1e-4 * np.abs(centred).max())


def test_projected_only_where_few_directions_say_most(rows):
    few = Project().fit(np.hstack([rows[:, :2], np.zeros((300, 250), np.float32)]))
    assert few.directions is not None
    noise = np.random.default_rng(0).normal(size=(300, 250)).astype(np.float32)
    none = Project().fit(noise)
    assert none.apply(noise) is noise
    assert (none.width(250), none.embeds, Project(5).fit(noise).width(250)) == (250, False, 5)
    for project in (few, none):
        again = Chain.from_state(Chain([project]).state())
        assert again.describe() == project.describe()
