"""Objects that hold a table: the same rows come out of each, whatever library made it."""

import pickle
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

from biglp._core import BadRowsError, InputError, ParameterError
from biglp._rows import as_source
from helpers import blobs, model

ROWS = np.random.default_rng(0).integers(-50, 50, size=(97, 3)) / 8
TABLE = pa.table({name: ROWS[:, place] for place, name in enumerate("abc")})


class Stream:
    def __init__(self, table) -> None:
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


class Batch:
    def __init__(self, table) -> None:
        self.batch = table.combine_chunks().to_batches()[0]

    def __arrow_c_array__(self, requested_schema=None):
        return self.batch.__arrow_c_array__(requested_schema)


class Spark:
    """A data frame of Spark 4, as far as it is asked."""

    columns = ("a", "b", "c")

    def toArrow(self):
        return TABLE


def make(kind: str, folder: Path, table=TABLE):
    path = folder / "x.parquet"
    pq.write_table(table, path, row_group_size=20)
    if kind.startswith("polars"):
        polars = pytest.importorskip("polars")
        frame = polars.from_arrow(table)
        return {"polars": frame, "polars query": frame.lazy().filter(True)}.get(
            kind, polars.scan_parquet(path)
        )
    if kind == "duckdb":
        duckdb = pytest.importorskip("duckdb")
        return duckdb.read_parquet(str(path))  # by the connection that stays open
    if kind.startswith("hugging"):
        whole = pytest.importorskip("datasets").Dataset(table)
        backwards = whole.select(range(96, -1, -1)).select(range(96, -1, -1))
        streamed = whole.to_iterable_dataset()
        return {"hugging": whole, "hugging chosen": backwards}.get(kind, streamed)
    dataset = pyarrow.dataset.dataset(path)
    makers = {
        "spark": Spark,
        "pandas": table.to_pandas,
        "table": lambda: table,
        "batch": lambda: Batch(table).batch,
        "dataset": lambda: dataset,
        "dataset in memory": lambda: pyarrow.dataset.dataset(table),
        "scanner": dataset.scanner,
        "reader": lambda: table.to_reader(10),
        "stream": lambda: Stream(table),
        "capsule of a batch": lambda: Batch(table),
    }
    return makers[kind]()


HELD = "biglp._tables.arrow.HELD_BYTES"
KINDS = (
    "pandas", "polars", "polars query", "polars scan", "duckdb", "table", "batch", "dataset",
    "dataset in memory", "scanner", "reader", "stream", "capsule of a batch", "spark", "hugging",
    "hugging chosen", "hugging streamed",
)  # fmt: skip


