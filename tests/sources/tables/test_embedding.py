"""Columns of lists of numbers."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from array_files import list_column
from biglp._core.errors import BadRowsError
from biglp._rows import Encoding, as_source
from biglp._tables import parquet
from cli_tools import done, failed
from helpers import blobs

KINDS = ("list", "large_list", "fixed_size_list")


@pytest.fixture
def rows():
    return np.random.default_rng(0).normal(size=(100, 5)).astype(np.float32)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "uint32", "int64"])
def test_any_width_of_numbers(rows, kind, dtype):
    values = (100 * rows).astype(np.int64).astype(dtype) if dtype != "uint32" else rows > 0
    values = values.astype(dtype)
    source = as_source(pa.table({"emb": list_column(kind, values)}))
    assert source.dtype == dtype
    np.testing.assert_array_equal(source.read(10, 90), values[10:90])


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_copied_where_there_is_one_column(rows, kind):
    table = pa.table({"emb": list_column(kind, rows)})
    source = as_source(table)
    first, again = source.read(10, 60), source.read(20, 50)
    assert np.shares_memory(first, again)
    assert not first.flags.writeable


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("cache", ["auto", "never"])
def test_beside_numbers(tmp_path, rows, kind, cache):
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


def test_filled_numbers_beside_it(rows):
    ages = [None, 1.0, 3.0] + [2.0] * 97
    table = pa.table({"emb": list_column("list", rows), "age": ages})
    found = as_source(table, missing="mean").read(0, 2)
    np.testing.assert_array_equal(found, np.column_stack([rows[:2], [2.0, 1.0]]))


@pytest.mark.parametrize(
    ("lists", "message"),
    [
        (
            [[1.0, 2.0]] * 7 + [None, None],
            r"'emb' has no list in .*2 rows, first in rows 7, 8 ",
        ),
        (
            [[1.0, 2.0]] * 3 + [[1.0]],
            r"'emb' has lists of 1 numbers where others have 2 .* rows 3",
        ),
        (
            [[1.0, 2.0], [None, 1.0]],
            r"'emb' has lists with missing numbers .* rows 1 ",
        ),
        ([[1.0, 2.0]] + [[]] * 9, r"lists of 0 numbers .* 9 rows, first in rows 1, 2, 3, 4, 5 "),
        ([None, None], r"'emb' .* holds no list with numbers in it"),
        ([[], []], r"'emb' .* holds no list with numbers in it"),
    ],
)
@pytest.mark.parametrize("cache", ["auto", "never"])
def test_what_is_wrong_is_named(tmp_path, lists, message, cache):
    table = pa.table({"emb": pa.array(lists, pa.list_(pa.float32()))})
    pq.write_table(table, tmp_path / "x.parquet", row_group_size=2)
    with pytest.raises(BadRowsError, match=message):
        as_source(tmp_path / "x.parquet", cache=cache).read(0, len(lists))


def test_missing_lists_of_a_fixed_size():
    table = pa.table({"emb": pa.array([[1, 2], None], pa.list_(pa.int32(), 2))})
    with pytest.raises(BadRowsError, match=r"'emb' has no list .* first in rows 1 "):
        as_source(table).read(0, 2)


def test_another_length_in_a_later_file(tmp_path, rows):
    for number, part in enumerate((rows, rows[:, :4])):
        table = pa.table({"emb": list_column("fixed_size_list", part)})
        pq.write_table(table, tmp_path / f"{number}.parquet")
    with pytest.raises(BadRowsError, match=r"lists of 4 numbers, not 5 .* rows 100, 101"):
        as_source(tmp_path)


def test_text_where_lists_are_expected(tmp_path, rows):
    pq.write_table(pa.table({"emb": list_column("list", rows)}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"emb": ["a"] * 3}), tmp_path / "2.parquet")
    with pytest.raises(BadRowsError, match=r"2.parquet: columns 'emb' hold text where lists of"):
        as_source(tmp_path)


def test_tensors_are_lists(rows):
    storage = list_column("fixed_size_list", rows[:, :4])
    tensors = pa.ExtensionArray.from_storage(pa.fixed_shape_tensor(pa.float32(), [2, 2]), storage)
    np.testing.assert_array_equal(as_source(pa.table({"t": tensors})).read(0, 9), rows[:9, :4])


def test_long_lists_are_decoded_a_few_rows_at_a_time(tmp_path, rows, monkeypatch):
    monkeypatch.setattr(parquet, "BATCH_BYTES", 400)
    table = pa.table({"emb": list_column("list", rows), "y": np.arange(100, dtype=np.int32)})
    pq.write_table(table, tmp_path / "x.parquet")
    file = parquet.ParquetTable(str(tmp_path / "x.parquet"), None)
    assert max(batch.num_rows for batch in file.batches(["emb"])) <= 400 // (5 * 4)
    assert max(batch.num_rows for batch in file.batches(["y"])) > 50


def test_on_the_command_line(tmp_path, monkeypatch):
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
