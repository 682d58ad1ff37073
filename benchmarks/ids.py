"""Labels joined to rows by ID: seconds and peak memory.

A Parquet table of rows with a text ID each (``customer-`` and twelve digits, in random order) and a
table of ``id,label`` for some of them. The join alone is measured in a process of its own, set
beside one plain read of the column of IDs with pyarrow in the same run; with ``--fit`` the whole
``biglp fit --id-column`` under a memory budget as well. The labels that come out are checked.

Run with:  python benchmarks/ids.py [--rows 20000000] [--labels 1000000] [--memory 2GB] [--fit].
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from biglp._core.memory import PeakMemory, format_bytes
from biglp._labels.reading import LabelInput

AT_ONCE = 1 << 20
STEP = 999_999_999_989
"""A prime: multiples of it, modulo another one, visit every ID once in no order."""
MOST = 1_000_000_000_039


def ids(numbers: np.ndarray) -> Any:
    """IDs of some rows."""
    scattered = pa.array((numbers.astype(object) * STEP % MOST).astype(np.int64)).cast(pa.string())
    return pc.binary_join_element_wise("customer-", pc.utf8_lpad(scattered, 13, "0"), "")


def write(folder: Path, n_rows: int, n_labels: int) -> None:
    """Write rows and labels; a row's class follows from its first feature."""
    rng = np.random.default_rng(0)
    names = [f"x{number}" for number in range(4)]
    schema = pa.schema([("id", pa.string()), *((name, pa.float32()) for name in names)])
    with pq.ParquetWriter(folder / "rows.parquet", schema) as writer:
        for start in range(0, n_rows, AT_ONCE):
            numbers = np.arange(start, min(start + AT_ONCE, n_rows))
            features = rng.normal(size=(4, len(numbers))).astype(np.float32)
            features[0] += 6 * (numbers % 2)
            writer.write_table(pa.table([ids(numbers), *map(pa.array, features)], schema=schema))
    chosen = rng.choice(n_rows, n_labels, replace=False)
    labels = pa.array(np.array(["even", "odd"])[chosen % 2])
    pq.write_table(pa.table({"id": ids(chosen), "label": labels}), folder / "labels.parquet")


def join(folder: Path, results: Any) -> None:
    """Join, and put seconds, peak memory and the labels' number into a queue."""
    named = LabelInput(str(folder / "rows.parquet"), (folder / "labels.parquet",), id_column="id")
    with PeakMemory() as before:
        began = time.perf_counter()
        for _ in named.beside.stream(["id"]):
            pass
        read = time.perf_counter() - began
    n_rows = named.beside.count()
    with PeakMemory() as peak:
        began, worked = time.perf_counter(), time.process_time()
        found = named.gather(n_rows)
        seconds, worked = time.perf_counter() - began, time.process_time() - worked
    right = bool((found.labels.codes == found.labels.rows % 2).all())
    results.put((read, before.peak, seconds, worked, peak.peak, len(found.labels.rows), right))


def main() -> None:
    """Write the tables, join, and fit where that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--labels", type=int, default=1_000_000)
    parser.add_argument("--memory", default="2GB")
    parser.add_argument("--fit", action="store_true")
    parser.add_argument("--folder", type=Path, help="keep the tables here")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(exist_ok=True)
        if not (folder / "rows.parquet").exists():
            write(folder, options.rows, options.labels)
        context = multiprocessing.get_context("spawn")
        results = context.Queue()
        process = context.Process(target=join, args=(folder, results))
        process.start()
        read, before, seconds, worked, peak, joined, right = results.get()
        process.join()
        print(
            f"{options.rows:,} IDs, {options.labels:,} labels: read alone {read:.1f} s "
            f"({format_bytes(before)}), joined in {seconds:.1f} s ({worked:.1f} of a processor), "
            f"peak {format_bytes(peak)}, {joined:,} labels, all right: {right}",
            flush=True,
        )
        if options.fit:
            out = Path(temporary) / "out"
            command = [sys.executable, "-m", "biglp", "fit", str(folder / "rows.parquet")]
            command += ["--labels", str(folder / "labels.parquet"), "--id-column", "id"]
            command += ["-o", str(out), "--memory", options.memory, "--json"]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            summary = json.loads(done.stdout)
            table = pq.ParquetFile(out / "labels.parquet")
            print(
                f"biglp fit --memory {options.memory}: {summary['seconds']:.0f} s, peak "
                f"{format_bytes(summary['peak_memory'])}; {summary['labelled_rows']:,} labels; "
                f"columns {', '.join(table.schema_arrow.names)}",
                flush=True,
            )


if __name__ == "__main__":
    main()
