"""Labels of the estimator that are in files and columns, with IDs."""

import numpy as np
import pandas as pd
import pytest

from biglp import LowRankLabelPropagation
from biglp._core.errors import LabelError, LabelWarning, ParameterError
from helpers import blobs

NAMES = np.array(["ant", "bee", "cow"])


@pytest.fixture
def rows(tmp_path):
    """The path of a table with IDs and labels of some rows, rows, labels, and truth."""
    X, y, truth = blobs(n=300, labelled=15)
    frame = pd.DataFrame(X, columns=[f"x{number}" for number in range(X.shape[1])])
    frame["key"] = [f"K{number}" for number in range(300)]
    frame["kind"] = np.where(y < 0, None, NAMES[y])
    frame.to_parquet(tmp_path / "rows.parquet")
    return tmp_path / "rows.parquet", X, np.where(y < 0, "", NAMES[y]), NAMES[truth]


def model(**more):
    return LowRankLabelPropagation(engine="serial", n_landmarks=40, random_state=0, **more)


def test_labels_in_a_column_and_in_files(rows, tmp_path):
    path, X, y, truth = rows
    found = model(label_column="kind", id_column="key").fit(path)
    expected = model().fit(X, y)
    np.testing.assert_array_equal(found.transduction_, expected.transduction_)
    y[:10] = truth[:10]
    lines = "".join(f"K{row},{truth[row]}\n" for row in range(10))
    (tmp_path / "answers.csv").write_text("key,label\n" + lines)
    found = model(label_column="kind", id_column="key").fit(path, tmp_path / "answers.csv")
    np.testing.assert_array_equal(found.transduction_, model().fit(X, y).transduction_)
    found = model(label_column="kind", id_column="key")
    found.fit(str(path), [str(tmp_path / "answers.csv")] * 2)
    np.testing.assert_array_equal(found.transduction_, model().fit(X, y).transduction_)


def test_rows_in_memory_with_a_file_of_labels(rows, tmp_path):
    _, X, y, _ = rows
    known = np.flatnonzero(y != "")
    lines = "".join(f"{row},{y[row]}\n" for row in known)
    (tmp_path / "labels.csv").write_text("row,label\n" + lines)
    found = model().fit(X, tmp_path / "labels.csv", sample_weight=np.ones(300))
    np.testing.assert_array_equal(found.transduction_, model().fit(X, y).transduction_)


def test_ids_that_are_not_there_are_warned_of(rows, tmp_path):
    path = rows[0]
    (tmp_path / "answers.csv").write_text("key,label\nK1,ant\nnix,bee\n")
    with pytest.warns(LabelWarning, match="1 IDs are those of no row"):
        model(label_column="kind", id_column="key").fit(path, tmp_path / "answers.csv")


def test_first_suggestions_leave_labels_and_ids_out(rows):
    path, X, _, _ = rows
    found = model(label_column="kind", id_column="key").suggest_first(path, 5)
    assert found.tolist() == model().suggest_first(X, 5).tolist()


def test_what_is_refused(rows):
    path, X, y, _ = rows
    with pytest.raises(ParameterError, match="y holds the labels"):
        model(label_column="kind").fit(path, y)
    with pytest.raises(ParameterError, match="X is in memory"):
        model(id_column="key").fit(X, y)
    with pytest.raises(ParameterError, match="no column 'nix'"):
        model(label_column="nix").fit(path)
    with pytest.raises(LabelError, match="y to be passed"):
        model().fit(X)


def test_the_name_of_a_column_is_no_file():
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0], "kind": ["x", None, "y"]})
    with pytest.raises(ParameterError, match=r"is a column of X; give .* y=X\['kind'\]"):
        LowRankLabelPropagation().fit(frame, "kind")
