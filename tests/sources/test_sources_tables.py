"""Columns of tables: which are features, categories, missing values, and bad text."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from biglp._core.errors import BadRowsError, ParameterError
from biglp._rows import as_source
from biglp._rows.encoding import Encoding
from biglp._tables import delimited as csvparser

FRAME = pd.DataFrame(
    {
        "size": [1.5, 2.5, 3.5, 4.5],
        "colour": ["red", "blue", "red", "green"],
        "count": [1, 2, 3, 4],
        "y": ["a", "b", "a", "b"],
    }
)
ONE_HOT = np.array(
    [[1.5, 0, 0, 1, 1], [2.5, 1, 0, 0, 2], [3.5, 0, 0, 1, 3], [4.5, 0, 1, 0, 4]]
)  # size, blue, green, red, count


@pytest.fixture(params=["parquet", "parquet direct", "feather", "csv", "frame", "arrow table"])
def opened(request, tmp_path):
    """A function from a data frame and options to a source in one of the formats."""

    def open_frame(frame: pd.DataFrame, name: str = "x", **options):
        path = tmp_path / f"{name}.{request.param.split()[0]}"
        if request.param == "frame":
            return as_source(frame, **options)
        if request.param == "arrow table":
            return as_source(pa.Table.from_pandas(frame), **options)
        if request.param.startswith("parquet"):
            frame.to_parquet(path, row_group_size=3)
            if "direct" in request.param:
                options.setdefault("cache", "never")
        elif request.param == "feather":
            frame.to_feather(path)
        else:
            frame.to_csv(path, index=False)
        return as_source(path, **options)

    return open_frame


def test_text_columns_are_named(opened):
    with pytest.raises(BadRowsError, match=r"columns 'colour' \(.+\), 'y' .* categorical='auto'"):
        opened(FRAME, categorical="error")


def test_chosen_columns_in_their_order(opened):
    source = opened(FRAME, columns=["count", "size"])
    assert source.feature_names == ("count", "size")
    np.testing.assert_array_equal(source.read(0, 4), FRAME[["count", "size"]])
    source = opened(FRAME, label_column="y", drop=["colour"])
    assert source.feature_names == ("size", "count")


def test_wrong_column_names(opened):
    with pytest.raises(ParameterError, match=r"columns: .* has no column 'weight'; it has 'size'"):
        opened(FRAME, columns=["weight"])
    with pytest.raises(ParameterError, match=r"label_column: .* has no column 'z'"):
        opened(FRAME, label_column="z")
    with pytest.raises(ParameterError, match="'y' cannot be a feature and the label column"):
        opened(FRAME, label_column="y", columns=["y", "size"])
    with pytest.raises(ParameterError, match="must be a list of column names"):
        opened(FRAME, columns="size")


def test_one_hot(opened):
    source = opened(FRAME, label_column="y", categorical="onehot")
    assert source.feature_names == ("size", "colour=blue", "colour=green", "colour=red", "count")
    np.testing.assert_array_equal(source.read(0, 4), ONE_HOT)
    np.testing.assert_array_equal(source.take(np.array([0, 3])), ONE_HOT[[0, 3]])


def test_new_table_is_treated_as_the_first_by_name(opened):
    first = opened(FRAME, label_column="y", categorical="onehot")
    stored = json.loads(json.dumps(first.encoding.to_json()))
    encoding = Encoding.from_json(stored)
    assert encoding == first.encoding
    new = FRAME.iloc[::-1][["count", "colour", "size"]].copy()
    new["colour"] = ["violet", "red", "blue", "red"]  # violet is new
    expected = ONE_HOT[::-1].copy()
    expected[0, 1:4] = 0
    for given in (encoding, stored):
        source = opened(new, "new", encoding=given)
        np.testing.assert_array_equal(source.read(0, 4), expected)
        assert source.dtype == first.dtype
    with pytest.raises(
        BadRowsError, match=r"lacks 1 of the 3 columns .*: 'colour'. It has: 'count'"
    ):
        opened(new.drop(columns="colour"), "less", encoding=encoding)


def test_text_where_numbers_were(opened):
    encoding = opened(FRAME, columns=["size", "count"]).encoding
    wrong = pd.DataFrame({"size": ["big", "small"], "count": [1, 2]})
    with pytest.raises(BadRowsError, match="size"):
        opened(wrong, "wrong", encoding=encoding).read(0, 2)


def test_numbers_fill_categories_by_their_text(opened):
    encoding = opened(FRAME, columns=["colour"], categorical="onehot").encoding
    source = opened(pd.DataFrame({"colour": [1, 2]}), "numbers", encoding=encoding)
    np.testing.assert_array_equal(source.read(0, 2), np.zeros((2, 3)))


HOLES = pd.DataFrame({"a": [1.0, np.nan, 3.0, 5.0, np.nan], "b": [1.0, 2.0, np.nan, 6.0, 7.0]})


def test_missing_values_are_counted(opened):
    with pytest.raises(BadRowsError, match=r"missing values, in .*missing='mean'") as caught:
        opened(HOLES, missing="error").read(0, 5)
    if "at least" not in str(caught.value):
        assert "3 missing values, in 'a' (2), 'b' (1); first in rows 1, 2, 4 " in str(caught.value)


def test_missing_values_become_means(opened):
    source = opened(HOLES, missing="mean")
    expected = HOLES.fillna(HOLES.mean()).to_numpy()
    np.testing.assert_allclose(source.read(0, 5), expected)
    new = pd.DataFrame({"b": [np.nan, 1.0], "a": [1.0, np.nan]})
    again = opened(new, "new", encoding=source.encoding)  # the first table's means, not its own
    np.testing.assert_allclose(again.read(0, 2), [[1.0, 4.0], [3.0, 1.0]])


def test_missing_integers_and_categories(tmp_path):
    table = pa.table({"n": pa.array([1, None, 4], pa.int16()), "c": ["u", None, "v"]})
    pq.write_table(table, tmp_path / "x.parquet")
    with pytest.raises(
        BadRowsError, match=r"2 missing values, in 'n' \(1\), 'c' \(1\); first in rows 1 "
    ):
        as_source(tmp_path / "x.parquet", categorical="onehot", missing="error")
    source = as_source(tmp_path / "x.parquet", categorical="onehot", missing="mean")
    assert source.dtype == np.float32
    np.testing.assert_array_equal(source.read(0, 3), [[1, 1, 0], [2.5, 0, 0], [4, 0, 1]])


def test_rows_of_missing_values_in_take(tmp_path):
    pq.write_table(pa.table({"n": [1.0, 2.0, None, 4.0]}), tmp_path / "x.parquet")
    source = as_source(tmp_path / "x.parquet", cache="never", missing="error")
    with pytest.raises(BadRowsError, match=r"at least 1 missing values.*first in rows 2 "):
        source.take(np.array([0, 2]))


def test_column_without_any_value(tmp_path):
    pq.write_table(pa.table({"n": [1.0, 2.0], "m": pa.nulls(2)}), tmp_path / "x.parquet")
    with pytest.raises(BadRowsError, match="columns 'm' have no value at all"):
        as_source(tmp_path / "x.parquet", missing="mean")


def test_arrays_with_holes(tmp_path):
    rows = HOLES.to_numpy()
    np.save(tmp_path / "x.npy", rows)
    expected = HOLES.fillna(HOLES.mean()).to_numpy()
    for X in (rows, tmp_path / "x.npy"):
        source = as_source(X, missing="mean")
        np.testing.assert_allclose(source.read(0, 5), expected)
        np.testing.assert_allclose(source.take(np.array([1, 4])), expected[[1, 4]])
        again = as_source(np.full((1, 2), np.nan), encoding=source.encoding)
        np.testing.assert_allclose(again.read(0, 1), [[3.0, 4.0]])
    HOLES.to_parquet(tmp_path / "x.parquet")  # a table for a model without names: by position
    again = as_source(tmp_path / "x.parquet", encoding=source.encoding)
    np.testing.assert_allclose(again.read(0, 5), expected)
    with pytest.raises(BadRowsError, match="has 1 feature columns, but the model was fitted on 2"):
        as_source(tmp_path / "x.parquet", columns=["a"], encoding=source.encoding)
    with pytest.raises(BadRowsError, match="has 3 features without names"):
        as_source(np.zeros((2, 3)), encoding=source.encoding)


def test_lists_are_neither(tmp_path):
    pq.write_table(pa.table({"parts": [{"a": 1}], "n": [1.0]}), tmp_path / "x.parquet")
    with pytest.raises(BadRowsError, match=r"columns 'parts' \(struct.*neither numbers nor text"):
        as_source(tmp_path / "x.parquet", categorical="error")
    source = as_source(tmp_path / "x.parquet")
    assert source.feature_names == ("n",)
    assert "holds struct<a: int64>" in source.encoding.left_out["parts"]


def test_identifiers_are_no_categories(tmp_path):
    pq.write_table(pa.table({"id": [f"r{i}" for i in range(1001)]}), tmp_path / "x.parquet")
    with pytest.raises(BadRowsError, match="column 'id' has more than 1,000 different texts"):
        as_source(tmp_path / "x.parquet", categorical="onehot")


def test_frames_of_plain_numbers_stay_arrays():
    frame = FRAME[["size", "count"]]
    assert as_source(frame).name == "array"
    assert as_source(frame.set_axis(["a", "a"], axis=1)).name == "array"
    nullable = pd.DataFrame({"n": pd.array([1, None], dtype="Int64")})
    with pytest.raises(BadRowsError, match="1 missing values"):
        as_source(nullable, missing="error").read(0, 2)


@pytest.mark.parametrize("block_bytes", [64, 8 << 20])
class TestCsvText:
    """What can be wrong or unusual in a CSV file."""

    @pytest.fixture
    def csv(self, tmp_path, monkeypatch, block_bytes):
        monkeypatch.setattr(csvparser, "BLOCK_BYTES", block_bytes)

        def write(text: str, **options):
            (tmp_path / "x.csv").write_bytes(text.encode())
            return as_source(tmp_path / "x.csv", **options)

        return write

    def test_short_line(self, csv):
        with pytest.raises(BadRowsError, match=r"x\.csv, line 42: 1 fields where .* be 2 \('7'\)"):
            csv("a,b\n" + "1,2\n" * 40 + "7\n" + "1,2\n" * 40)

    def test_long_line(self, csv):
        with pytest.raises(BadRowsError, match=r"line 3: 3 fields where there should be 2"):
            csv("a,b\n1,2\n1,2,3\n")

    def test_no_number(self, csv):
        # Found while parsing, or before that when it is among the rows that types are guessed from.
        wanted = (
            r"line 42: 'x7' in column 'b' is not a number|'b' \(string, such as 'x7' in line 42\)"
        )
        with pytest.raises(BadRowsError, match=wanted):
            csv(
                "a,b\n" + "1,2\n" * 40 + "1,x7\n" + "1,2\n" * 40,
                columns=["b"],
                header=True,
                categorical="error",
            )

    def test_whole_numbers_then_fractions(self, csv):
        source = csv("a,b\n" + "1,2\n" * 40 + "1.5,2e-3\n")
        np.testing.assert_array_equal(source.read(40, 41), [[1.5, 2e-3]])

    @pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
    def test_delimiters_and_headers(self, csv, mark):
        rows = [[1.0, -2.0, 3.5], [4.0, 5.0, 6.0]]
        lines = "\n".join(mark.join(map(str, row)) for row in rows)
        named = csv(mark.join(["a", "b c", '"d,;\t|"']) + "\n" + lines + "\n")
        assert named.feature_names == ("a", "b c", "d,;\t|")
        np.testing.assert_array_equal(named.read(0, 2), rows)
        bare = csv(lines)
        assert bare.feature_names == ("f0", "f1", "f2")
        np.testing.assert_array_equal(bare.read(0, 2), rows)
        counted = csv(mark.join("012") + "\n" + lines + "\n")
        assert counted.feature_names == ("0", "1", "2")

    def test_quotes_mark_and_missing(self, csv):
        source = csv('\ufeffa,b\n"1","2"\n3,\n,?\n5,NA\n', missing="mean")
        assert source.feature_names == ("a", "b")
        np.testing.assert_array_equal(source.read(0, 4), [[1, 2], [3, 2], [3, 2], [5, 2]])

    def test_truth_values(self, csv):
        np.testing.assert_array_equal(csv("a\ntrue\nfalse\n").read(0, 2), [[1], [0]])

    def test_one_column_keeps_its_empty_lines(self, csv):
        with pytest.raises(BadRowsError, match=r"1 missing values.*first in rows 1 "):
            csv("a\n1\n\n3\n", missing="error")

    def test_nothing_in_it(self, csv):
        with pytest.raises(BadRowsError, match="is empty"):
            csv("")
        with pytest.raises(BadRowsError, match="column names but no rows"):
            csv("a,b\n")
        with pytest.raises(BadRowsError, match="more than one column named 'a'"):
            csv("a,a\n1,2\n")

    def test_float32_on_request(self, csv):
        assert csv("a\n0.1\n", dtype="float32").read(0, 1)[0, 0] == np.float32(0.1)
        assert csv("a\n0.1\n").read(0, 1)[0, 0] == 0.1

    def test_never_cached(self, csv):
        with pytest.raises(ParameterError, match="cache='never' cannot be used"):
            csv("a\n1\n", cache="never")
