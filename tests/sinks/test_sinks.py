"""Answers arrive whole, at their place, under the final name only when all is written."""

from __future__ import annotations

import os
import pickle
import resource
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import biglp._sinks.npy as npy_sink
import biglp._sinks.parquet as parquet_sink
from biglp._core.errors import BigLPError, OutputError, ParameterError
from biglp._core.files import atomic_write, npy_header
from biglp._sinks import ArraySink, NpySink, Sink, file_sink
from biglp._sinks.parquet import ParquetSink

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
    """Write blocks from threads in any order."""
    starts = np.random.default_rng(1).permutation(range(0, len(probabilities), rows))
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda s: sink.write(int(s), probabilities[s : s + rows]), starts))


def broken(sink: Sink, probabilities: np.ndarray) -> None:
    with sink:
        fill(sink, probabilities)
        1 / 0  # noqa: B018


def interrupted(file) -> None:
    file.write(b"second")
    raise KeyboardInterrupt


@pytest.fixture(params=CLASSES)
def classes(request) -> np.ndarray:
    return CLASSES[request.param]


def test_array_sink(classes):
    given = answers(len(classes))
    sink = ArraySink(classes, N, given.dtype)
    fill(sink, given)
    assert classes[sink.codes].tolist() == classes[given.argmax(axis=1)].tolist()
    np.testing.assert_array_equal(sink.probabilities, given)


def test_npy_sink(tmp_path, classes):
    given = answers(len(classes))
    with NpySink(tmp_path / "out", N, classes, ALL) as sink:
        fill(sink, given)
        assert not any(path.suffix == ".npy" for path in (tmp_path / "out").iterdir())
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert names == ["confidence.npy", "labels.npy", "probabilities.npy"]
    labels = np.load(tmp_path / "out" / "labels.npy")
    assert labels.tolist() == classes[given.argmax(axis=1)].tolist()
    np.testing.assert_array_equal(np.load(tmp_path / "out" / "confidence.npy"), given.max(axis=1))
    np.testing.assert_array_equal(np.load(tmp_path / "out" / "probabilities.npy"), given)


def test_parquet_sink(tmp_path, classes, monkeypatch):
    monkeypatch.setattr(parquet_sink, "PARQUET_ROWS", 300)
    given = answers(len(classes))
    with ParquetSink(tmp_path / "labels.parquet", N, classes, ALL) as sink:
        fill(sink, given)
        assert not (tmp_path / "labels.parquet").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["labels.parquet"]
    table = pq.read_table(tmp_path / "labels.parquet")
    assert table.column_names == ["row", "label", "confidence", *(f"p_{c}" for c in classes)]
    assert table["row"].to_pylist() == list(range(N))
    assert table["label"].to_pylist() == classes[given.argmax(axis=1)].tolist()
    for code, name in enumerate(classes):
        np.testing.assert_array_equal(table[f"p_{name}"], given[:, code])
    assert pq.ParquetFile(tmp_path / "labels.parquet").num_row_groups == 4


def test_likeliest_classes(tmp_path):
    classes, given = np.array(["a", "b", "c"]), answers(3)
    outputs = ("label", "probabilities")
    order = np.argsort(-given, axis=1)[:, :2]
    with file_sink(tmp_path / "t.parquet", N, classes, outputs, top=2) as sink:
        fill(sink, given)
    table = pq.read_table(tmp_path / "t.parquet")
    assert table.column_names == ["row", "label", "class_1", "p_1", "class_2", "p_2"]
    assert table["class_2"].to_pylist() == classes[order[:, 1]].tolist()
    np.testing.assert_array_equal(table["p_1"], given.max(axis=1))
    with file_sink(tmp_path / "out", N, classes, outputs, top=2) as sink:
        fill(sink, given)
    assert (np.load(tmp_path / "out" / "top_classes.npy") == classes[order]).all()
    np.testing.assert_array_equal(
        np.load(tmp_path / "out" / "top_probabilities.npy"),
        np.take_along_axis(given, order, axis=1),
    )


