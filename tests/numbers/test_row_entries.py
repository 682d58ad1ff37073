"""Matrices with a few entries a row, as torch holds them, against the dense ones."""

import numpy as np
import pytest

from biglp._compiled import column_sums
from biglp._core import arrays as module
from biglp._core.arrays import RowEntries, like, to_numpy

torch = pytest.importorskip("torch", reason='torch is not installed: pip install "biglp[gpu]"')

ROWS, WIDTH, ENTRIES = 50, 7, 3


@pytest.fixture
def ties():
    rng = np.random.default_rng(0)
    columns = np.argsort(rng.random((ROWS, WIDTH)), axis=1)[:, :ENTRIES]
    weights = rng.random((ROWS, ENTRIES))
    return RowEntries(torch.as_tensor(columns, dtype=torch.int32), torch.as_tensor(weights), WIDTH)


@pytest.fixture
def dense(ties):
    return ties.csr().toarray()


def test_entries_are_where_they_belong(ties, dense):
    assert dense.shape == ties.shape == (ROWS, WIDTH)
    assert (dense > 0).sum() == ROWS * ENTRIES
    assert dense[4, int(ties.columns[4, 1])] == float(ties.weights[4, 1])


def test_products_sums_and_parts(ties, dense):
    table = np.random.default_rng(1).random((WIDTH, 2))
    np.testing.assert_allclose(to_numpy(ties @ like(ties, table)), dense @ table)
    np.testing.assert_allclose(to_numpy(column_sums(ties)), dense.sum(axis=0))
    np.testing.assert_array_equal(ties[np.array([3, 9])].csr().toarray(), dense[[3, 9]])


@pytest.mark.parametrize("rows_at_once", [8, 1000])
@pytest.mark.parametrize("dense_width", [1, 100])
def test_gram(ties, dense, monkeypatch, rows_at_once, dense_width):
    monkeypatch.setattr(module, "ROWS_AT_ONCE", rows_at_once)
    monkeypatch.setattr(module, "DENSE_WIDTH", dense_width)
    found = to_numpy(ties.gram())
    found = found.toarray() if hasattr(found, "toarray") else found
    np.testing.assert_allclose(found, dense.T @ dense)
