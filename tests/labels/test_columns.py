"""Labels keep their type on the way through the estimator."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from biglp import LowRankLabelPropagation
from biglp._labels.values import label_array, unlabelled
from helpers import blobs, model

LARGE = (1 << 53) + 1  # a floating-point number cannot hold it


def with_gaps(kind: str, values: list):
    if kind == "list":
        return values
    if kind == "objects":
        return np.array(values, dtype=object)
    if kind == "arrow":
        return pa.array(values)
    if kind == "chunks":
        return pa.chunked_array([values[:2], values[2:]])
    if kind == "polars":
        return pytest.importorskip("polars").Series(values)
    return pd.Series(values, dtype=kind)


@pytest.mark.parametrize(
    "kind", ["list", "objects", "arrow", "chunks", "polars", "Int64", "UInt64", "int64[pyarrow]"]
)
def test_integers_stay_integers_where_some_are_missing(kind):
    found = label_array(with_gaps(kind, [3, None, LARGE, 3]))
    assert [value for value in found.tolist() if value not in (None, -1)] == [3, LARGE, 3]
    X, _, _ = blobs()
    values = [0, LARGE] * 20 + [None] * (len(X) - 40)
    fitted = model().fit(X, with_gaps(kind, values))
    assert fitted.classes_.dtype.kind == "i"
    assert fitted.classes_.tolist() == [0, LARGE]
    assert fitted.transduction_.dtype == fitted.predict(X[:3]).dtype == fitted.classes_.dtype


@pytest.mark.parametrize("kind", ["floats", "objects", "list", "pandas", "category", "polars"])
def test_whole_numbers_with_nan_are_integers(kind):
    values = {
        "floats": np.array([1.0, np.nan, 2.0]),
        "objects": np.array([1.0, None, 2.0], dtype=object),
        "list": [1.0, float("nan"), 2.0],
        "pandas": pd.Series([1, None, 2]),
        "category": pd.Series([1, None, 2], dtype="category"),
    }
    given = values.get(kind)
    if kind == "polars":
        given = pytest.importorskip("polars").Series([1.0, None, 2.0])
    found = label_array(given)
    assert found.dtype == np.int64
    assert found.tolist() == [1, -1, 2]


def test_what_is_not_whole_or_has_no_gap_stays_as_it_is():
    assert label_array(np.array([0.5, np.nan])).dtype == np.float64
    assert label_array(np.array([1.0, 2.0])).dtype == np.float64
    assert label_array(np.array([np.inf, np.nan])).dtype == np.float64
    assert label_array(np.array([1, 2], dtype=np.int8)).dtype == np.int8


@pytest.mark.parametrize(
    ("labels", "kind"),
    [
        (["no", "yes"], "U"),
        ([False, True], "b"),
        ([4, 7], "i"),
    ],
)
def test_text_and_truth_values_and_model_files(labels, kind, tmp_path):
    X, _, _ = blobs()
    y = np.array(labels * 20 + [None] * (len(X) - 40), dtype=object)
    fitted = model().fit(X, y)
    assert (fitted.classes_.dtype.kind, fitted.classes_.tolist()) == (kind, labels)
    fitted.save(tmp_path / "model.biglp")
    loaded = LowRankLabelPropagation.load(tmp_path / "model.biglp")
    assert loaded.classes_.dtype == fitted.classes_.dtype
    assert loaded.predict(X[:5]).dtype == fitted.transduction_.dtype


def test_later_labels_keep_the_type():
    X, y, truth = blobs()
    fitted = model().fit(X, y)
    kind = fitted.classes_.dtype
    later = pd.Series(truth[:3]).astype("Int64")
    later[1] = pd.NA
    assert fitted.update_labels([0, 1, 2], later).classes_.dtype == kind


@pytest.mark.parametrize(
    "values", [[4, 0, 7], ["a", "", "b"], [0.0, 1.0, 2.0], [True, True, False]]
)
def test_masked_labels_are_missing(values):
    found = label_array(np.ma.array(values, mask=[False, True, False]))
    assert unlabelled(found).tolist() == [False, True, False]
    assert found[[0, 2]].tolist() == [values[0], values[2]]


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_frame_of_one_column_is_that_column(library):
    frame = pytest.importorskip(library).DataFrame({"y": ["a", "b", "", "a"]})
    assert label_array(frame).ravel().tolist() == ["a", "b", "", "a"]