def test_columns_by_name(tmp_path):
    with NpySink(tmp_path, 3, [7, 8], ("label", "confidence")) as sink:
        sink.write(0, {"label": np.array([1, 0, 1]), "confidence": np.array([0.5, 0.6, 0.7])})
    assert np.load(tmp_path / "labels.npy").tolist() == [8, 7, 8]
    with (
        pytest.raises(ParameterError, match="need probabilities"),
        NpySink(tmp_path, 3, [7, 8], ("confidence",)) as sink,
    ):
        sink.write(0, {"label": np.array([1, 0, 1])})


def test_wrong_use(tmp_path):
    with pytest.raises(ParameterError, match="use some of label, confidence, probabilities"):
        NpySink(tmp_path, 3, [0, 1], ("scores",))
    with pytest.raises(ParameterError, match="top=3 must be between 1 and the 2 classes"):
        NpySink(tmp_path, 3, [0, 1], ALL, top=3)
    with NpySink(tmp_path, 3, [0, 1]) as sink:
        with pytest.raises(ParameterError, match="the sink has 3 rows"):
            sink.write(2, np.full((2, 2), 0.5))
        with pytest.raises(BigLPError, match="NaN or infinite"):
            sink.write(0, np.full((2, 2), np.nan))
        sink.write(0, np.full((3, 2), 0.5))


def test_error_leaves_no_file(tmp_path):
    for sink in (NpySink(tmp_path, N, [0, 1], ALL), ParquetSink(tmp_path / "t.parquet", N, [0, 1])):
        with pytest.raises(ZeroDivisionError):
            broken(sink, answers(2))
        assert list(tmp_path.iterdir()) == []


def test_earlier_answers_stay_until_the_new_ones_are_whole(tmp_path):
    with NpySink(tmp_path, 2, [0, 1]) as sink:
        sink.write(0, {"label": np.array([0, 0])})
    with pytest.raises(ZeroDivisionError):
        broken(NpySink(tmp_path, 2, [0, 1]), answers(2)[:2])
    assert np.load(tmp_path / "labels.npy").tolist() == [0, 0]


@pytest.mark.parametrize("kind", ["npy", "parquet"])
def test_interrupted_run_goes_on(tmp_path, kind):
    def make() -> Sink:
        path = tmp_path / ("out" if kind == "npy" else "t.parquet")
        return file_sink(path, N, [0, 1, 2], ALL)

    given = answers(3)
    first = make()
    first.open()
    first.write(0, given[:500])
    first.sync()
    second = make()
    second.open(resume=True)
    second.write(500, given[500:])
    second.commit()
    if kind == "npy":
        np.testing.assert_array_equal(np.load(tmp_path / "out" / "probabilities.npy"), given)
    else:
        np.testing.assert_array_equal(pq.read_table(tmp_path / "t.parquet")["p_2"], given[:, 2])


def test_copies_in_other_processes_write_to_the_same_files(tmp_path):
    given = answers(2)
    with NpySink(tmp_path, N, [0, 1], ("probabilities",)) as sink:
        copy = pickle.loads(pickle.dumps(sink))
        sink.write(0, given[:400])
        copy.write(400, given[400:])
        copy.close()
    np.testing.assert_array_equal(np.load(tmp_path / "probabilities.npy"), given)


WRITER = """
import sys, time, numpy as np
from biglp._sinks import file_sink
sink = file_sink(sys.argv[1], 200_000, [0, 1], ("label", "probabilities"))
sink.open()
print("open", flush=True)
for start in range(0, 200_000, 100):
    sink.write(start, np.full((100, 2), 0.5, dtype=np.float32))
    time.sleep(0.0002)
sink.commit()
"""


@pytest.mark.parametrize(("name", "after"), [("out", 0.1), ("t.parquet", 0.2)])
def test_killed_writer_leaves_no_final_name(tmp_path, name, after):
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(tmp_path / name)], stdout=subprocess.PIPE
    )
    assert writer.stdout.readline() == b"open\n"
    time.sleep(after)
    writer.send_signal(signal.SIGKILL)
    writer.communicate()
    assert not list(tmp_path.rglob("*.npy"))
    assert not list(tmp_path.glob("*.parquet"))


