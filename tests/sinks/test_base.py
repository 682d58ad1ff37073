"""What every sink that writes files promises: they appear whole, or not at all."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import numpy as np
import pyarrow.parquet as pq
import pytest

from biglp._core.errors import BigLPError, ParameterError
from biglp._output import NpySink, Sink, file_sink
from biglp._output.table import ParquetSink
from sink_tools import ALL, N, answers, broken, fill

WRITER = """
import sys, time, numpy as np
from biglp._output import file_sink
sink = file_sink(sys.argv[1], 200_000, [0, 1], ("label", "probabilities"))
sink.open()
print("open", flush=True)
for start in range(0, 200_000, 100):
    sink.write(start, np.full((100, 2), 0.5, dtype=np.float32))
    time.sleep(0.0002)
sink.commit()
"""
LIMITED = """
import resource, sys, numpy as np
from pathlib import Path
from biglp._core.errors import BigLPError
from biglp._files.local import atomic_write
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
