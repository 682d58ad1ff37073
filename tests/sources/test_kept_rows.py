"""Projected rows are kept while they are few, and are the same as those that are made anew."""

import pickle

import numpy as np
import pytest

from biglp import LowRankLabelPropagation
from biglp._rows import PreparedRows, Source, as_source
from biglp._rows import prepared as kept
from biglp._transforms import Chain, Project
from helpers import blobs

PROJECTION = np.random.default_rng(0).normal(size=(6, 2))


class Counting(Source):
    """A source that counts the rows it hands out."""

    def __init__(self, X):
        self.inner, self.n_read = as_source(X), 0
        self.n_rows, self.n_features = X.shape
        self.dtype = X.dtype

    def read(self, start, stop):
        self.n_read += stop - start
        return self.inner.read(start, stop)

    def take(self, indices):
        self.n_read += len(indices)
        return self.inner.take(indices)


def prepared(projection=PROJECTION):
    X = np.random.default_rng(1).normal(size=(100, 6)).astype(np.float32)
    counting = Counting(X)
    return PreparedRows(counting, X.dtype, Chain([Project(directions=projection)])), counting, X


def test_rows_are_projected_once():
    source, counting, X = prepared()
    expected = X @ PROJECTION.astype(np.float32)
    for start, stop in ((0, 40), (0, 40), (30, 100), (10, 90), (0, 100)):
        np.testing.assert_allclose(source.read(start, stop), expected[start:stop], rtol=1e-5)
    assert counting.n_read == 110
    np.testing.assert_allclose(source.take(np.array([3, 99])), expected[[3, 99]], rtol=1e-5)
    assert counting.n_read == 110


def test_rows_that_are_missing_are_made():
    source, counting, X = prepared()
    source.read(0, 10)
    found = source.take(np.array([5, 50]))
    np.testing.assert_allclose(found, X[[5, 50]] @ PROJECTION.astype(np.float32), rtol=1e-5)
    assert counting.n_read == 12


def test_kept_rows_cannot_be_changed_by_accident():
    source, _, _ = prepared()
    with pytest.raises(ValueError, match="read-only"):
        source.read(0, 10)[0, 0] = 1.0


def test_rows_as_they_are_and_too_many_rows_are_not_kept(monkeypatch):
    source, counting, _ = prepared(projection=None)
    source.read(0, 10)
    source.read(0, 10)
    assert counting.n_read == 20
    monkeypatch.setattr(kept, "KEPT_BYTES", 799)  # 100 rows of 2 numbers take 800
    source, counting, _ = prepared()
    source.read(0, 10)
    source.read(0, 10)
    assert counting.n_read == 20


def test_they_are_not_sent_with_the_source():
    X = np.random.default_rng(1).normal(size=(100, 6)).astype(np.float32)
    source = PreparedRows(as_source(X), X.dtype, Chain([Project(directions=PROJECTION)]))
    before = len(pickle.dumps(source))
    expected = source.read(0, 100)
    assert len(pickle.dumps(source)) == before
    again = pickle.loads(pickle.dumps(source))
    np.testing.assert_array_equal(again.read(0, 100), expected)


def test_labels_are_the_same_without_keeping(monkeypatch):
    X, y, _ = blobs(n=600, classes=3, features=5, labelled=30)
    rng = np.random.default_rng(2)
    X = (X @ rng.normal(size=(5, 250)) + 0.01 * rng.normal(size=(600, 250))).astype(np.float32)
    with_them = LowRankLabelPropagation().fit(X, y)
    assert with_them.report_["directions"] == 40
    monkeypatch.setattr(kept, "KEPT_BYTES", 0)
    without = LowRankLabelPropagation().fit(X, y)
    np.testing.assert_array_equal(with_them.transduction_, without.transduction_)
