"""Labels and targets in memory: of any type and library, and every way of saying "unknown"."""

import datetime
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy import sparse

from biglp import LowRankLabelPropagation
from biglp._core import LabelError, LabelWarning, ParameterError
from biglp._labels import encode_labels, encode_targets, label_array, suspicions
from helpers import blobs, model

NAN = float("nan")
LARGE = (1 << 53) + 1  # a floating-point number cannot hold it
DATES = [datetime.date(2020, 1, 1), datetime.date(2021, 1, 1)]


@pytest.mark.parametrize(
    ("y", "classes", "rows", "codes"),
    [
        ([1, -1, 0, 1], [0, 1], [0, 2, 3], [1, 0, 1]),
        (np.array([2, -1, 7], dtype="int8"), [2, 7], [0, 2], [0, 1]),
        (np.array([2, 255, 7], dtype="uint8"), [2, 7, 255], [0, 1, 2], [0, 2, 1]),
        ([1.0, NAN, 0.0, -1.0], [0.0, 1.0], [0, 2], [1, 0]),
        ([1, None, 0], [0, 1], [0, 2], [1, 0]),
        ([True, None, False], [False, True], [0, 2], [1, 0]),
        (["b", None, "a", NAN, -1, "", "-1"], ["a", "b"], [0, 2], [1, 0]),
        (("b", "", "a"), ["a", "b"], [0, 2], [1, 0]),
        (["b", NAN, "a"], ["a", "b"], [0, 2], [1, 0]),
        (np.array(["b", "", "a", "-1"]), ["a", "b"], [0, 2], [1, 0]),
        (np.array([b"b", b"", b"a"]), [b"a", b"b"], [0, 2], [1, 0]),
        (np.array([np.int64(3), None, np.int64(1)], dtype=object), [1, 3], [0, 2], [1, 0]),
        (np.array(["x", 2, None, "x"], dtype=object), [2, "x"], [0, 1, 3], [1, 0, 1]),
        (np.array([DATES[1], "NaT", DATES[0]], dtype="M8[D]"), DATES, [0, 2], [1, 0]),
        (pd.Series(["b", None, "a"]), ["a", "b"], [0, 2], [1, 0]),
        (pd.Series(["b", None, "a"], dtype="category"), ["a", "b"], [0, 2], [1, 0]),
        (pd.Series(["b", pd.NA, "a"], dtype="string"), ["a", "b"], [0, 2], [1, 0]),
        (pd.Series([1, pd.NA, 0], dtype="Int64"), [0, 1], [0, 2], [1, 0]),
        (pd.Series([True, pd.NA, False], dtype="boolean"), [False, True], [0, 2], [1, 0]),
        (np.ma.array([4, 0, 7], mask=[0, 1, 0]), [4, 7], [0, 2], [0, 1]),
        (np.ma.array(["b", "c", "a"], mask=[0, 1, 0]), ["a", "b"], [0, 2], [1, 0]),
        (np.ma.array([True, True, False], mask=[0, 1, 0]), [False, True], [0, 2], [1, 0]),
    ],
)
def test_classes_and_labelled_rows(y, classes, rows, codes):
    labels = encode_labels(y, len(y))
    assert labels.classes.tolist() == classes
    assert labels.rows.tolist() == rows
    assert labels.codes.tolist() == codes
    assert (labels.n_rows, labels.n_classes) == (len(y), len(classes))


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (None, r"requires y to be passed.* one label a row"),
        ([0, 1, -1], r"y has 3 entries but X has 4 rows; give one label a row"),
        ([-1] * 4, r"none of the 4 rows has a label .* two classes"),
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
        ([0, 1], ["a", "b"], r"must be 1D with 2 numbers"),
        ([0, 1], [0, 0], r"none of the 2 rows has a label .* weight zero"),
        ([0, 1], [0, 1], r"only one class, 1,"),
        ([[1, 0], [0, 1]], [0, 1], r"class 0 no share"),
    ],
)
def test_distributions_and_weights_that_cannot_be_used_are_refused(y, weights, message):
    with pytest.raises(LabelError, match=message):
        encode_labels(y, 2, weights)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (None, "requires y to be passed"),
        ([1.0, 2.0], r"y has 2 rows but X has 3 rows"),
        ([np.nan] * 3, r"none of the 3 rows has a target"),
        ([1.0, np.inf, 2.0], r"infinity, or NaN beside a number, in row 1"),
        ([[1.0, np.nan], [1, 1], [1, 1]], r"NaN beside a number, in row 0"),
        (["a", "b", "c"], r"no numbers .* For classes use LowRankLabelPropagation"),
        ([1j, 0, 1], "Complex data not supported"),
        (np.zeros((3, 1, 1)), r"got shape \(3, 1, 1\)"),
    ],
)
def test_targets_that_cannot_be_used_are_refused(y, message):
    with pytest.raises(LabelError, match=message):
        encode_targets(y, 3)