LIMITED = """
import resource, sys, numpy as np
from pathlib import Path
from biglp._core.errors import BigLPError
from biglp._core.files import atomic_write
from biglp._sinks import file_sink

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


def test_full_disk_is_explained(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(tmp_path)], capture_output=True, text=True, check=True
    )
    messages = done.stdout.splitlines()
    assert len(messages) == 4
    for name, message in zip(("model", "labels", "first", "last"), messages, strict=True):
        assert "could not be written: File too large" in message
        assert "Make room" in message
        assert name in message
    assert done.stderr == ""
    assert all(path.suffix == ".part" for path in tmp_path.rglob("*") if path.is_file())


def test_disk_that_fills_up_in_the_middle(tmp_path, monkeypatch):
    def full(handle, data, position):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(npy_sink.os, "pwrite", full)
    with (
        pytest.raises(OutputError, match=r"labels\.npy could not be written: No space left"),
        NpySink(tmp_path, N, [0, 1]) as sink,
    ):
        sink.write(0, answers(2))
    assert list(tmp_path.iterdir()) == []


def test_short_writes_are_continued(tmp_path, monkeypatch):
    plain = os.pwrite
    monkeypatch.setattr(npy_sink.os, "pwrite", lambda h, data, at: plain(h, bytes(data)[:37], at))
    given = answers(2)
    with NpySink(tmp_path, N, [0, 1], ("probabilities",)) as sink:
        fill(sink, given)
    np.testing.assert_array_equal(np.load(tmp_path / "probabilities.npy"), given)


def test_systems_that_cannot_reserve(tmp_path, monkeypatch):
    def unable(handle, start, size):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(npy_sink.os, "posix_fallocate", unable)
    with NpySink(tmp_path, 2, [0, 1]) as sink:
        sink.write(0, {"label": np.array([1, 0])})
    assert np.load(tmp_path / "labels.npy").tolist() == [1, 0]


def test_atomic_write(tmp_path):
    path = tmp_path / "x.bin"
    with atomic_write(path) as file:
        file.write(b"first")
        assert not path.exists()
    assert path.read_bytes() == b"first"
    with pytest.raises(KeyboardInterrupt), atomic_write(path) as file:
        interrupted(file)
    assert path.read_bytes() == b"first"
    assert list(tmp_path.iterdir()) == [path]
    with (
        pytest.raises(OutputError, match=r"none.x\.bin could not be written: No such file"),
        atomic_write(tmp_path / "none" / "x.bin"),
    ):
        pass
    mask = os.umask(0o027)
    try:
        with atomic_write(path) as file:
            file.write(b"third")
    finally:
        os.umask(mask)
    assert path.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("dtype", ["<f4", "<U20", "|b1", "<i8"])
@pytest.mark.parametrize("shape", [(3,), (10**12, 10**6)])
def test_npy_header(tmp_path, dtype, shape):
    header = npy_header(np.dtype(dtype), shape)
    assert len(header) == 128
    (tmp_path / "x.npy").write_bytes(header)
    with open(tmp_path / "x.npy", "rb") as file:
        assert np.lib.format.read_magic(file) == (1, 0)
        assert np.lib.format.read_array_header_1_0(file) == (shape, False, np.dtype(dtype))


def test_memory_of_a_large_sink_stays_small(tmp_path):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    n = 2_000_000
    with ParquetSink(tmp_path / "t.parquet", n, [0, 1], ALL) as sink:
        block = np.full((20_000, 2), 0.5, dtype=np.float32)
        for start in range(0, n, 20_000):
            sink.write(start, block)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 200_000  # kB; all answers would be 40 MB, and the file is mapped
    assert pa.parquet.ParquetFile(tmp_path / "t.parquet").metadata.num_rows == n
