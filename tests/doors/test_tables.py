"""Tables as people have them: which columns become features, and of what kind."""

import json
import pickle
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from sklearn.feature_extraction.text import HashingVectorizer

from array_files import list_column
from biglp import LowRankLabelPropagation
from biglp._core import BadRowsError, InputWarning, ParameterError
from biglp._rows import Encoding, InputFiles, as_source
from label_files import read_labels
from made_tables import articles, some_labels

N = 300
NUMBERS = np.arange(N)
MANY = 60_000
"""Rows of which the first ones, that are looked at, are not all."""
FORMATS = ("frame", "arrow", "parquet", "parquet direct", "feather", "csv", "two files")


def customers() -> pd.DataFrame:
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
HOLES = pd.DataFrame({"a": [1.0, np.nan, 3.0, 5.0, np.nan], "b": [1.0, 2.0, np.nan, 6.0, 7.0]})


@pytest.fixture(params=FORMATS)
def opened(request, tmp_path):
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
    kinds = [(column.name, column.kind, column.width) for column in encoding.columns]
    assert kinds == [
        ("joined", "date", 1),
        ("age", "number", 2),
        ("plan", "onehot", 4),
        ("city", "frequency", 32),
        ("active", "number", 1),
        ("amount", "number", 2),
    ]
    rows = source.read(0, N)
    named = dict(zip(source.feature_names, rows.T, strict=True))
    median = np.median(20 + (NUMBERS % 50)[NUMBERS % 10 != 0])
    count = customers()["city"].map(customers()["city"].value_counts()).to_numpy()
    for name, wanted in {
        "joined": 19723 + NUMBERS % 90,
        "age": np.where(NUMBERS % 10 == 0, median, 20 + NUMBERS % 50),
        "age is missing": NUMBERS % 10 == 0,
        "plan=pro": (NUMBERS % 3 == 1) & (NUMBERS % 8 != 0),
        "plan is missing": NUMBERS % 8 == 0,
        "city: frequency": np.log(count),
        "city=city 60": NUMBERS % 97 >= 60,
        "active": NUMBERS % 2 == 0,
        "amount is missing": NUMBERS % 20 == 0,
    }.items():
        np.testing.assert_allclose(named[name], wanted, rtol=1e-6, err_msg=name)
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
    with pytest.warns(InputWarning, match=r"lacks? 1 of the 6 columns .*: 'city'\. They count as"):
        less = opened(new.drop(columns="city"), "less", encoding=encoding)
    np.testing.assert_array_equal(
        less.read(0, N), opened(new.assign(city=None), "none", encoding=encoding).read(0, N)
    )
    with pytest.raises(BadRowsError, match=r"lacks 6 of the 6 columns .*\. It has: 'size'"):
        opened(FRAME[["size"]], "other", encoding=encoding)


def test_chosen_columns_in_their_order(opened):
    source = opened(FRAME, columns=["count", "size"])
    assert source.feature_names == ("count", "size")
    np.testing.assert_array_equal(source.read(0, 4), FRAME[["count", "size"]])
    chosen = opened(FRAME, label_column="y", drop=["size"], categorical="onehot")
    assert chosen.feature_names == ("colour=blue", "colour=green", "colour=red", "count")
    assert chosen.read(0, 1).tolist() == [[0, 0, 1, 1]]


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


LISTS = ("list", "large_list", "fixed_size_list")


# Lists of numbers --------------------------------------------------------------------------------


@pytest.fixture
def rows():
    return np.random.default_rng(0).normal(size=(100, 5)).astype(np.float32)


@pytest.mark.parametrize("kind", LISTS)
def test_any_type_of_numbers_without_a_copy(rows, kind):
    for dtype in ("float16", "float32", "float64", "int8", "uint32", "int64"):
        values = (rows > 0 if dtype == "uint32" else 100 * rows).astype(np.int64).astype(dtype)
        source = as_source(pa.table({"emb": list_column(kind, values)}))
        assert source.dtype == dtype
        first, again = source.read(10, 90), source.read(20, 50)
        np.testing.assert_array_equal(first, values[10:90])
        assert np.shares_memory(first, again)
        assert not first.flags.writeable


