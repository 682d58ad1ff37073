"""From columns to features: the list of columns, and how it is stored."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pytest

from biglp._sources import as_source
from biglp._sources.tables.encoding import Encoding
from biglp._sources.tables.kinds import KINDS
from biglp._sources.tables.kinds.base import Column
from biglp._sources.tables.kinds.number import Number
from biglp._sources.tables.kinds.onehot import OneHot

OF_0_1 = {
    "columns": ["size", "colour"],
    "n_inputs": 2,
    "dtype": "<f8",
    "categories": {"colour": ["blue", "red"]},
    "means": [2.5, 0.0],
    "zero_based": None,
}


def test_encoding_of_release_0_1():
    encoding = Encoding.from_json(json.loads(json.dumps(OF_0_1)))
    assert encoding.columns == (Number("size", 2.5), OneHot("colour", ("blue", "red"), True))
    assert encoding.feature_names == ("size", "colour=blue", "colour=red")
    assert Encoding.from_json(json.loads(json.dumps(encoding.to_json()))) == encoding
    table = pa.table({"colour": ["red", None, "green"], "size": [1.0, None, 3.0]})
    np.testing.assert_array_equal(
        as_source(table, encoding=encoding).read(0, 3), [[1, 0, 1], [2.5, 0, 0], [3, 0, 0]]
    )
    refusing = Encoding.from_json({**OF_0_1, "means": None})
    assert refusing.columns == (Number("size"), OneHot("colour", ("blue", "red")))


def test_encoding_of_release_0_1_without_names():
    stored = {**OF_0_1, "columns": None, "categories": {}, "means": [2.5, 1.0]}
    encoding = Encoding.from_json(stored)
    assert (encoding.columns, encoding.fillings, encoding.n_features) == (None, (2.5, 1.0), 2)
    table = pa.table({"b": [np.nan, 2.0], "a": [None, 4.0]})  # by position
    np.testing.assert_array_equal(
        as_source(table, encoding=encoding).read(0, 2), [[2.5, 1], [2, 4]]
    )


@dataclass(frozen=True)
class Pair(Column):
    """A list of two numbers: two features."""

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
def test_a_new_kind_of_column_is_one_class_and_one_line():
    encoding = Encoding((Pair("place", 2.0), Number("size")), 2, "<f4")
    encoding = Encoding.from_json(json.loads(json.dumps(encoding.to_json())))
    assert encoding.feature_names == ("place[0]", "place[1]", "size")
    assert not encoding.takes_arrays
    table = pa.table({"size": [5.0, 6.0], "place": [[1.0, 2.0], [3.0, 4.0]]})
    rows = as_source(table, encoding=encoding).read(0, 2)
    np.testing.assert_array_equal(rows, np.array([[2, 4, 5], [6, 8, 6]], dtype=np.float32))
