"""One random order of the rows: smaller samples are parts of larger ones, each row is read once."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy import sparse

from biglp import LowRankLabelPropagation
from biglp._rows import Sample, Source, as_source
from biglp._transforms import Chain, Project, Scale
from helpers import blobs

N_ROWS = 30_000


class CountedRows(Source):
    """Rows in memory, of which it is known how often each was read."""

    def __init__(self, rows):
        self.inner = as_source(rows)
        self.n_rows, self.n_features = rows.shape
        self.dtype, self.name = rows.dtype, "counted rows"
        self.is_sparse = self.inner.is_sparse
        self.reads = np.zeros(self.n_rows, dtype=int)

    def read(self, start, stop):
        self.reads[start:stop] += 1
        return self.inner.read(start, stop)

    def take(self, indices):
        self.reads[indices] += 1
        return self.inner.take(indices)


def rows_of(kind="dense", width=6):
    rows = np.random.default_rng(0).normal(size=(N_ROWS, width)).astype(np.float32)
    return rows if kind == "dense" else sparse.csr_matrix(np.where(rows > 1.0, rows, 0.0))


def sample_of(rows, largest=25_000, seed=3, chain=None):
    source = rows if isinstance(rows, Source) else as_source(rows)
    return Sample(source, np.dtype(np.float32), seed, largest, chain)


def dense(rows):
    return rows.toarray() if sparse.issparse(rows) else rows


@pytest.mark.parametrize("n_rows", [1, 2, 5, 63, 64, 65, 3000])
def test_the_order_has_every_row_once(n_rows):
    order = Sample(as_source(np.zeros((n_rows, 1), np.float32)), np.dtype(np.float32), 1).order
    np.testing.assert_array_equal(np.sort(order), np.arange(n_rows))


def test_the_order_depends_on_the_seed_and_not_on_the_largest_sample():
    rows = as_source(np.zeros((200_000, 1), np.float32))
    small, large = (sample_of(rows, largest) for largest in (0, 150_000))
    np.testing.assert_array_equal(small.order, large.order[: len(small.order)])
    assert (small.order != sample_of(rows, 0, seed=4).order).any()


def test_every_row_is_as_likely_to_be_first():
    rows = as_source(np.zeros((20, 1), np.float32))
    first = np.concatenate([sample_of(rows, 0, seed).order[:5] for seed in range(2000)])
    assert np.abs(np.bincount(first, minlength=20) / 500 - 1.0).max() < 0.2


@pytest.mark.parametrize("kind", ["dense", "csr"])
def test_smaller_samples_are_parts_of_larger_ones_and_rows_are_read_once(kind):
    source = CountedRows(rows_of(kind))
    sample = sample_of(source)
    for n in (2000, 25_000, 20_000, 500):
        expected = dense(source.inner.take(sample.rows(n)))
        np.testing.assert_array_equal(dense(sample.prepared(n)), expected)
        assert set(sample.rows(n // 2)) < set(sample.rows(n))
    assert source.reads.max() == 1
    assert source.reads.sum() == 25_000


@pytest.mark.parametrize("asked", [(2000, 25_000), (25_000, 2000), (10_000, 2000, 25_000)])
def test_rows_have_the_same_bits_whoever_asks_first(asked):
    rows = rows_of(width=300)
    chain = Chain([Scale("standard").fit(rows, None), Project(20, 0)]).fit(rows[:3000], None)
    straight = sample_of(rows, chain=chain)
    expected = straight.prepared(25_000).copy()
    sample = sample_of(rows, chain=chain)
    for n in asked:
        first = np.isin(straight.rows(25_000), sample.rows(n))
        np.testing.assert_array_equal(sample.prepared(n), expected[first])


@pytest.mark.parametrize("kind", ["dense", "csr"])
def test_what_only_the_landmarks_need_is_let_go(kind):
    source = CountedRows(rows_of(kind))
    sample = sample_of(source)
    sample.n_kept = 4000
    before = dense(sample.prepared(4000))
    sample.prepared(25_000)
    sample.let_go()
    np.testing.assert_array_equal(dense(sample.prepared(4000)), before)
    assert source.reads.max() == 1
    assert sample.keeps(4000)
    assert not sample.keeps(4001)
    # Blocks that had to be made smaller ask for all of it again.
    assert dense(sample.prepared(25_000)).shape[0] == 25_000
    np.testing.assert_array_equal(dense(sample.prepared(4000)), before)


def test_chosen_rows_are_kept_and_others_read():
    source = as_source(rows_of())
    sample = sample_of(source)
    sample.n_kept = 2000
    chosen = np.arange(0, 300, 3)
    assert sample.take(chosen) is None
    sample.remember(chosen, source.take(chosen))
    np.testing.assert_array_equal(sample.take(chosen[5:9]), source.take(chosen[5:9]))
    assert sample.take(np.array([0, 1])) is None


def test_a_pickled_sample_has_no_rows_and_draws_the_same():
    sample = sample_of(rows_of())
    before = sample.prepared(2000)
    again = pickle.loads(pickle.dumps(sample))
    assert again._prepared is None
    np.testing.assert_array_equal(again.prepared(2000), before)


def test_a_fit_reads_its_sample_once():
    X, y, _ = blobs(n=3000, features=5, dtype="float32")
    source = CountedRows(X)
    labels = np.full(3000, -1)
    labels[:90] = y[:90]
    taken = []
    source.take = lambda rows: taken.append(len(rows)) or CountedRows.take(source, rows)
    model = LowRankLabelPropagation(engine="serial").fit(source, labels)
    assert taken == [3000]
    assert (model.transduction_ >= 0).all()
