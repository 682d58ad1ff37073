"""Which rows to label next: the same on every engine and for any cut."""

import numpy as np
import pytest

from biglp._core import ParameterError
from biglp._fit import choose_rows as _suggest
from helpers import blobs, fitted_blobs, model

FACTORS = ("auto", "anchors", "nystrom", "glnp", "linear")


pytestmark = pytest.mark.filterwarnings("ignore::biglp._core.errors.BigLPWarning")


@pytest.mark.parametrize("share", [0.001, 0.1, 0.5, 0.9])
def test_scale_gives_the_share_of_candidates(share):
    doubts = np.random.default_rng(0).random(1000) ** 3 + 1e-3
    chances = np.minimum(1.0, _suggest.sieve_scale(doubts, share) * doubts**_suggest.SIEVE_POWER)
    assert chances.mean() == pytest.approx(share)


@pytest.mark.parametrize("factor", FACTORS)
def test_unlabelled_rows_each_once(factor):
    found, _, y, _ = fitted_blobs(factor)
    rows = found.suggest(15)
    assert len(np.unique(rows)) == 15
    assert (y[rows] == -1).all()
    np.testing.assert_array_equal(rows, found.suggest(15))


@pytest.mark.parametrize("factor", ["auto", "nystrom", "glnp"])
def test_same_rows_on_every_engine(engine, factor, monkeypatch):
    monkeypatch.setattr(_suggest, "CANDIDATES", 40)  # so that not every row is a candidate
    monkeypatch.setattr(_suggest, "POOL_SAMPLE", 100)
    expected = fitted_blobs(factor)[0].suggest(8)
    np.testing.assert_array_equal(fitted_blobs(factor, engine=engine)[0].suggest(8), expected)


@pytest.mark.parametrize("factor", ["auto", "nystrom"])
def test_same_rows_for_any_cut(factor, monkeypatch):
    monkeypatch.setattr(_suggest, "CANDIDATES", 40)
    monkeypatch.setattr(_suggest, "POOL_SAMPLE", 100)
    expected = fitted_blobs(factor)[0].suggest(8)
    for rows in (13, 400):
        np.testing.assert_array_equal(fitted_blobs(factor, rows=rows)[0].suggest(8), expected)


def test_doubtful_rows_come_first():
    found, *_ = fitted_blobs()
    doubts = _suggest.uncertainty(found.label_distributions_)
    assert doubts[found.suggest(20)].mean() > 2 * doubts.mean()


def test_more_than_there_are():
    found, _, y, _ = fitted_blobs()
    np.testing.assert_array_equal(np.sort(found.suggest(10_000)), np.flatnonzero(y == -1))


def test_nothing_left_to_label():
    X, _, truth = blobs(n=60)
    assert model().fit(X, truth).suggest(3).shape == (0,)


def test_from_other_rows():
    found, X, *_ = fitted_blobs()
    other = np.random.default_rng(5).permutation(X)[:100]
    rows = found.suggest(7, other)
    assert len(np.unique(rows)) == 7
    assert rows.max() < 100
    with pytest.raises(ValueError, match="features"):
        found.suggest(3, other[:, :2])


@pytest.mark.parametrize("n", [0, -1, 2.5, "ten"])
def test_number_is_checked(n):
    with pytest.raises(ParameterError, match="n="):
        fitted_blobs()[0].suggest(n)
