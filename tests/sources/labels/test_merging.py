"""Labels from several places: later ones count more, votes become distributions, all is told."""

import numpy as np
import pandas as pd
import pytest

from biglp._core.errors import LabelError, ParameterError
from biglp._labels.reading import LabelInput, votes
from biglp._rows import as_source


@pytest.fixture
def rows(tmp_path):
    """A table of ten rows with labels in a column."""
    frame = pd.DataFrame({"x": np.arange(10.0), "kind": [None, "a", "b"] + [None] * 7})
    frame.to_parquet(tmp_path / "rows.parquet")
    return str(tmp_path / "rows.parquet")


def write(path, text):
    path.write_text(text)
    return str(path)


def shown(gathered):
    labels = gathered.labels
    return dict(zip(labels.rows.tolist(), labels.classes[labels.codes].tolist(), strict=True))


def test_later_labels_replace_earlier_ones(rows, tmp_path):
    first = write(tmp_path / "first.csv", "row,label\n1,b\n5,c\n")
    # What suggest wrote, filled in but for one.
    second = write(tmp_path / "next.csv", "row,label,current_label,doubt\n5,a,b,0.4\n6,,b,0.5\n")
    found = LabelInput(rows, (first, second), "kind").gather(10)
    assert shown(found) == {1: "b", 2: "b", 5: "a"}
    assert found.told == [
        "column 'kind': 2 labelled rows.",
        f"{first}: 2 labelled rows, 1 of them labelled before and replaced (1 differ).",
        f"{second}: 1 labelled rows, 1 of them labelled before and replaced (1 differ).",
    ]
    assert shown(LabelInput(rows, (second, first), "kind").gather(10))[5] == "c"


def test_the_column_is_no_feature_beside_a_file(rows, tmp_path):
    file = write(tmp_path / "next.csv", "row,label\n5,c\n")
    named = LabelInput(rows, (file,), "kind")
    assert as_source(rows, **named.not_features).feature_names == ("x",)
    # A column that the rows do not have is one of the file.
    file = write(tmp_path / "other.csv", "row,mine,yours\n5,c,d\n6,d,c\n")
    named = LabelInput(rows, (file,), "mine")
    assert not named.not_features
    assert shown(named.gather(10)) == {5: "c", 6: "d"}
    with pytest.raises(ParameterError, match="no column 'hers'"):
        LabelInput(rows, (file,), "hers").gather(10)


@pytest.mark.parametrize(
    ("typed", "answers", "expected"),
    [
        ([1, 2, None], "3,1\n4,7\n", {0: 1, 1: 2, 3: 1, 4: 7}),
        ([1, 2, None], "3,1\n4,x\n", {0: "1", 1: "2", 3: "1", 4: "x"}),
        (["01", "2", None], "3,01\n4,2\n", {0: "01", 1: "2", 3: "01", 4: "2"}),
    ],
)
def test_classes_of_one_type(tmp_path, typed, answers, expected):
    frame = pd.DataFrame({"x": np.arange(5.0), "y": [*typed, None, None]})
    frame.to_parquet(tmp_path / "rows.parquet")
    file = write(tmp_path / "more.csv", "row,label\n" + answers)
    found = LabelInput(str(tmp_path / "rows.parquet"), (file,), "y").gather(5)
    assert shown(found) == expected


def test_votes():
    rows, codes = np.array([1, 1, 1, 2, 2, 4]), np.array([0, 1, 0, 3, 3, 2])
    where, which, weights, several, differing = votes(rows, codes)
    assert where.tolist() == [1, 1, 2, 4]
    assert which.tolist() == [0, 1, 3, 2]
    np.testing.assert_allclose(weights, [2 / 3, 1 / 3, 1, 1])
    assert (several, differing) == (2, 1)
    assert votes(rows[3:], codes[3:])[2:] == (None, 1, 0)


def test_several_annotators_make_a_distribution(rows, tmp_path):
    file = write(tmp_path / "labels.csv", "row,label\n3,a\n1,b\n3,b\n3,a\n2,a\n2,a\n")
    found = LabelInput(rows, (file,)).gather(10)
    np.testing.assert_allclose(found.labels.distribution, [[0, 1], [1, 0], [2 / 3, 1 / 3]])
    assert found.labels.weights is None
    told = f"{file}: 2 rows have several labels; in 1 of them they differ, and became label "
    assert found.told == [told + "distributions."]


def test_marks_of_no_label(tmp_path):
    lines = "label\ncat\nNA\n?\ndog\n-1\nNone\nnone\n"
    file = write(tmp_path / "y.csv", lines)
    found = LabelInput(None, (file,)).gather(7)
    assert shown(found) == {0: "cat", 3: "dog", 6: "none"}
    assert "taken for no label: 'NA' (1), '?' (1), '-1' (1), 'None' (1)" in found.told[0]
    assert "the label 'none'" in str(found.suspicions()[0])
    marks = ("NA", "?", "none")
    found = LabelInput(None, (file,), unlabelled=marks).gather(7)
    assert shown(found) == {0: "cat", 3: "dog", 4: "-1", 5: "None"}
    assert not found.told
    found = LabelInput(None, (file,), unlabelled=-1).gather(7)
    assert "none" in shown(found).values()
    (suspicion,) = found.suspicions(all_labelled=False)
    assert "differ in capital letters" in str(suspicion)
    table = pd.DataFrame({"x": range(7), "label": lines.split()[1:]})
    for name in ("rows.parquet", "rows.csv"):
        path = tmp_path / name
        table.to_csv(path, index=False) if name.endswith("csv") else table.to_parquet(path)
        found = LabelInput(str(path), label_column="label").gather(7)
        assert shown(found) == {0: "cat", 3: "dog", 6: "none"}
        assert len(found.told) == 1


def test_numbers_with_minus_one_are_not_told(tmp_path):
    file = write(tmp_path / "y.csv", "-1\n0\n1\n-1\n")
    found = LabelInput(None, (file,)).gather(4)
    assert not found.told
    assert not found.suspicions()


def test_all_labelled_is_said(tmp_path):
    file = write(tmp_path / "y.csv", "0\n0\n1\n1\n")
    found = LabelInput(None, (file,)).gather(4)
    assert "every one of the 4 rows" in str(found.suspicions()[0])
    assert not found.suspicions(all_labelled=False)


def test_a_file_that_says_too_little(rows, tmp_path):
    file = write(tmp_path / "labels.csv", "id,label\n3,a\n1,b\n")
    with pytest.raises(LabelError, match=r"joined by 'id' when .*--id-column"):
        LabelInput(rows, (file,)).gather(10)
