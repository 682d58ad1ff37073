"""A new kind of column is one class and one line."""

import json
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pytest

from biglp._rows import Encoding, as_source
from biglp._tables import KINDS, Column, Number


@dataclass(frozen=True)
class Pair(Column):
    kind = "pair"
    scale: float = 1.0

    @property
    def feature_names(self):
        return (f"{self.name}[0]", f"{self.name}[1]")

    def fill(self, values, out):
        out[:] = np.asarray(values.flatten()).reshape(-1, 2).T * self.scale


@pytest.fixture
def _pair():
    KINDS["pair"] = Pair
    yield
    del KINDS["pair"]


@pytest.mark.usefixtures("_pair")
def test_a_new_kind_of_column():
    encoding = Encoding((Pair("place", 2.0), Number("size")), 2, "<f4")
    encoding = Encoding.from_json(json.loads(json.dumps(encoding.to_json())))
    assert encoding.feature_names == ("place[0]", "place[1]", "size")
    assert not encoding.takes_arrays
    table = pa.table({"size": [5.0, 6.0], "place": [[1.0, 2.0], [3.0, 4.0]]})
    rows = as_source(table, encoding=encoding).read(0, 2)
    np.testing.assert_array_equal(rows, np.array([[2, 4, 5], [6, 8, 6]], dtype=np.float32))
