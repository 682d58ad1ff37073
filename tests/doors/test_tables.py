"""Tables as people have them: which columns become features, and of what kind."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from biglp._core import BadRowsError, ParameterError
from biglp._rows import Encoding, as_source

N = 300
NUMBERS = np.arange(N)
MANY = 60_000
"""Rows of which the first ones, that are looked at, are not all."""
FORMATS = ("frame", "arrow", "parquet", "parquet direct", "feather", "csv", "two files")


def customers() -> pd.DataFrame:
    """A table with a column of each kind."""
    return pd.DataFrame(
        {
            "customer_id": [f"C{i:05d}" for i in NUMBERS],
            "joined": pd.to_datetime("2024-01-01") + pd.to_timedelta(NUMBERS % 90, unit="D"),
            "age": np.where(NUMBERS % 10 == 0, np.nan, 20.0 + NUMBERS % 50),
            "plan": np.where(
                NUMBERS % 8 == 0, None, np.array(["free", "pro", "team"])[NUMBERS % 3]
            ),
            "city": [f"city {min(i % 97, 60)}" for i in NUMBERS],
            "active": NUMBERS % 2 == 0,
            "country": ["CH"] * N,
            "note": [f"the parcel number {i} came late and was not what I wanted" for i in NUMBERS],
            "amount": [f"{i % 13}.5" if i % 20 else "unknown" for i in NUMBERS],
        }
    )


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
HOLES = pd.DataFrame({"a": [1.0, np.nan, 3.0, 5.0, np.nan], "b": [1.0, 2.0, np.nan, 6.0, 7.0]})


@pytest.fixture(params=FORMATS)
def opened(request, tmp_path):
    """A function from a data frame and options to a source in one of the formats."""
    kind = request.param

    def open_frame(frame, name="x", **options):
        path = tmp_path / f"{name}.{kind.split()[0]}"
        if kind == "frame":
            return as_source(frame, **options)
        if kind == "arrow":
            return as_source(pa.Table.from_pandas(frame, preserve_index=False), **options)
        if kind == "csv":
            frame.to_csv(path, index=False)
        elif kind == "feather":
            frame.reset_index(drop=True).to_feather(path)
        elif kind == "two files":
            path = [tmp_path / f"{name}{number}.parquet" for number in (1, 2)]
            frame.iloc[: len(frame) // 2].to_parquet(path[0], index=False)
            frame.iloc[len(frame) // 2 :].to_parquet(path[1], index=False)
        else:
            frame.to_parquet(path, row_group_size=max(len(frame) // 4, 2), index=False)
            if kind == "parquet direct":
                options.setdefault("cache", "never")
        return as_source(path, **options)

    return open_frame


def test_each_column_by_its_kind(opened):
    source = opened(customers())
    encoding = source.encoding
    assert {name: why.partition(";")[0] for name, why in encoding.left_out.items()} == {
        "customer_id": "100% of its texts are different: a name or an ID",
        "country": "has one value only",
        "note": "free text",
    }
    kinds = {column.name: (column.kind, column.width) for column in encoding.columns}
    assert kinds == {
        "joined": ("date", 1),
        "age": ("number", 2),
        "plan": ("onehot", 4),
        "city": ("frequency", 32),
        "active": ("number", 1),
        "amount": ("number", 2),
    }
    rows = source.read(0, N)
    named = dict(zip(source.feature_names, rows.T, strict=True))
    np.testing.assert_array_equal(named["joined"], 19723 + NUMBERS % 90)
    median = np.median(20 + (NUMBERS % 50)[NUMBERS % 10 != 0])
    np.testing.assert_array_equal(
        named["age"], np.where(NUMBERS % 10 == 0, median, 20 + NUMBERS % 50)
    )
    np.testing.assert_array_equal(named["age is missing"], NUMBERS % 10 == 0)
    np.testing.assert_array_equal(named["plan=pro"], (NUMBERS % 3 == 1) & (NUMBERS % 8 != 0))
    np.testing.assert_array_equal(named["plan is missing"], NUMBERS % 8 == 0)
    city = customers()["city"]
    count = city.map(city.value_counts()).to_numpy()
    np.testing.assert_allclose(named["city: frequency"], np.log(count), rtol=1e-6)
    np.testing.assert_array_equal(named["city=city 60"], NUMBERS % 97 >= 60)
    np.testing.assert_array_equal(named["active"], NUMBERS % 2 == 0)
    np.testing.assert_array_equal(named["amount is missing"], NUMBERS % 20 == 0)
    wanted = as_source(customers())  # the same rows from every format
    assert source.feature_names == wanted.feature_names
    np.testing.assert_array_equal(rows, wanted.read(0, N).astype(source.dtype))
    some = np.array([3, 40, 299])
    np.testing.assert_array_equal(source.take(some), rows[some])


def test_new_tables_are_treated_alike(opened):
    first = as_source(customers())
    encoding = Encoding.from_json(json.loads(json.dumps(first.encoding.to_json())))
    assert encoding == first.encoding
    new = customers().iloc[::-1, ::-1].copy()
    new["plan"] = ["gold", None, *new["plan"][2:]]
    new["active"] = new["active"].astype("boolean")
    new.loc[new.index[0], "active"] = None  # never missing before
    new = new.drop(columns=["note", "customer_id", "country"])
    rows = opened(new, encoding=encoding).read(0, N)
    named = dict(zip(first.feature_names, rows.T, strict=True))
    assert [named[f"plan{end}"][0] for end in ("=free", "=pro", "=team", " is missing")] == [0] * 4
    assert named["plan is missing"][1] == 1
    np.testing.assert_array_equal(rows[2:], first.read(0, N)[::-1][2:])
    with pytest.raises(BadRowsError, match=r"lacks 1 of the 6 columns .*: 'city'. It has: "):
        opened(new.drop(columns="city"), "less", encoding=encoding)


def test_chosen_columns_in_their_order(opened):
    source = opened(FRAME, columns=["count", "size"])
    assert source.feature_names == ("count", "size")
    np.testing.assert_array_equal(source.read(0, 4), FRAME[["count", "size"]])
    wrong = pd.DataFrame({"size": ["big", "small"] * 2, "count": [1, 2] * 2})
    with pytest.raises(BadRowsError, match="size"):
        opened(wrong, "wrong", encoding=source.encoding).read(0, 4)
    assert opened(FRAME, label_column="y", drop=["colour"]).feature_names == ("size", "count")


def test_columns_that_are_named_are_features_and_all_problems_are_told(opened):
    source = opened(customers(), columns=["country", "customer_id", "age"])
    assert source.encoding.left_out == {}
    assert [column.name for column in source.encoding.columns] == ["country", "customer_id", "age"]
    with pytest.raises(BadRowsError, match=r"columns 'note' hold free text.*--text note"):
        opened(customers(), columns=["age", "note"])
    with pytest.raises(BadRowsError) as caught:
        opened(customers(), categorical="error", missing="error")
    message = str(caught.value)
    for name in ("customer_id", "plan", "city", "country", "note", "amount"):
        assert f"{name!r} (" in message
    assert "'age' (30)" in message
    assert "categorical='auto', missing='auto' (--categorical auto --missing auto)" in message


def test_one_hot(opened):
    source = opened(FRAME, label_column="y", categorical="onehot")
    assert source.feature_names == ("size", "colour=blue", "colour=green", "colour=red", "count")
    np.testing.assert_array_equal(source.read(0, 4), ONE_HOT)
    np.testing.assert_array_equal(source.take(np.array([0, 3])), ONE_HOT[[0, 3]])
    new = FRAME.iloc[::-1][["count", "colour", "size"]].copy()
    new["colour"] = ["violet", "red", "blue", "red"]  # violet is new
    expected = ONE_HOT[::-1].copy()
    expected[0, 1:4] = 0
    again = opened(new, "new", encoding=json.loads(json.dumps(source.encoding.to_json())))
    np.testing.assert_array_equal(again.read(0, 4), expected)
    assert again.dtype == source.dtype


def test_missing_values_are_counted_or_become_means(opened):
    with pytest.raises(BadRowsError, match=r"missing values, in .*missing='mean'") as caught:
        opened(HOLES, missing="error").read(0, 5)
    if "at least" not in str(caught.value):
        assert "3 missing values, in 'a' (2), 'b' (1); first in rows 1, 2, 4 " in str(caught.value)
    source = opened(HOLES, missing="mean")
    np.testing.assert_allclose(source.read(0, 5), HOLES.fillna(HOLES.mean()).to_numpy())
    new = pd.DataFrame({"b": [np.nan, 1.0], "a": [1.0, np.nan]})
    again = opened(new, "new", encoding=source.encoding)  # the first table's means, not its own
    np.testing.assert_allclose(again.read(0, 2), [[1.0, 4.0], [3.0, 1.0]])
    encoding = opened(FRAME, columns=["colour"], categorical="onehot").encoding
    numbers = opened(pd.DataFrame({"colour": [1, 2]}), "numbers", encoding=encoding)
    np.testing.assert_array_equal(numbers.read(0, 2), np.zeros((2, 3)))


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


@pytest.mark.parametrize(
    ("table", "options", "message"),
    [
        (FRAME, {"columns": ["weight"]}, r"columns: .* has no column 'weight'; it has 'size'"),
        (FRAME, {"label_column": "z"}, r"label_column: .* has no column 'z'"),
        (FRAME, {"label_column": "y", "columns": ["y"]}, "'y' cannot be a feature and the label"),
        (FRAME, {"columns": "size"}, "must be a list of column names"),
        ({"n": [1.0, 2.0], "m": pa.nulls(2)}, {"missing": "mean"}, "'m' have no value at all"),
        ({"s": [{"a": 1}]}, {"categorical": "error"}, r"'s' \(struct.*neither numbers nor text"),
        ({"id": [*map(str, range(1001))]}, {"categorical": "onehot"}, "1,000 different texts"),
        ({"a": NUMBERS, "b": [1.0] * N}, {}, "no column that can be a feature: 'a': it counts"),
    ],
)
def test_columns_that_cannot_be_features(table, options, message):
    frame = table is FRAME
    with pytest.raises(ParameterError if frame else BadRowsError, match=message):
        as_source(table if frame else pa.table(table), **options)


def test_a_column_of_objects_is_left_out():
    source = as_source(pa.table({"parts": [{"a": 1}], "n": [1.0]}))
    assert source.feature_names == ("n",)
    assert "holds struct<a: int64>" in source.encoding.left_out["parts"]


def test_frames_of_plain_numbers_stay_arrays():
    frame = FRAME[["size", "count"]]
    assert as_source(frame).name == "array"
    assert as_source(frame.set_axis(["a", "a"], axis=1)).name == "array"
    nullable = pd.DataFrame({"n": pd.array([1, None], dtype="Int64")})
    with pytest.raises(BadRowsError, match="1 missing values"):
        as_source(nullable, missing="error").read(0, 2)


def test_times_and_lengths_of_time():
    table = pa.table(
        {
            "t": pa.array([0, 43_200, 3600, None], pa.time32("s")),
            "d": pa.array([86_400_000, 0, None, 43_200_000], pa.duration("ms")),
            "m": pa.array([0, 129_600, None, 1], pa.timestamp("s", tz="UTC")),
        }
    )
    rows = as_source(table).read(0, 4)
    np.testing.assert_allclose(rows[:, 0], [0, 12, 1, 1])
    np.testing.assert_allclose(rows[:, 2], [1, 0, 0.5, 0.5])
    np.testing.assert_allclose(rows[[0, 1], 4], [0, 1.5])
    np.testing.assert_array_equal(rows[:, [1, 3, 5]], [[0, 0, 0], [0, 0, 0], [0, 1, 1], [1, 0, 0]])


# Columns that must be read to their end -----------------------------------------------------------


def test_text_that_turns_up_late_makes_no_difference(tmp_path):
    """A file's first block tells the types; where a text stands must not change what is done."""
    lines = [f"2024-01-{i % 28 + 1:02d},{i % 7},true,{'-' * 80}" for i in range(20_000)]
    read = []
    for position in (7, 19_993):
        there = [*lines[:position], "never,none,perhaps,", *lines[position:]]
        path = tmp_path / f"{position}.csv"
        path.write_text("\n".join(["when,n,flag,long", *there]) + "\n")
        source = as_source(path, drop=["long"])
        read.append((source.feature_names, np.delete(source.read(0, 20_001), position, axis=0)))
    assert read[0][0] == read[1][0]
    np.testing.assert_array_equal(read[0][1], read[1][1])
    assert {"n", "n is missing", "flag=true", "flag=perhaps"} <= set(read[0][0])