@pytest.mark.parametrize("kind", LISTS)
@pytest.mark.parametrize("cache", ["auto", "never"])
def test_lists_beside_numbers(tmp_path, rows, kind, cache):
    table = pa.table(
        {
            "age": np.arange(100, dtype=np.int16),
            "emb": list_column(kind, rows),
            "y": ["a", "b"] * 50,
            "small": list_column(kind, rows[:, :1] + 1),
        }
    )
    pq.write_table(table, tmp_path / "x.parquet", row_group_size=30)
    columns = ["emb", "age", "small"]
    source = as_source(tmp_path / "x.parquet", columns=columns, cache=cache)
    ages = np.arange(100, dtype=np.float32)
    expected = np.column_stack([rows, ages, rows[:, 0] + 1])
    assert source.feature_names == (*(f"emb[{i}]" for i in range(5)), "age", "small[0]")
    np.testing.assert_array_equal(source.read(0, 100), expected)
    np.testing.assert_array_equal(source.take(np.array([3, 31, 99])), expected[[3, 31, 99]])
    stored = Encoding.from_json(source.encoding.to_json())
    assert stored == source.encoding
    again = as_source(table.select(["small", "y", "age", "emb"]), encoding=stored)
    np.testing.assert_array_equal(again.read(0, 100), expected)


@pytest.mark.parametrize(
    ("lists", "message"),
    [
        ([[1.0, 2.0]] * 7 + [None] * 2, r"'emb' has no list in .*2 rows, first in rows 7, 8 "),
        ([[1.0, 2.0]] * 3 + [[1.0]], "'emb' has lists of 1 numbers where others have 2 .* rows 3"),
        ([[1.0, 2.0], [None, 1.0]], r"'emb' has lists with missing numbers .* rows 1 "),
        ([[1.0, 2.0]] + [[]] * 9, r"lists of 0 numbers .* 9 rows, first in rows 1, 2, 3, 4, 5 "),
        ([None, None], r"'emb' .* holds no list with numbers in it"),
        ([[], []], r"'emb' .* holds no list with numbers in it"),
    ],
)
def test_wrong_lists_are_named(tmp_path, lists, message):
    table = pa.table({"emb": pa.array(lists, pa.list_(pa.float32()))})
    pq.write_table(table, tmp_path / "x.parquet", row_group_size=2)
    for cache in ("auto", "never"):
        with pytest.raises(BadRowsError, match=message):
            as_source(tmp_path / "x.parquet", cache=cache).read(0, len(lists))


def test_missing_lists_and_other_lengths_in_a_later_file(tmp_path, rows):
    table = pa.table({"emb": pa.array([[1, 2], None], pa.list_(pa.int32(), 2))})
    with pytest.raises(BadRowsError, match=r"'emb' has no list .* first in rows 1 "):
        as_source(table).read(0, 2)
    pq.write_table(pa.table({"emb": list_column("list", rows)}), tmp_path / "1.parquet")
    other = pa.table({"emb": list_column("list", rows[:, :4])})
    pq.write_table(other, tmp_path / "2.parquet")
    with pytest.raises(BadRowsError, match=r"lists of 4 numbers.* 5 .* rows 100, 101"):
        as_source(tmp_path)
    pq.write_table(pa.table({"emb": ["a"] * 3}), tmp_path / "2.parquet")
    with pytest.raises(BadRowsError, match=r"2.parquet: columns 'emb' hold text where lists of"):
        as_source(tmp_path)
    storage = list_column("fixed_size_list", rows[:, :4])  # tensors are lists
    tensors = pa.ExtensionArray.from_storage(pa.fixed_shape_tensor(pa.float32(), [2, 2]), storage)
    np.testing.assert_array_equal(as_source(pa.table({"t": tensors})).read(0, 9), rows[:9, :4])


# Sentences ---------------------------------------------------------------------------------------


WORDS = 1 << 18


def test_words_come_after_the_other_columns(opened):
    frame, _ = articles()
    frame.loc[3, "text"] = None
    source = opened(frame, text=["text"])
    rows = source.read(0, 300)
    assert (source.is_sparse, source.words_from, source.n_features) == (True, 4, rows.shape[1])
    np.testing.assert_allclose(rows[:, 0].toarray().ravel(), frame["size"])
    np.testing.assert_array_equal(rows[:, 1:4].toarray(), np.tile(np.eye(3), (100, 1)))
    hashing = HashingVectorizer(n_features=WORDS, alternate_sign=False, norm=None)
    assert (rows[:, 4 : 4 + WORDS] != hashing.transform(frame["text"].fillna(""))).nnz == 0
    some = np.array([3, 150, 299])
    assert (source.take(some) != rows[some]).nnz == 0
    assert (source.read(60, 150) != rows[60:150]).nnz == 0


