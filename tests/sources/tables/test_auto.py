"""Tables as people have them become features without any option."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from biglp._core.errors import BadRowsError
from biglp._rows import as_source
from biglp._rows.encoding import Encoding
from biglp._tables.encode_columns import tally

N = 300
NUMBERS = np.arange(N)


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


@pytest.fixture(params=["frame", "parquet", "parquet direct", "csv", "two files"])
def opened(request, tmp_path):
    """A function from a data frame and options to a source in one of the formats."""

    def open_frame(frame, **options):
        if request.param == "frame":
            return as_source(frame, **options)
        if request.param == "csv":
            frame.to_csv(tmp_path / "x.csv", index=False)
            return as_source(tmp_path / "x.csv", **options)
        if request.param == "two files":
            frame.iloc[:100].to_parquet(tmp_path / "1.parquet")
            frame.iloc[100:].to_parquet(tmp_path / "2.parquet")
            return as_source([tmp_path / "1.parquet", tmp_path / "2.parquet"], **options)
        frame.to_parquet(tmp_path / "x.parquet", row_group_size=70)
        if "direct" in request.param:
            options["cache"] = "never"
        return as_source(tmp_path / "x.parquet", **options)

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
    count = np.array(
        [customers()["city"].value_counts()[f"city {min(i % 97, 60)}"] for i in NUMBERS]
    )
    np.testing.assert_allclose(named["city: frequency"], np.log(count), rtol=1e-6)
    np.testing.assert_array_equal(named["city=city 60"], NUMBERS % 97 >= 60)
    np.testing.assert_array_equal(named["active"], NUMBERS % 2 == 0)
    np.testing.assert_array_equal(named["amount is missing"], NUMBERS % 20 == 0)


def test_all_formats_give_the_same_rows(opened):
    wanted = as_source(customers())
    source = opened(customers())
    assert source.feature_names == wanted.feature_names
    np.testing.assert_array_equal(source.read(0, N), wanted.read(0, N).astype(source.dtype))
    some = np.array([3, 40, 299])
    np.testing.assert_array_equal(source.take(some), source.read(0, N)[some])


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


def test_columns_that_are_asked_for_are_features(opened):
    source = opened(customers(), columns=["country", "customer_id", "age"])
    assert source.encoding.left_out == {}
    assert [column.name for column in source.encoding.columns] == ["country", "customer_id", "age"]
    with pytest.raises(BadRowsError, match=r"columns 'note' hold free text.*--text note"):
        opened(customers(), columns=["age", "note"])


def test_all_problems_at_once(opened):
    with pytest.raises(BadRowsError) as caught:
        opened(customers(), categorical="error", missing="error")
    message = str(caught.value)
    for name in ("customer_id", "plan", "city", "country", "note", "amount"):
        assert f"{name!r} (" in message
    assert "'age' (30)" in message
    assert "categorical='auto', missing='auto' (--categorical auto --missing auto)" in message


def test_text_that_turns_up_late_makes_no_difference(tmp_path, monkeypatch):
    """A block of a file tells the types; where a text stands must not change what is done."""
    lines = ["when,n,flag", *(f"2024-01-{i % 28 + 1:02d},{i % 7},true" for i in range(400))]
    lines[380] = "never,none,perhaps"
    (tmp_path / "x.csv").write_text("\n".join(lines) + "\n")
    found = []
    for size in (1 << 20, 512):
        monkeypatch.setattr("biglp._tables.delimited.BLOCK_BYTES", size)
        source = as_source(tmp_path / "x.csv")
        found.append((source.feature_names, source.read(0, 400)))
    assert found[0][0] == found[1][0]
    np.testing.assert_array_equal(found[0][1], found[1][1])
    assert {"n", "n is missing", "flag=true", "flag=perhaps"} <= set(found[0][0])


def test_missing_beyond_the_first_look(tmp_path, monkeypatch):
    monkeypatch.setattr("biglp._tables.detect_kinds.LOOK_ROWS", 50)
    monkeypatch.setattr("biglp._tables.detect_kinds.LEAST_LOOK_ROWS", 50)
    values = [float(i % 5) for i in range(100)]
    late = [*values, None]
    texts = ["a"] * 60 + ["b"] * 41
    table = pa.table({"x": late, "same": [1.0] * 100 + [2.0], "c": texts, "one": [3] * 101})
    pq.write_table(table, tmp_path / "x.parquet")
    source = as_source(tmp_path / "x.parquet")
    # "one" was looked through
    assert source.feature_names == ("x", "x is missing", "same", "c=a", "c=b")
    assert source.encoding.left_out == {"one": "has one value only"}
    np.testing.assert_array_equal(source.read(100, 101), [[2, 1, 2, 0, 1]])


def test_a_first_file_that_has_no_value_of_a_column(tmp_path, monkeypatch):
    """Its type is then unknown there, as pandas before 3 writes it, and known in the next."""
    monkeypatch.setattr("biglp._tables.detect_kinds.LOOK_ROWS", 50)
    monkeypatch.setattr("biglp._tables.detect_kinds.LEAST_LOOK_ROWS", 50)
    numbers = np.arange(60.0) % 7
    pq.write_table(pa.table({"x": numbers, "c": pa.nulls(60)}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"x": numbers, "c": ["a", "b"] * 30}), tmp_path / "2.parquet")
    source = as_source([tmp_path / "1.parquet", tmp_path / "2.parquet"])
    assert source.feature_names == ("x", "c=a", "c=b", "c is missing")
    np.testing.assert_array_equal(source.read(59, 61), [[3, 0, 0, 1], [0, 1, 0, 0]])


def test_the_order_of_the_rows_makes_no_difference(opened, monkeypatch):
    """Missing values that begin beyond the rows that are looked at first count like others."""
    monkeypatch.setattr("biglp._tables.detect_kinds.LOOK_ROWS", 50)
    monkeypatch.setattr("biglp._tables.detect_kinds.LEAST_LOOK_ROWS", 50)
    late = np.arange(N) >= 200
    odd = NUMBERS * 37 % N
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
    frame.loc[NUMBERS >= 250, "whole"] = None
    first = opened(frame)
    rows = first.read(0, N)
    second = opened(frame.iloc[::-1])
    assert first.feature_names == second.feature_names
    assert first.encoding.facts == second.encoding.facts
    fillings = [(c.name, c.fillings) for c in first.encoding.columns if c.width == 2]
    assert fillings == [(c.name, c.fillings) for c in second.encoding.columns if c.width == 2]
    missing = {name for name in first.feature_names if name.endswith("is missing")}
    assert missing == {f"{n} is missing" for n in ("x", "whole", "written", "day", "plan")}
    np.testing.assert_array_equal(rows, second.read(0, N)[::-1])
    named = dict(zip(first.feature_names, rows.T, strict=True))
    np.testing.assert_array_equal(named["x is missing"], late)
    median = np.median((odd * odd / 7)[~late])
    np.testing.assert_allclose(named["x"], np.where(late, median, odd * odd / 7), rtol=1e-6)


def test_statistics_of_parquet_save_a_pass(tmp_path, monkeypatch):
    """Only columns that may lack values are read twice."""
    monkeypatch.setattr("biglp._tables.detect_kinds.LOOK_ROWS", 50)
    monkeypatch.setattr("biglp._tables.detect_kinds.LEAST_LOOK_ROWS", 50)
    days = pd.to_datetime("2024-01-01") + pd.to_timedelta(NUMBERS * 7 % 90, unit="D")
    odd = NUMBERS * 37 % N
    table = pa.table(
        {
            "day": pa.array(days.date),
            "whole": odd % 99,
            "flag": odd % 2 == 0,
            "lacks": pa.array([None if n > 250 else n % 5 for n in odd]),
            "float": odd / 3,
        }
    )
    pq.write_table(table, tmp_path / "x.parquet", row_group_size=70)
    pq.write_table(table, tmp_path / "y.parquet", row_group_size=70, write_statistics=False)
    read = []
    monkeypatch.setattr(
        "biglp._tables.encode_columns.tally",
        lambda files, texts, sums: read.append(list(sums)) or tally(files, texts, sums),
    )
    known = as_source(tmp_path / "x.parquet").encoding
    assert read == [["lacks", "float"]]
    read.clear()
    assert as_source(tmp_path / "y.parquet").encoding == known
    assert read == [["day", "whole", "flag", "lacks", "float"]]
    assert known.facts["day"] == {"missing": 0, "low": 19723, "high": 19812}


def test_nothing_left():
    with pytest.raises(BadRowsError, match=r"no column that can be a feature: 'a': it counts.*"):
        as_source(pd.DataFrame({"a": NUMBERS, "b": 1.0}))


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
