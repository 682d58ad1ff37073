"""Answers in files of every format: they appear whole, or not at all."""

import gzip
import json
import os
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from biglp._core import BigLPError, OutputError, ParameterError
from biglp._output import ArraySink, NpySink, Sink, file_sink, table_ending

N = 1000
ALL = ("label", "confidence", "probabilities")
CLASSES = {
    "numbers": np.array([3, 5, 9]),
    "texts": np.array(["cat", "dog", "ä"], dtype=object),
    "truth": np.array([False, True]),
}


def answers(n_classes: int) -> np.ndarray:
    return np.random.default_rng(0).dirichlet(np.ones(n_classes), size=N).astype(np.float32)


def fill(sink: Sink, probabilities: np.ndarray, rows: int = 64) -> None:
    starts = np.random.default_rng(1).permutation(range(0, len(probabilities), rows))
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda s: sink.write(int(s), probabilities[s : s + rows]), starts))


def broken(sink: Sink, probabilities: np.ndarray) -> None:
    with sink:
        fill(sink, probabilities)
        1 / 0  # noqa: B018


TABLES = ("t.parquet", "t.csv", "t.csv.gz", "t.jsonl", "t.ndjson", "t.jsonl.gz")
LIMITED = """
import resource, sys, numpy as np
from pathlib import Path
from biglp._core import BigLPError
from biglp._files import atomic_write
from biglp._output import file_sink

def atomic(path):
    with atomic_write(path) as file:
        file.write(bytes(100_000))

def sink(path, n, outputs):
    with file_sink(path, n, [0, 1], outputs) as sink:
        sink.write(0, np.random.default_rng(0).dirichlet([1, 1], n))

folder = Path(sys.argv[1])
both = ("label", "probabilities")
resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
for name, function, *args in [
    ("model.bin", atomic),
    ("labels", sink, 1_000_000, ("label",)),
    ("first.parquet", sink, 1_000_000, ("label",)),
    ("last.parquet", sink, 6_100, both),  # only the table is too large, not what it is made from
]:
    try:
        function(folder / name, *args)
        print("no error")
    except BigLPError as error:
        print(error)
"""


@pytest.fixture(params=CLASSES)
def classes(request) -> np.ndarray:
    return CLASSES[request.param]


def read(path) -> pd.DataFrame:
    if path.suffix == ".parquet":
        return pq.read_table(path).to_pandas()
    if ".csv" in path.name:
        return pd.read_csv(path)
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as file:
        return pd.DataFrame([json.loads(line) for line in file])


