"""Labels of any type, label distributions, weights, and every way of saying "unknown"."""

import datetime

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.exceptions import DataConversionWarning

from biglp._core.errors import LabelError, ParameterError
from biglp._labels.labels import Labels, encode_labels, labels_from_pairs, unlabelled

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
    values = np.array([None, NAN, -1, "", -1.0, "-1", 0, False, True, np.bool_(True)], dtype=object)
    assert unlabelled(values).tolist() == [True] * 6 + [False] * 4


def test_labelled_rows_within_a_block_are_counted_from_its_start():
    labels = encode_labels([0, -1, 1, -1, 1, 0], 6)
    rows, shares, weights = labels.own(2, 5)
    assert rows.tolist() == [0, 2]
    assert shares.tolist() == [[0, 1], [0, 1]]
    assert weights.tolist() == [1, 1]
    assert [len(part) for part in labels.own(3, 4)] == [0, 0, 0]


def test_counts_and_one_hot():
    labels = Labels(np.array(["a", "b", "c"]), np.array([0, 2, 5]), np.array([2, 0, 2]), 6)
    assert labels.counts.tolist() == [1, 0, 2]
    np.testing.assert_array_equal(labels.one_hot(labels.codes), [[0, 0, 1], [1, 0, 0], [0, 0, 1]])


def test_names_of_the_columns():
    Y = np.array([[0.9, 0.1], [0.2, 0.8], [0.0, 0.0]])
    labels = encode_labels(Y, 3, classes=["no", "yes"])
    assert labels.classes.tolist() == ["no", "yes"]
    assert labels.rows.tolist() == [0, 1]
    assert labels.codes.tolist() == [0, 1]
    for bad in (["a"], ["a", "a"], ["a", "b", "c"]):
        with pytest.raises(ParameterError, match="2 different names, one for each column"):
            encode_labels(Y, 3, classes=bad)
    with pytest.raises(ParameterError, match="leave classes out"):
        encode_labels([0, 1, -1], 3, classes=[0, 1])


@pytest.mark.parametrize(
    ("y", "weights", "message"),
    [
        ([[0.5, -0.5], [1, 0]], None, r"row 0: \[0\.5, -0\.5\]\. Give numbers of 0 or more"),
        ([[1, 0], [np.nan, 1]], None, r"no label distribution in row 1"),
        ([[1, 0], [np.inf, 1]], None, r"no label distribution in row 1"),
        ([[1, 0], [1, 0]], None, r"class 1 no share in any of the 2 labelled rows"),
        ([[0, 0], [np.nan, np.nan]], None, r"none of the 2 rows has a label"),
        ([[1, 0], [0, 1], [0, 0]], None, r"3 rows of label distributions but X has 2"),
        ([["a", "b"], ["a", "b"]], None, r"label distributions, which are numbers"),
        ([0, 1], [1.0, -1.0], r"label of row 1 has weight -1\.0; give finite weights"),
        ([0, 1], [np.nan, 1.0], r"label of row 0 has weight nan"),
        ([0, 1], [1.0], r"sample_weight has shape \(1,\), but must be 1D with 2 numbers"),
        ([0, 1], [[1.0, 1.0]], r"must be 1D with 2 numbers"),
        ([0, 1], ["a", "b"], r"must be 1D with 2 numbers"),
        ([0, 1], [0, 0], r"none of the 2 rows has a label .* weight zero"),
        ([0, 1], [0, 1], r"only one class, 1,"),
        ([[1, 0], [0, 1]], [0, 1], r"class 0 no share"),
        ([[1, 0], [0, 1]], [0, 0], r"none of the 2 rows has a label"),
    ],
)
def test_distributions_and_weights_that_cannot_be_used_are_refused(y, weights, message):
    with pytest.raises(LabelError, match=message):
        encode_labels(y, 2, weights)


def test_huge_tables_keep_only_their_labelled_rows():
    n = 3_000_000
    table = sparse.csr_matrix(([0.25, 0.75, 1.0], ([5, 5, n - 1], [0, 1, 0])), shape=(n, 2))
    labels = encode_labels(table, n)
    assert labels.rows.tolist() == [5, n - 1]
    np.testing.assert_allclose(labels.distribution, [[0.25, 0.75], [1.0, 0.0]])
    np.testing.assert_allclose(labels.counts, [1.25, 0.75])


def test_rows_that_occur_several_times_make_distributions():
    rows, values = np.array([2, 2, 4, 7, 7]), np.array(["a", "b", "b", "a", "a"])
    labels = labels_from_pairs(rows, values, 9, np.array([0.3, 0.7, 1.0, 1.0, 2.0]))
    assert labels.rows.tolist() == [2, 4, 7]
    assert labels.codes.tolist() == [1, 1, 0]
    np.testing.assert_allclose(labels.distribution, [[0.3, 0.7], [0, 1], [1, 0]])
    np.testing.assert_allclose(labels.weights, [1, 1, 3])
    hard = labels_from_pairs(rows[2:], values[2:], 9, np.array([1.0, 1.0, 2.0]))
    assert hard.distribution is None
    np.testing.assert_allclose(hard.counts, [3, 1])