def test_names_of_the_columns_of_distributions():
    Y = np.array([[0.9, 0.1], [0.2, 0.8], [0.0, 0.0]])
    labels = encode_labels(Y, 3, classes=["no", "yes"])
    assert labels.classes.tolist() == ["no", "yes"]
    assert (labels.rows.tolist(), labels.codes.tolist()) == ([0, 1], [0, 1])
    for bad in (["a"], ["a", "a"], ["a", "b", "c"]):
        with pytest.raises(ParameterError, match="2 different names, one for each column"):
            encode_labels(Y, 3, classes=bad)
    with pytest.raises(ParameterError, match="leave classes out"):
        encode_labels([0, 1, -1], 3, classes=[0, 1])


def test_huge_tables_keep_only_their_labelled_rows():
    n = 3_000_000
    table = sparse.csr_matrix(([0.25, 0.75, 1.0], ([5, 5, n - 1], [0, 1, 0])), shape=(n, 2))
    labels = encode_labels(table, n)
    assert labels.rows.tolist() == [5, n - 1]
    np.testing.assert_allclose(labels.distribution, [[0.25, 0.75], [1.0, 0.0]])
    np.testing.assert_allclose(labels.counts, [1.25, 0.75])


# Labels keep their type on the way through the estimator ------------------------------------------


KINDS = {
    "list": list,
    "objects": lambda values: np.array(values, dtype=object),
    "arrow": pa.array,
    "chunks": lambda values: pa.chunked_array([values[:2], values[2:]]),
    "polars": lambda values: pytest.importorskip("polars").Series(values),
    "Int64": lambda values: pd.Series(values, dtype="Int64"),
    "int64[pyarrow]": lambda values: pd.Series(values, dtype="int64[pyarrow]"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_integers_stay_integers_where_some_are_missing(kind):
    made = KINDS[kind]
    found = label_array(made([3, None, LARGE, 3]))
    assert [value for value in found.tolist() if value not in (None, -1)] == [3, LARGE, 3]
    X, _, _ = blobs()
    fitted = model().fit(X, made([0, LARGE] * 20 + [None] * (len(X) - 40)))
    assert fitted.classes_.dtype.kind == "i"
    assert fitted.classes_.tolist() == [0, LARGE]
    assert fitted.transduction_.dtype == fitted.predict(X[:3]).dtype == fitted.classes_.dtype


def test_whole_numbers_with_nan_are_integers():
    for given in (
        np.array([1.0, np.nan, 2.0]),
        np.array([1.0, None, 2.0], dtype=object),
        [1.0, NAN, 2.0],
        pd.Series([1, None, 2]),
        pd.Series([1, None, 2], dtype="category"),
        KINDS["polars"]([1.0, None, 2.0]),
    ):
        found = label_array(given)
        assert (found.dtype, found.tolist()) == (np.int64, [1, -1, 2])
    for given in ([0.5, np.nan], [1.0, 2.0], [np.inf, np.nan]):
        assert label_array(np.array(given)).dtype == np.float64
    assert label_array(np.array([1, 2], dtype=np.int8)).dtype == np.int8


# Classes that look as if they meant "no label" are asked about; ordinary ones are not -------------


def test_names_that_usually_mean_no_label():
    for name in ("unknown", "N/A", "?", " None ", "<NA>", "no_label"):
        (warning,) = suspicions(encode_labels(["cat", name], 2))
        assert f"1 of 2 rows have the label {name!r}" in str(warning)
        assert not suspicions(encode_labels(["cat", name], 2), names=False)
    for name in ("no", "other", "nonesuch", "0", 0, -2, True, "Nan A."):
        assert not suspicions(encode_labels(np.array(["cat", name], dtype=object), 2))
    (found,) = suspicions(encode_labels(["Code", "code", "No  answer", "no answer", "other"], 5))
    assert "'Code', 'code'; 'No  answer', 'no answer'" in str(found)
    assert not suspicions(encode_labels(["a", "b", "A b"], 3))


def test_a_class_of_nearly_all_rows_is_suspected():
    y = np.array([7] * 97 + [1, 2, -1])
    (found,) = suspicions(encode_labels(y, 100))
    assert "97.0% of all 100 rows have the label 7" in str(found)
    assert "--unlabelled 7" in str(found)
    y[:10] = -1
    assert not suspicions(encode_labels(y, 100))
    assert not suspicions(encode_labels(y[-30:], 30))


def test_the_estimator_asks():
    X, y, _ = blobs(n=200)
    names = np.where(y < 0, "unknown", np.array(["a", "b", "c"])[y])
    model = LowRankLabelPropagation(random_state=0, engine="serial")
    with pytest.warns(LabelWarning, match=r"have the label 'unknown'.*None or -1 for them"):
        model.fit(X, names)
    with warnings.catch_warnings():
        warnings.simplefilter("error", LabelWarning)
        model.fit(X, np.where(y < 0, "", names))