def test_text_alone_and_beside_columns(tmp_path):
    frame, topic = articles()
    y = some_labels(topic, 40)
    alone = LowRankLabelPropagation(text=["text"], columns=[]).fit(frame, y)
    assert alone.report_["scaling"] == "text"
    assert (alone.transduction_ == topic).mean() > 0.9
    assert (alone.predict(frame[["text"]]) == alone.transduction_).mean() > 0.9
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "the labels come from one region")
        model = LowRankLabelPropagation(text=["text"]).fit(frame, y)
        without = LowRankLabelPropagation().fit(frame, y)
    assert (model.report_["scaling"], model.report_["text_columns"]) == ("mixed", ["text"])
    assert (model.transduction_ == topic).mean() > 0.8
    model.save(tmp_path / "model")
    again = LowRankLabelPropagation.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(frame), model.predict(frame))
    assert "text=['text']" in without.report_["left_out_columns"]["text"]
    assert without.report_["text_columns"] == []


# Names of folders --------------------------------------------------------------------------------


FOLDERS = ("year=2023/lang=de", "year=2023/lang=en", "year=2024/lang=a%20b")


WRITERS = {
    ".parquet": pq.write_table,
    ".csv": pyarrow.csv.write_csv,
    ".arrow": pyarrow.feather.write_feather,
    ".jsonl": lambda table, path: table.to_pandas().to_json(path, orient="records", lines=True),
}


@pytest.fixture(params=WRITERS)
def folder(request, tmp_path):
    for number, name in enumerate(FOLDERS):
        place = tmp_path / "t" / name
        place.mkdir(parents=True)
        path = place / f"part{request.param}"
        WRITERS[request.param](pa.table({"a": [number + 0.5, number + 0.75]}), path)
    return tmp_path / "t"


def test_they_are_columns(folder):
    columns = InputFiles(folder).peek().columns
    assert (columns["year"], columns["lang"]) == ("int64", "string")
    source = as_source(folder, label_column="lang")
    expected = [[0.5, 2023], [0.75, 2023], [1.5, 2023], [1.75, 2023], [2.5, 2024], [2.75, 2024]]
    assert source.feature_names == ("a", "year")
    np.testing.assert_array_equal(source.read(0, 6), expected)
    np.testing.assert_array_equal(source.take(np.array([1, 4])), [expected[1], expected[4]])
    again = pickle.loads(pickle.dumps(source))
    np.testing.assert_array_equal(again.read(1, 5), expected[1:5])
    assert as_source(folder, drop=["lang", "year"]).feature_names == ("a",)
    assert as_source(folder, columns=["year"]).read(0, 6)[:, 0].tolist() == [2023] * 4 + [2024] * 2


def test_they_are_labels_and_categories(folder):
    labels = read_labels(folder, 6, column="lang")
    assert labels.tolist() == ["de", "de", "en", "en", "a b", "a b"]
    np.testing.assert_array_equal(read_labels(folder, 6, column="year"), [2023] * 4 + [2024] * 2)
    source = as_source(folder, drop=["a", "year"], categorical="onehot")
    assert source.feature_names == ("lang=a b", "lang=de", "lang=en")
    np.testing.assert_array_equal(source.read(0, 6).argmax(axis=1), [1, 1, 2, 2, 0, 0])
    with pytest.raises(BadRowsError, match=r"'lang' \(string, in the folder lang=de\) hold text"):
        as_source(folder, categorical="error")
    # A key with one value says nothing, but a model may know it.
    part = folder / "year=2023"
    assert as_source(part, drop=["lang"]).feature_names == ("a",)
    known = as_source(folder, drop=["lang"]).encoding
    np.testing.assert_array_equal(as_source(part, encoding=known).read(0, 4)[:, 1], [2023] * 4)
    assert as_source(next(part.rglob("part*"))).feature_names == ("a",)


def test_values_of_folders(tmp_path):
    def put(table, *names):
        for name in names:
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(pa.table(table), tmp_path / name)

    put({"a": [1.0]}, *(f"n/n={n}/x.parquet" for n in ("1", "2.5", "__HIVE_DEFAULT_PARTITION__")))
    with pytest.raises(BadRowsError, match=r"1 missing values, in 'n' \(1\); first in rows 2"):
        as_source(tmp_path / "n", missing="error")
    assert as_source(tmp_path / "n", missing="mean").read(0, 3)[:, 1].tolist() == [1, 2.5, 1.75]
    put({"a": [7.0]}, "own/a=1/x.parquet", "own/a=2/x.parquet")  # the file's own column is kept
    assert as_source(tmp_path / "own").read(0, 2).tolist() == [[7], [7]]
    put({"a": [1.0]}, "mixed/n=1/x.parquet", "mixed/y.parquet")
    with pytest.raises(BadRowsError, match=r"is in a folder n=….*y.parquet is not"):
        as_source(tmp_path / "mixed")