def test_a_first_file_that_has_no_value_of_a_column(tmp_path):
    """Its type is then unknown there, as pandas before 3 writes it, and known in the next."""
    numbers = np.arange(60.0) % 7
    pq.write_table(pa.table({"x": numbers, "c": pa.nulls(60)}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"x": numbers, "c": ["a", "b"] * 30}), tmp_path / "2.parquet")
    source = as_source([tmp_path / "1.parquet", tmp_path / "2.parquet"])
    assert source.feature_names == ("x", "c=a", "c=b", "c is missing")
    np.testing.assert_array_equal(source.read(59, 61), [[3, 0, 0, 1], [0, 1, 0, 0]])


def test_the_order_of_the_rows_makes_no_difference(opened):
    """Missing values that begin beyond the rows that are looked at first count like others."""
    late, odd = np.arange(MANY) >= 52_000, np.arange(MANY) * 37 % 299
    frame = pd.DataFrame(
        {
            "x": np.where(late, np.nan, odd * odd / 7),
            "none": odd / 3,
            "whole": pd.array(np.where(late, odd, odd % 7), dtype="Int64"),
            "written": np.where(late & (odd % 30 == 0), "n/a", (odd % 11).astype(str)),
            "day": (pd.Timestamp("2024-01-01") + pd.to_timedelta(odd % 40, "D"))
            .to_series()
            .where(~late | (odd % 2 == 0))
            .dt.strftime("%d.%m.%Y")
            .to_numpy(),
            "plan": np.where(late, None, np.array(["free", "pro", "team"])[odd % 3]),
            "same": np.where(late, 2.0, 1.0),
        }
    )
    frame.loc[frame.index >= MANY - 50, "whole"] = None
    first = opened(frame)
    rows = first.read(0, MANY)
    second = opened(frame.iloc[::-1])
    assert first.feature_names == second.feature_names
    assert first.encoding.facts == second.encoding.facts
    fillings = [(c.name, c.fillings) for c in first.encoding.columns if c.width == 2]
    assert fillings == [(c.name, c.fillings) for c in second.encoding.columns if c.width == 2]
    missing = {name for name in first.feature_names if name.endswith("is missing")}
    assert missing == {f"{n} is missing" for n in ("x", "whole", "written", "day", "plan")}
    np.testing.assert_array_equal(rows, second.read(0, MANY)[::-1])
    named = dict(zip(first.feature_names, rows.T, strict=True))
    np.testing.assert_array_equal(named["x is missing"], late)
    median = np.median((odd * odd / 7)[~late])
    np.testing.assert_allclose(named["x"], np.where(late, median, odd * odd / 7), rtol=1e-6)
