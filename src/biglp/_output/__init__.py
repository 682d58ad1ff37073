"""Where the answers for each row go: arrays in memory, ``.npy`` files or a table.

A sink takes blocks in any order, from any thread, and with the file sinks from any process that
sees the same folder. Answers are written at their place in files with the ending ``.part``, which
get their final names when the run is committed; a run killed before leaves none of these names.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from biglp._output.sink import MAP, ArraySink, FileSink, NoSink, NpySink, RowIds, Sink, ValuesSink

__all__ = [
    "ArraySink",
    "FileSink",
    "MAP",
    "NoSink",
    "NpySink",
    "RowIds",
    "Sink",
    "TABLES",
    "ValuesSink",
    "file_sink",
    "table_ending",
]


TABLES = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".csv.gz": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".jsonl.gz": "jsonl",
    ".ndjson.gz": "jsonl",
}
"""Endings of the files that a table of answers can be in, and the format of each."""


def table_ending(path: str | os.PathLike[str]) -> str | None:
    """The ending of a file's name that says it is a table; None for any other."""
    name = Path(path).name.lower()
    return max((ending for ending in TABLES if name.endswith(ending)), key=len, default=None)


def file_sink(
    path: str | os.PathLike[str],
    n_rows: int,
    classes: Any,
    outputs: Sequence[str] = ("label",),
    top: int | None = None,
) -> FileSink:
    """Return a sink for a path: a table where its ending is one of a table, else a folder."""
    ending = table_ending(path)
    if ending is None:
        return NpySink(path, n_rows, classes, outputs, top)
    from biglp._output import table  # needs pyarrow

    sinks: dict[str, Callable[..., FileSink]]
    sinks = {"parquet": table.ParquetSink, "csv": table.CsvSink, "jsonl": table.JsonLinesSink}
    return sinks[TABLES[ending]](path, n_rows, classes, outputs, top)
