"""A factor is rebuilt from its state."""

from dataclasses import replace

import numpy as np
import pytest

from biglp._core.arrays import to_dense
from biglp._core.size import Size
from biglp._graph import FACTORS
from biglp._graph.anchors import AnchorFactor
from biglp._graph.linear import LinearFactor
from biglp._graph.nystrom import NystromFactor
from helpers import blobs

DTYPES = ("float32", "float64")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", ["anchors", "nystrom", "linear"])
def test_a_factor_is_rebuilt_from_its_state(kind, dtype):
    X, _, _ = blobs(dtype=dtype)
    factor = {
        "anchors": lambda: AnchorFactor(X[:9], 0.7, 2),
        "nystrom": lambda: NystromFactor(X[:9], 0.7),
        "linear": lambda: LinearFactor(X.min(axis=0)),
    }[kind]()
    again = FACTORS[kind].from_state(factor.state())
    np.testing.assert_array_equal(to_dense(again.features(X)), to_dense(factor.features(X)))
    assert again.describe() == factor.describe()
    size = Size(100, 5, 3, 9, 5.0, np.dtype(dtype))
    needed = [one.sweep_cost(replace(size, rank=one.rank), "cpu").row for one in (again, factor)]
    assert needed[0] == needed[1] >= X.dtype.itemsize * 5
