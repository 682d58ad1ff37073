"""Sums and maxima by columns have NumPy's bits."""

import numpy as np
import pytest

from biglp._learn.committee.answer import of_each_row


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("width", [1, 2, 3, 7, 8, 9, 15, 16, 40])
@pytest.mark.parametrize("n_rows", [0, 1, 50])
def test_bits_are_those_of_numpy(kind, width, n_rows):
    found = np.random.default_rng(width).normal(size=(n_rows, 2 * width)).astype(kind)
    for array in (found[:, :width], np.ascontiguousarray(found[:, width:])):
        np.testing.assert_array_equal(of_each_row(np.add, array), array.sum(1))
        np.testing.assert_array_equal(of_each_row(np.maximum, array), array.max(1))


def test_nan_is_the_largest():
    assert np.isnan(of_each_row(np.maximum, np.array([[1.0, np.nan, 2.0]])))
    assert np.isnan(of_each_row(np.add, np.array([[1.0, np.nan, 2.0]])))
