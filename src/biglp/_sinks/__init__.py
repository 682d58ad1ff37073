"""Where the answers for each row go: arrays in memory, ``.npy`` files or a Parquet table.

A sink takes blocks in any order, from any thread, and with the file sinks from any process that
sees the same folder. Answers are written at their place in files with the ending ``.part``, which
get their final names when the run is committed; a run killed before leaves none of these names.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from biglp._sinks.base import FileSink, NoSink, RowIds, Sink
from biglp._sinks.memory import ArraySink, ValuesSink
from biglp._sinks.npy import NpySink

__all__ = [
    "ArraySink",
    "FileSink",
    "NoSink",
    "NpySink",
    "RowIds",
    "Sink",
    "ValuesSink",
    "file_sink",
]


def file_sink(
    path: str | os.PathLike[str],
    n_rows: int,
    classes: Any,
    outputs: Sequence[str] = ("label",),
    top: int | None = None,
) -> FileSink:
    """Return a sink for a path: a Parquet table when it ends in ``.parquet``, else a folder."""
    if Path(path).suffix.lower() in (".parquet", ".pq"):
        from biglp._sinks.parquet import ParquetSink  # the only part that needs pyarrow

        return ParquetSink(path, n_rows, classes, outputs, top)
    return NpySink(path, n_rows, classes, outputs, top)
