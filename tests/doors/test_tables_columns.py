"""Columns of lists of numbers, of sentences, and those in the names of folders."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from sklearn.feature_extraction.text import HashingVectorizer

from array_files import list_column
from biglp import LowRankLabelPropagation
from biglp._core import BadRowsError, ParameterError
from biglp._rows import Encoding, InputFiles, as_source
from cli_tools import done, failed
from helpers import blobs
from label_files import read_labels
from made_tables import articles, some_labels

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


def test_lists_on_the_command_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, y, _ = blobs(n=300, features=6, dtype=np.float32)
    table = pa.table({"emb": list_column("list", X), "age": X[:, 0], "y": pa.array(y, mask=y < 0)})
    pq.write_table(table, "x.parquet", row_group_size=70)
    np.save("x.npy", X)
    np.save("y.npy", y)
    done("fit", "x.npy", "--labels", "y.npy", "-o", "a", "-q")
    done("fit", "x.parquet", "--columns", "emb", "--label-column", "y", "-o", "b", "-q")
    found = pq.read_table("b/labels.parquet")["label"].to_numpy()
    np.testing.assert_array_equal(found, np.load("a/labels.npy"))
    done("predict", "b/model.biglp", "x.npy", "-o", "c.npy", "-q")
    np.testing.assert_array_equal(np.load("c.npy"), np.load("a/labels.npy"))
    assert "list" in done("inspect", "x.parquet", "--label-column", "y", "--json").output
    np.save("narrow.npy", X[:, :5])
    assert "features" in failed(3, "predict", "b/model.biglp", "narrow.npy", "-o", "d.npy")


# Sentences ---------------------------------------------------------------------------------------


WORDS = 1 << 18


@pytest.mark.parametrize("kind", ["frame", "csv", "parquet", "parquet direct"])
def test_words_come_after_the_other_columns(tmp_path, kind):
    frame, _ = articles()
    frame.loc[3, "text"] = None
    options = {"text": ["text"]}
    if kind == "csv":
        frame.to_csv(tmp_path / "x.csv", index=False)
        source = as_source(tmp_path / "x.csv", **options)
    elif kind.startswith("parquet"):
        frame.to_parquet(tmp_path / "x.parquet", row_group_size=70)
        options |= {"cache": "never"} if "direct" in kind else {}
        source = as_source(tmp_path / "x.parquet", **options)
    else:
        source = as_source(frame, **options)
    assert (source.is_sparse, source.words_from, source.n_features) == (True, 4, 4 + WORDS)
    rows = source.read(0, 300)
    np.testing.assert_allclose(rows[:, 0].toarray().ravel(), frame["size"])
    np.testing.assert_array_equal(rows[:, 1:4].toarray(), np.tile(np.eye(3), (100, 1)))
    wanted = HashingVectorizer(n_features=WORDS, alternate_sign=False, norm=None).transform(
        frame["text"].fillna("")
    )
    assert (rows[:, 4:] != wanted).nnz == 0
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


def test_sentences_are_words_where_nothing_else_is_a_feature():
    frame, _ = articles()
    for others in ({}, {"key": [f"k{n}" for n in range(len(frame))]}):
        alone = as_source(frame[["text"]].assign(**others))
        assert alone.encoding.text_columns == ["text"]
        assert alone.is_sparse
        named = as_source(frame[["text"]], text=["text"])
        assert (alone.read(0, 20) != named.read(0, 20)).nnz == 0
    beside = as_source(frame[["text"]].assign(plan=["a", "b", "c"] * (len(frame) // 3)))
    assert beside.encoding.text_columns == []
    assert list(beside.encoding.left_out) == ["text"]
    with pytest.raises(BadRowsError, match="must be numbers"):
        as_source(frame[["text"]], categorical="error")


def test_wrong_text_columns():
    frame, _ = articles()
    for rows, text, error, message in (
        (frame, ["body"], ParameterError, r"text: .* has no column 'body'"),
        (frame, "text", ParameterError, "must be a list of column names"),
        (np.eye(3), ["a"], ParameterError, r"text=.* means nothing for an array"),
        (pa.Table.from_pandas(frame), ["size"], BadRowsError, "'size' hold double where texts ar"),
    ):
        with pytest.raises(error, match=message):
            as_source(rows, text=text)


# Names of folders --------------------------------------------------------------------------------


FOLDERS = ("year=2023/lang=de", "year=2023/lang=en", "year=2024/lang=a%20b")


def write_json(table, path):
    path.write_text("".join(f'{{"a": {row["a"]}}}\n' for row in table.to_pylist()))


def write_arrow(table, path):
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)


WRITERS = {
    ".parquet": pq.write_table,
    ".csv": pyarrow.csv.write_csv,
    ".arrow": write_arrow,
    ".jsonl": write_json,
}


@pytest.fixture(params=WRITERS)
def folder(request, tmp_path):
    """Two rows in each folder."""
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
