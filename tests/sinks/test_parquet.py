"""Answers in a Parquet file."""

from __future__ import annotations

import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import biglp._output.table as table_sink
from biglp._output.table import ParquetSink
from sink_tools import ALL, N, answers, fill


def test_parquet_sink(tmp_path, classes, monkeypatch):
    monkeypatch.setattr(table_sink, "TABLE_ROWS", 300)
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


@pytest.mark.skipif(sys.platform != "linux", reason="others count in bytes, or not at all")
def test_memory_of_a_large_sink_stays_small(tmp_path):
    import resource

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    n = 2_000_000
    with ParquetSink(tmp_path / "t.parquet", n, [0, 1], ALL) as sink:
        block = np.full((20_000, 2), 0.5, dtype=np.float32)
        for start in range(0, n, 20_000):
            sink.write(start, block)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 200_000  # kB; all answers would be 40 MB, and the file is mapped
    assert pa.parquet.ParquetFile(tmp_path / "t.parquet").metadata.num_rows == n