@pytest.mark.parametrize("held", [64 << 20, 100], ids=["held", "spooled"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_gives_the_same_rows(kind, held, tmp_path, monkeypatch):
    monkeypatch.setattr(HELD, held)
    source = as_source(make(kind, tmp_path))
    assert (source.n_rows, source.n_features, source.dtype) == (97, 3, np.float64)
    assert source.input_names == ("a", "b", "c")
    np.testing.assert_array_equal(source.read(0, 97), ROWS)
    some = np.arange(1, 97, 7)
    again = pickle.loads(pickle.dumps(source))
    np.testing.assert_array_equal(again.take(some), ROWS[some])


def test_any_cut_categories_and_missing_values_of_a_stream(monkeypatch):
    cuts = np.random.default_rng(0).integers(1, 97, size=(5, 4))
    for row, dtype in zip(cuts, ["float32", "int16", "float64"] * 2, strict=False):
        bounds = [0, *sorted({*row.tolist()}), 97]
        table = pa.table({name: TABLE[name].to_numpy().astype(dtype) for name in "abc"})
        parts = [table.slice(low, high - low).to_batches()[0] for low, high in pairwise(bounds)]
        reader = pa.RecordBatchReader.from_batches(table.schema, parts)
        np.testing.assert_array_equal(as_source(reader).read(0, 97), ROWS.astype(dtype))
    texts = pa.array(["x", None, "y", "x"] * 3)
    table = pa.table({"n": pa.array([1, None, 3, 4] * 3), "t": texts.dictionary_encode()})
    expected = as_source(table, categorical="onehot", missing="mean").read(0, 12)
    monkeypatch.setattr(HELD, 1)
    for rows in (table.to_reader(5), pyarrow.dataset.dataset(table)):
        found = as_source(rows, categorical="onehot", missing="mean").read(0, 12)
        np.testing.assert_array_equal(found, expected)


def test_a_data_set_keeps_its_filter_and_its_partition_columns(tmp_path):
    pa.parquet.write_to_dataset(
        TABLE.append_column("d", pa.array(["1", "2"] * 48 + ["1"])), tmp_path, ["d"]
    )
    dataset = pyarrow.dataset.dataset(tmp_path, partitioning="hive")
    assert as_source(dataset).input_names == ("a", "b", "c", "d")
    kept = as_source(dataset.filter(pyarrow.dataset.field("a") > 0), columns=["a", "d"])
    assert kept.n_rows == int((ROWS[:, 0] > 0).sum())
    with pytest.raises(ParameterError, match="cannot be read from the middle"):
        as_source(dataset, cache="never")


def test_objects_that_hold_no_rows(tmp_path):
    for kind in ("polars query", "duckdb", "dataset", "reader"):
        with pytest.raises(BadRowsError, match=r"no rows|0 sample"):
            as_source(make(kind, tmp_path, TABLE.slice(0, 0)))
    with pytest.raises(BadRowsError, match="two-dimensional"):
        as_source(pa.array([1.0, 2.0]))
    old = type("DataFrame", (), {"columns": ["a"], "toPandas": None})
    with pytest.raises(BadRowsError, match=r"DataFrame, .* give X.toPandas\(\)"):
        as_source(old())
    with pytest.raises(BadRowsError, match=r"generator, .* give an array, a data frame"):
        as_source(row for row in ROWS)
    masked = as_source(np.ma.array([[1, 2], [3, 4]], mask=[[False, True], [False, False]]))
    np.testing.assert_array_equal(masked.read(0, 2), [[1, np.nan], [3, 4]])


def test_several_hugging_face_data_sets_are_refused():
    datasets = pytest.importorskip("datasets")
    splits = datasets.DatasetDict({name: datasets.Dataset(TABLE) for name in ("train", "test")})
    with pytest.raises(BadRowsError, match=r"of 'train', 'test'; .* such as X\['train'\]"):
        as_source(splits)


def test_tensors_on_the_processor():
    torch = pytest.importorskip("torch")
    for dtype in ("float32", "float64", "float16", "bfloat16", "int32"):
        rows = torch.tensor(ROWS, dtype=getattr(torch, dtype))
        np.testing.assert_array_equal(as_source(rows).read(0, 97), rows.double().numpy())
    assert as_source(torch.tensor(ROWS, requires_grad=True)).n_rows == 97
    X, y, _ = blobs()
    weights = torch.ones(len(y), requires_grad=True)
    fitted = model().fit(torch.tensor(X), torch.tensor(y), weights)
    np.testing.assert_array_equal(fitted.transduction_, model().fit(X, y).transduction_)


def test_arrays_that_are_elsewhere_say_what_to_call(monkeypatch):
    torch = pytest.importorskip("torch")
    with pytest.raises(InputError, match=r"layout sparse_coo; give X.to_dense\(\)"):
        as_source(torch.eye(3).to_sparse())
    with pytest.raises(InputError, match=r"tensor on meta.*give X.cpu\(\)"):
        as_source(torch.empty(3, 3, device="meta"))

    def refuse(device, name="device"):
        if device == "cpu":
            return device
        raise ParameterError(f"device={device!r}: there is none")

    monkeypatch.setattr("biglp._core.arrays.require_device", refuse)

    class Array:
        __cuda_array_interface__ = {}  # noqa: RUF012

        def get(self):
            return ROWS

    with pytest.raises(InputError, match=r"an array on a GPU .* give X.get\(\)"):
        as_source(Array())
    with pytest.raises(InputError, match=r"y is an array on a GPU .* give y.get\(\)"):
        model().fit(ROWS, Array())


def test_views_of_text_as_polars_has(tmp_path):
    """pyarrow takes no rows of them by number."""
    if int(pa.__version__.partition(".")[0]) < 20:
        pytest.skip("this pyarrow makes no views of text")
    texts = pa.array(["x", None, "yy", "a text of more than twelve letters"] * 3)
    plain = pa.table({"n": np.arange(12.0), "t": texts})
    views = plain.set_column(1, "t", texts.cast(pa.string_view()))
    path = tmp_path / "x.arrow"
    with pa.ipc.new_file(path, views.schema) as file:
        file.write_table(views)
    some = np.array([1, 2, 7])
    expected = as_source(plain).take(some)
    for rows in (views, path):
        np.testing.assert_array_equal(as_source(rows).take(some), expected)