def files(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_arrays_in_memory_and_npy_files(tmp_path, classes):
    given, folder = answers(len(classes)), tmp_path / "out"
    expected = classes[given.argmax(axis=1)].tolist()
    sink = ArraySink(classes, N, given.dtype)
    fill(sink, given)
    assert sink.labels.tolist() == expected
    np.testing.assert_array_equal(sink.probabilities, given)
    with file_sink(folder, N, classes, ALL) as sink:
        fill(sink, given)
        assert not list(folder.glob("*.npy"))
    found = {path.stem: np.load(path) for path in folder.iterdir()}
    assert sorted(found) == ["confidence", "labels", "probabilities"]
    assert found["labels"].tolist() == expected
    np.testing.assert_array_equal(found["confidence"], given.max(axis=1))
    np.testing.assert_array_equal(found["probabilities"], given)


@pytest.mark.parametrize("name", TABLES)
def test_tables(name, tmp_path, classes):
    given, path = answers(len(classes)), tmp_path / name
    with file_sink(path, N, classes, ALL) as sink:
        fill(sink, given)
        assert not path.exists()
    assert [path.name for path in tmp_path.iterdir()] == [name]
    table = read(path)
    assert list(table.columns) == ["row", "label", "confidence", *(f"p_{c}" for c in classes)]
    assert table["row"].tolist() == list(range(N))
    assert table["label"].tolist() == classes[given.argmax(axis=1)].tolist()
    probabilities = table[[f"p_{c}" for c in classes]].to_numpy().astype(np.float32)
    np.testing.assert_array_equal(probabilities, given)  # every digit of the float32 numbers


@pytest.mark.parametrize("name", ["t.csv.gz", "t.jsonl", "t.parquet"])
def test_more_rows_than_are_written_at_once(name, tmp_path):
    n = 270_000
    codes = np.random.default_rng(0).integers(2, size=n)
    for path in (tmp_path / name, tmp_path / f"2{name}"):
        with file_sink(path, n, ["cat", "dog"], ("label",)) as sink:
            sink.write(0, {"label": codes})
    table = read(path)
    assert table["row"].tolist() == list(range(n))
    assert ((table["label"] == "dog") == codes).all()
    if name == "t.parquet":
        assert pq.ParquetFile(path).num_row_groups == 2
    assert path.read_bytes() == (tmp_path / name).read_bytes()  # the same answers, the same bytes


def test_likeliest_classes(tmp_path):
    classes, given = np.array(["a", "b", "c"]), answers(3)
    order = np.argsort(-given, axis=1)[:, :2]
    for name in ("t.parquet", "out"):
        with file_sink(tmp_path / name, N, classes, ("label", "probabilities"), top=2) as sink:
            fill(sink, given)
    table = read(tmp_path / "t.parquet")
    assert list(table.columns) == ["row", "label", "class_1", "p_1", "class_2", "p_2"]
    assert table["class_2"].tolist() == classes[order[:, 1]].tolist()
    np.testing.assert_array_equal(table["p_1"], given.max(axis=1))
    assert (np.load(tmp_path / "out" / "top_classes.npy") == classes[order]).all()


def test_plain_files_read_as_people_write_them(tmp_path):
    with file_sink(tmp_path / "x.csv", 2, ["cat", "dog"], ("label", "confidence")) as sink:
        sink.write(0, np.array([[0.9, 0.1], [0.25, 0.75]], dtype=np.float32))
    text = (tmp_path / "x.csv").read_text()
    assert text == "row,label,confidence\n0,cat,0.9\n1,dog,0.75\n"
    with file_sink(tmp_path / "x.jsonl", 1, ["cat", "dog"], ALL, top=1) as sink:
        sink.write(0, np.array([[0.9, 0.1]], dtype=np.float32))
    line = (tmp_path / "x.jsonl").read_text()
    assert line == '{"row": 0, "label": "cat", "confidence": 0.9, "class_1": "cat", "p_1": 0.9}\n'
    classes = np.array(['a,"b"', "new\nline", "ö"], dtype=object)
    for ending in (".csv", ".jsonl"):
        with file_sink(tmp_path / f"y{ending}", N, classes, ("label",)) as sink:
            fill(sink, answers(3))
        expected = classes[answers(3).argmax(axis=1)].tolist()
        assert read(tmp_path / f"y{ending}")["label"].tolist() == expected
    names = ("a.b/July.CSV.gz", "july.parquet", "july.gz", "july")
    assert [*map(table_ending, names)] == [".csv.gz", ".parquet", None, None]


@pytest.mark.parametrize("ids", [None, ["K1", "K2"], ['K,"1"', "K2"]])
def test_csv_quotes_what_needs_quotes_and_nothing_else(tmp_path, ids):
    with file_sink(tmp_path / "x.csv", 2, ["cat", "dog"], ("label", "confidence")) as sink:
        if ids:
            given = SimpleNamespace(
                name="key", type=pa.string(), pieces=lambda: iter([pa.array(ids)])
            )
            sink.ids = given
        sink.write(0, np.array([[0.9, 0.1], [0.25, 0.75]], dtype=np.float32))
    first = {None: "", "K1": "K1,", 'K,"1"': '"K,""1""",'}[ids[0] if ids else None]
    lines = (tmp_path / "x.csv").read_text().splitlines()[1:]
    assert lines == [f"{first}0,cat,0.9", f"{'K2,' if ids else ''}1,dog,0.75"]


def test_columns_by_name_and_wrong_use(tmp_path):
    with file_sink(tmp_path, 3, [7, 8], ("label", "confidence")) as sink:
        sink.write(0, {"label": np.array([1, 0, 1]), "confidence": np.array([0.5, 0.6, 0.7])})
    assert np.load(tmp_path / "labels.npy").tolist() == [8, 7, 8]
    with pytest.raises(ParameterError, match="use some of label, confidence, probabilities"):
        file_sink(tmp_path, 3, [0, 1], ("scores",))
    with pytest.raises(ParameterError, match="top=3 must be between 1 and the 2 classes"):
        file_sink(tmp_path, 3, [0, 1], ALL, top=3)
    for start, given, error, message in (
        (0, {"label": np.array([1, 0, 1])}, ParameterError, "need probabilities"),
        (2, np.full((2, 2), 0.5), ParameterError, "the sink has 3 rows"),
        (0, np.full((2, 2), np.nan), BigLPError, "NaN or infinite"),
    ):
        with (
            pytest.raises(error, match=message),
            file_sink(tmp_path, 3, [0, 1], ("confidence",)) as sink,
        ):
            sink.write(start, given)


@pytest.mark.parametrize("name", ["out", *TABLES])
def test_a_failure_leaves_what_was_there(name, tmp_path):
    path = tmp_path / name
    with pytest.raises(ZeroDivisionError):
        broken(file_sink(path, N, [0, 1]), answers(2))
    assert not files(tmp_path)
    with file_sink(path, N, [0, 1]) as sink:
        fill(sink, answers(2))
    before = files(tmp_path)
    with pytest.raises(ZeroDivisionError):
        broken(file_sink(path, N, [0, 1]), answers(2)[::-1])
    assert before == files(tmp_path)


@pytest.mark.parametrize("name", ["out", "t.parquet"])
def test_an_interrupted_writer_is_followed_by_another(tmp_path, name):
    given, path = answers(3), tmp_path / name
    first, second = (file_sink(path, N, [0, 1, 2], ALL) for _ in range(2))
    first.open()
    first.write(0, given[:500])
    first.sync()
    assert {path.suffix for path in files(tmp_path)} == {".part"}
    second.open(resume=True)
    second.write(500, given[500:])
    second.commit()
    if name == "out":
        np.testing.assert_array_equal(np.load(path / "probabilities.npy"), given)
    else:
        np.testing.assert_array_equal(read(path)["p_2"], given[:, 2])


def test_full_disk_is_explained(tmp_path, monkeypatch):
    ended = subprocess.run(
        [sys.executable, "-c", LIMITED, str(tmp_path)], capture_output=True, text=True, check=True
    )
    messages = ended.stdout.splitlines()
    for name, message in zip(("model", "labels", "first", "last"), messages, strict=True):
        assert "could not be written: File too large" in message
        assert "Make room" in message
        assert name in message
    assert ended.stderr == ""
    assert all(path.suffix == ".part" for path in files(tmp_path))

    def full(handle, data, position):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)  # in the middle
    with (
        pytest.raises(OutputError, match=r"labels\.npy could not be written: No space left"),
        file_sink(tmp_path / "new", N, [0, 1]) as sink,
    ):
        sink.write(0, answers(2))
    assert list((tmp_path / "new").iterdir()) == []


def test_disks_that_write_a_few_bytes_and_reserve_nothing(tmp_path, monkeypatch):
    def unable(handle, start, size):
        raise OSError(95, "Operation not supported")

    write = os.pwrite
    monkeypatch.setattr(os, "posix_fallocate", unable)
    monkeypatch.setattr(os, "pwrite", lambda h, data, at: write(h, bytes(data)[:37], at))
    given = answers(2)
    with NpySink(tmp_path, N, [0, 1], ("probabilities",)) as sink:
        copy = pickle.loads(pickle.dumps(sink))  # as in another process
        sink.write(0, given[:400])
        copy.write(400, given[400:])
        copy.close()
    np.testing.assert_array_equal(np.load(tmp_path / "probabilities.npy"), given)
