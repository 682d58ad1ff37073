"""One random order of the rows: smaller samples are parts of larger ones, each row is read once."""

import numpy as np
import pytest
from scipy import sparse

from biglp._compiled import column_sums
from biglp._core import RowEntries, like, to_numpy
from biglp._rows import Sample, Source, as_source
from biglp._transforms import Chain, Project, Scale

N_ROWS = 30_000


class CountedRows(Source):
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


def sample_of(rows, largest=25_000, seed=3, chain=Chain()):  # noqa: B008
    source = rows if isinstance(rows, Source) else as_source(rows)
    return Sample(source, np.dtype(np.float32), seed, largest, chain or Chain())


def dense(rows):
    return rows.toarray() if sparse.issparse(rows) else rows


def test_the_order_has_every_row_once_depends_on_the_seed_and_prefers_nobody():
    for n_rows in (1, 2, 5, 63, 64, 65, 3000):
        order = sample_of(np.zeros((n_rows, 1), np.float32), 0).order
        np.testing.assert_array_equal(np.sort(order), np.arange(n_rows))
    rows = as_source(np.zeros((200_000, 1), np.float32))
    small, large = (sample_of(rows, largest) for largest in (0, 150_000))
    np.testing.assert_array_equal(small.order, large.order[: len(small.order)])
    assert (small.order != sample_of(rows, 0, seed=4).order).any()
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
    assert (source.reads.max(), source.reads.sum()) == (1, 25_000)
    # What only the landmarks need is let go.
    source = CountedRows(rows_of(kind))
    sample = sample_of(source)
    sample.n_kept = 4000
    before = dense(sample.prepared(4000))
    sample.prepared(25_000)
    sample.let_go()
    np.testing.assert_array_equal(dense(sample.prepared(4000)), before)
    assert source.reads.max() == 1
    assert (sample.keeps(4000), sample.keeps(4001)) == (True, False)
    # Blocks that had to be made smaller ask for all of it again.
    assert dense(sample.prepared(25_000)).shape[0] == 25_000
    np.testing.assert_array_equal(dense(sample.prepared(4000)), before)


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


# --------------------------------------------------------------------------------------------------
# Matrices with a few entries a row, as torch holds them, against the dense ones.


@pytest.mark.parametrize("rows_at_once", [8, 1000])
@pytest.mark.parametrize("dense_width", [1, 100])
def test_entries_of_rows_are_added_and_multiplied_like_dense_ones(
    monkeypatch, rows_at_once, dense_width
):
    torch = pytest.importorskip("torch")
    monkeypatch.setattr("biglp._core.arrays.ROWS_AT_ONCE", rows_at_once)
    monkeypatch.setattr("biglp._core.arrays.DENSE_WIDTH", dense_width)
    rng = np.random.default_rng(0)
    columns = np.argsort(rng.random((50, 7)), axis=1)[:, :3]
    weights = rng.random((50, 3))
    entries = RowEntries(torch.as_tensor(columns, dtype=torch.int32), torch.as_tensor(weights), 7)
    expected = np.zeros((50, 7))
    np.put_along_axis(expected, columns, weights, axis=1)
    np.testing.assert_array_equal(entries.csr().toarray(), expected)
    assert entries.shape == (50, 7)
    table = rng.random((7, 2))
    np.testing.assert_allclose(to_numpy(entries @ like(entries, table)), expected @ table)
    np.testing.assert_allclose(to_numpy(column_sums(entries)), expected.sum(axis=0))
    np.testing.assert_array_equal(entries[np.array([3, 9])].csr().toarray(), expected[[3, 9]])
    np.testing.assert_allclose(dense(to_numpy(entries.gram())), expected.T @ expected)
