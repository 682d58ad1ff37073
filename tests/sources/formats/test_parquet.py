"""What is known of a Parquet file before its rows are read."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from biglp._rows.options import ReadOptions
from biglp._tables.parquet import ParquetTable


def opened(path):
    return ParquetTable(str(path), ReadOptions())


@pytest.mark.parametrize("compression", ["none", "snappy", "zstd"])
@pytest.mark.parametrize("page", [8_000, 60_000])
def test_memory_of_a_page_is_that_of_the_file(tmp_path, page, compression):
    rng = np.random.default_rng(0)
    table = pa.table({name: rng.normal(size=20_000) for name in "abc"})
    layout = {"data_page_size": page, "write_batch_size": 50, "use_dictionary": False}
    pq.write_table(table, tmp_path / "x.parquet", compression=compression, **layout)
    assert opened(tmp_path / "x.parquet").page_bytes == pytest.approx(1.5 * page, rel=0.1)


def test_pages_hold_no_more_than_their_columns(tmp_path):
    table = pa.table({"a": np.arange(20_000.0), "flag": np.zeros(20_000, dtype=bool)})
    pq.write_table(table, tmp_path / "x.parquet", use_dictionary=False, data_page_size=1 << 20)
    assert opened(tmp_path / "x.parquet").page_bytes < 1.5 * 0.6 * 20_000 * 8


def test_pages_of_files_without_rows_or_with_damage(tmp_path):
    table = pa.table({"a": np.arange(100.0)})
    pq.write_table(table.slice(0, 0), tmp_path / "none.parquet")
    assert opened(tmp_path / "none.parquet").page_bytes < 100
    pq.write_table(table, tmp_path / "x.parquet", use_dictionary=False)
    content = bytearray((tmp_path / "x.parquet").read_bytes())
    content[4:12] = b"\xff" * 8
    (tmp_path / "x.parquet").write_bytes(content)
    assert 0 < opened(tmp_path / "x.parquet").page_bytes <= 1.5 * 900
