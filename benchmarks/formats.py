"""Time embedding columns and shards, each beside a plain read of the same files in the same run.

The machine is shared and noisy, so every time is set beside that of a plain read, measured just
before it: ``pyarrow.parquet.read_table`` of the column, or the bytes of the shards one after the
other. Each measurement has a process of its own, so that its memory is its own too.

Run with:  python benchmarks/formats.py [--rows 2000000] [--width 128] [--repeat 3] [--folder DIR]
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from biglp._core.memory import PeakMemory
from biglp._rows import as_source

BLOCK_BYTES = 8 << 20
LAYOUTS = {
    "list<float>": {"fixed": False, "rows_each": 100_000, "compression": "snappy"},
    "fixed_size_list<float>": {"fixed": True, "rows_each": 100_000, "compression": "snappy"},
    "one row group, not packed": {"fixed": False, "rows_each": 1 << 40, "compression": "none"},
    "list<halffloat>": {
        "fixed": False,
        "rows_each": 100_000,
        "compression": "snappy",
        "dtype": np.float16,
    },
}
"""What is written: kind of list, rows of a row group, packing, and type of the numbers."""


def random_rows(n_rows: int, width: int, dtype: Any, start: int) -> np.ndarray:
    """Rows of an embedding, of length 1 or about."""
    rng = np.random.default_rng(start)
    return (rng.standard_normal((n_rows, width), dtype=np.float32) / width**0.5).astype(dtype)


def write_parquet(path: Path, n_rows: int, width: int, layout: dict[str, Any]) -> None:
    """Write one column of lists."""
    dtype = np.dtype(layout.get("dtype", np.float32))
    number = pa.from_numpy_dtype(dtype)
    kind = pa.list_(number, width) if layout["fixed"] else pa.list_(number)
    rows_each = min(layout["rows_each"], n_rows)
    with pq.ParquetWriter(
        path, pa.schema([("emb", kind)]), compression=layout["compression"], use_dictionary=False
    ) as writer:
        for start in range(0, n_rows, rows_each):
            count = min(rows_each, n_rows - start)
            flat = pa.array(random_rows(count, width, dtype, start).reshape(-1))
            if layout["fixed"]:
                column = pa.FixedSizeListArray.from_arrays(flat, width)
            else:
                bounds = pa.array((np.arange(count + 1) * width).astype(np.int32))
                column = pa.ListArray.from_arrays(bounds, flat)
            writer.write_table(pa.table({"emb": column}), row_group_size=rows_each)


def write_shards(folder: Path, n_rows: int, width: int, n_shards: int) -> None:
    """Write float16 shards of unequal lengths."""
    folder.mkdir()
    bounds = np.linspace(0, 1, n_shards + 1) ** 1.2 * n_rows
    for number, (start, stop) in enumerate(
        zip(bounds[:-1].astype(int), bounds[1:].astype(int), strict=True)
    ):
        np.save(folder / f"emb_{number}.npy", random_rows(stop - start, width, np.float16, start))


def read_column(path: Path) -> None:
    """Read the column with pyarrow."""
    pq.read_table(path, columns=["emb"])


def convert(path: Path) -> None:
    """Convert the column to raw rows, as every command does first."""
    with tempfile.TemporaryDirectory(dir=path.parent) as cache:
        as_source(path, cache=cache)


def read_files(folder: Path) -> None:
    """Read the bytes of all shards in order, in pieces as large as blocks."""
    buffer = memoryview(bytearray(BLOCK_BYTES))
    for path in sorted(folder.iterdir(), key=lambda path: int(path.stem.partition("_")[2])):
        with open(path, "rb", buffering=0) as file:
            while file.readinto(buffer):
                pass


def read_source(folder: Path) -> None:
    """Read all rows of the shards in blocks."""
    source = as_source(folder)
    each = BLOCK_BYTES // (source.n_features * source.dtype.itemsize)
    for start in range(0, source.n_rows, each):
        source.read(start, min(start + each, source.n_rows))


def forget(folder: Path) -> None:
    """Let the system forget what it holds of files."""
    for path in folder.iterdir():
        handle = os.open(path, os.O_RDONLY)
        os.fsync(handle)
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(handle)


def _timed(work: Callable[[Path], None], path: Path, answers: Any) -> None:
    with PeakMemory() as peak:
        began = time.perf_counter()
        work(path)
        seconds = time.perf_counter() - began
    answers.put((seconds, peak.peak))


def measured(work: Callable[[Path], None], path: Path) -> tuple[float, int]:
    """Seconds and peak memory of work in a process of its own."""
    context = multiprocessing.get_context("spawn")
    answers = context.Queue()
    process = context.Process(target=_timed, args=(work, path, answers))
    process.start()
    found: tuple[float, int] = answers.get()
    process.join()
    return found


def compare(
    name: str,
    plain: Callable[[Path], None],
    ours: Callable[[Path], None],
    path: Path,
    repeat: int,
    before: Callable[[Path], None] | None = None,
) -> None:
    """Print the median times of a plain read and of ours, and their ratio."""
    reads, times, peaks = [], [], []
    for _ in range(repeat):
        for work, found in ((plain, reads), (ours, times)):
            if before is not None:
                before(path)
            seconds, peak = measured(work, path)
            found.append(seconds)
        peaks.append(peak)
    ratios = [read / seconds for read, seconds in zip(reads, times, strict=True)]
    print(
        f"{name:34} plain read {median(reads):6.2f} s   biglp {median(times):6.2f} s   "
        f"speed {median(ratios):5.2f} times ({min(ratios):.2f} to {max(ratios):.2f})   "
        f"peak {max(peaks) >> 20:,} MB",
        flush=True,
    )


def main() -> None:
    """Write each kind of file, and compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--shards", type=int, default=24)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--folder", default=None, help="where files are written")
    options = parser.parse_args()
    print(f"{options.rows:,} rows of {options.width} numbers")
    with tempfile.TemporaryDirectory(dir=options.folder) as temporary:
        folder = Path(temporary)
        for name, layout in LAYOUTS.items():
            path = folder / "x.parquet"
            write_parquet(path, options.rows, options.width, layout)
            compare(name, read_column, convert, path, options.repeat)
            path.unlink()
        shards = folder / "shards"
        write_shards(shards, options.rows, 4 * options.width, options.shards)
        print(f"{options.shards} float16 shards of {4 * options.width} numbers a row")
        read_files(shards)
        compare("shards, in memory", read_files, read_source, shards, options.repeat)
        compare("shards, from disk", read_files, read_source, shards, options.repeat, forget)


if __name__ == "__main__":
    main()
