"""Labels of any type, and every way of saying "unknown"."""

import datetime

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import DataConversionWarning

from biglp._core.errors import LabelError
from biglp._labels.labels import Labels, encode_labels, unlabelled

NAN = float("nan")


@pytest.mark.parametrize(
    ("y", "classes", "rows", "codes"),
    [
        ([1, -1, 0, 1], [0, 1], [0, 2, 3], [1, 0, 1]),
        (np.array([2, -1, 7], dtype="int8"), [2, 7], [0, 2], [0, 1]),
        (np.array([2, 255, 7], dtype="uint8"), [2, 7, 255], [0, 1, 2], [0, 2, 1]),
        ([1.0, NAN, 0.0, -1.0], [0.0, 1.0], [0, 2], [1, 0]),
        ([1, None, 0], [0, 1], [0, 2], [1, 0]),
        ([True, None, False], [False, True], [0, 2], [1, 0]),
        (np.array([True, False]), [False, True], [0, 1], [1, 0]),
        (["b", "", "a"], ["a", "b"], [0, 2], [1, 0]),
        (["b", None, "a", NAN, -1, ""], ["a", "b"], [0, 2], [1, 0]),
        (("b", "", "a"), ["a", "b"], [0, 2], [1, 0]),
        (["b", NAN, "a"], ["a", "b"], [0, 2], [1, 0]),
        (["b", -1, "a"], ["a", "b"], [0, 2], [1, 0]),
        (np.array(["b", "", "a"]), ["a", "b"], [0, 2], [1, 0]),
        (np.array([b"b", b"", b"a"]), [b"a", b"b"], [0, 2], [1, 0]),
        (np.array([np.int64(3), None, np.int64(1)], dtype=object), [1, 3], [0, 2], [1, 0]),
        (pd.Series(["b", None, "a"]), ["a", "b"], [0, 2], [1, 0]),
        (pd.Series(["b", None, "a"], dtype="category"), ["a", "b"], [0, 2], [1, 0]),
        (pd.Series(["b", pd.NA, "a"], dtype="string"), ["a", "b"], [0, 2], [1, 0]),
        (pd.Series([1, pd.NA, 0], dtype="Int64"), [0, 1], [0, 2], [1, 0]),
        (pd.Series([True, pd.NA, False], dtype="boolean"), [False, True], [0, 2], [1, 0]),
    ],
)
def test_classes_and_labelled_rows(y, classes, rows, codes):
    labels = encode_labels(y, len(y))
    assert labels.classes.tolist() == classes
    assert labels.classes.dtype != object
    assert labels.rows.tolist() == rows
    assert labels.codes.tolist() == codes
    assert labels.n_rows == len(y)
    assert labels.n_classes == len(classes)


def test_types_that_cannot_be_sorted_together_are_kept_apart():
    labels = encode_labels(np.array(["x", 2, None, "x"], dtype=object), 4)
    assert labels.classes.tolist() == [2, "x"]
    assert labels.codes.tolist() == [1, 0, 1]


def test_dates_are_labels_too():
    first, second = datetime.date(2020, 1, 1), datetime.date(2021, 1, 1)
    y = np.array([second, "NaT", first], dtype="datetime64[D]")
    labels = encode_labels(y, 3)
    assert labels.classes.tolist() == [first, second]
    assert labels.rows.tolist() == [0, 2]


def test_a_single_column_is_accepted_with_a_warning():
    with pytest.warns(DataConversionWarning, match=r"column-vector y .* ravel"):
        labels = encode_labels(np.array([[0], [1], [-1]]), 3)
    assert labels.rows.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (None, r"requires y to be passed.* one label a row"),
        ([0, 1, -1], r"y has 3 entries but X has 4 rows; give one label a row"),
        ([-1] * 4, r"none of the 4 rows has a label .* two classes"),
        ([""] * 4, r"none of the 4 rows has a label"),
        ([None] * 4, r"none of the 4 rows has a label"),
        ([NAN] * 4, r"none of the 4 rows has a label"),
        ([5, 5, -1, -1], r"only one class, 5, .* 2 labelled rows.* -1 counts as unlabelled"),
        (["a", "a", "", ""], r"only one class, 'a', is among the 2 labelled rows"),
        ([0.5, 1.5, 0.5, 1], r"Unknown label type: .* fractions, such as 0\.5.* integers or text"),
        ([np.inf, 1, 0, 1], r"y holds infinity; labels must be finite"),
        ([1j, 0, 1, 0], r"Complex data not supported"),
        ([[[0, 1]]] * 4, r"one-dimensional, one label a row; got shape \(4, 1, 2\)"),
        (3, r"one-dimensional, one label a row; got shape \(\)"),
    ],
)
def test_labels_that_cannot_be_used_are_refused(y, message):
    with pytest.raises(LabelError, match=message):
        encode_labels(y, 4)


def test_which_entries_mean_unlabelled():
    values = np.array([None, NAN, -1, "", -1.0, 0, "-1", False, True, np.bool_(True)], dtype=object)
    assert unlabelled(values).tolist() == [True] * 5 + [False] * 5


def test_labelled_rows_within_a_block_are_counted_from_its_start():
    labels = encode_labels([0, -1, 1, -1, 1, 0], 6)
    rows, codes = labels.within(2, 5)
    assert rows.tolist() == [0, 2]
    assert codes.tolist() == [1, 1]
    assert [len(part) for part in labels.within(3, 4)] == [0, 0]


def test_counts_and_one_hot():
    labels = Labels(np.array(["a", "b", "c"]), np.array([0, 2, 5]), np.array([2, 0, 2]), 6)
    assert labels.counts.tolist() == [1, 0, 2]
    np.testing.assert_array_equal(labels.one_hot(labels.codes), [[0, 0, 1], [1, 0, 0], [0, 0, 1]])
