"""Columns from Arrow to NumPy and back."""

import subprocess
import sys

import numpy as np
import pytest

from biglp._core.arrays import as_arrow, as_numpy, as_places

pa = pytest.importorskip("pyarrow")

COLUMNS = [
    pa.array([1, 2, 3], pa.int32()),
    pa.array([1.5, 2.5, -0.0, 4.0], pa.float32())[1:3],
    pa.array([1, None, 3], pa.int64()),
    pa.array([1.0, None]),
    pa.array([], pa.int16()),
    pa.array([True, False]),
    pa.chunked_array(
        [pa.array([1, 2], pa.uint8()), pa.array([], pa.uint8()), pa.array([9], pa.uint8())]
    ),
    pa.chunked_array([pa.array([1.0, 2.0])[1:]]),
    pa.chunked_array([], pa.float64()),
    pa.chunked_array([pa.array([None, 2.0])]),
    pa.array(np.array([0.5, 2.0], np.float16)),
]


@pytest.mark.parametrize("column", COLUMNS, ids=str)
def test_the_numbers_are_those_of_pyarrow(column):
    known = {} if isinstance(column, pa.ChunkedArray) else {"zero_copy_only": False}
    found, expected = as_numpy(column), column.to_numpy(**known)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("offset", [0, 3, 9])
def test_places_that_are_missing_are_minus_one(offset):
    values = [None if i % 3 == 1 else i for i in range(21)]
    found = as_places(pa.array(values, pa.int32())[offset:])
    assert found.tolist() == [-1 if value is None else value for value in values[offset:]]
    assert as_places(pa.array([1, 2])).tolist() == [1, 2]
    assert len(as_places(pa.array([], pa.int32()))) == 0


@pytest.mark.parametrize("kind", ["<i4", ">i4", "u1", "f4", "f8", "?", "U3", "datetime64[s]"])
@pytest.mark.parametrize("n", [0, 6])
def test_arrow_has_the_same_values(kind, n):
    column = (np.arange(n) % 2).astype(kind)
    for each in (column, column[::2]):
        expected = pa.array(each.astype(each.dtype.newbyteorder("=")))
        found = as_arrow(
            each if each.dtype.isnative else each.astype(expected.type.to_pandas_dtype())
        )
        assert found.equals(expected)


def test_pandas_is_not_loaded():
    program = (
        "import sys, numpy as np, pyarrow as pa; from biglp._core.arrays import *;"
        "column = as_arrow(np.arange(5.0)); as_numpy(column);"
        "as_places(as_arrow(np.arange(5)).dictionary_encode().indices);"
        "sys.exit('pandas' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0
