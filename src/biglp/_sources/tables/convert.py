"""Tables converted once to raw rows, where the disk has room."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np

from biglp._core.errors import OutputError
from biglp._core.memory import format_bytes
from biglp._core.progress import Progress, Task
from biglp._sources.cache.folder import CacheStore, NpyWriter, no_room
from biglp._sources.files import no_rows
from biglp._sources.tables.arrow_columns import encode
from biglp._sources.tables.encoding import Encoding
from biglp._sources.tables.missing import MissingValues
from biglp._sources.tables.table import TableFile, stream
from biglp._sources.tables.tabular import column_buffer

logger = logging.getLogger("biglp")


def convert(
    store: CacheStore, files: Sequence[TableFile], encoding: Encoding, progress: Progress | None
) -> str | None:
    """Convert a table to raw rows.

    Returns
    -------
    problem : str or None
        Why a table that can also be read part by part was not converted: the disk is full.

    Raises
    ------
    OutputError
        When the disk is full and the table can only be streamed.
    """
    in_parts = bool(files[0].part_rows)
    n_rows = sum(file.n_rows_guess for file in files)
    needed = n_rows * encoding.n_features * np.dtype(encoding.dtype).itemsize
    shortage = store.shortage(needed)
    if shortage is not None and not in_parts:
        raise no_room(store.name, shortage)
    if shortage is not None:
        return shortage
    size = format_bytes(needed)
    logger.info("%s: converting to raw rows (%s) in %s", store.name, size, store.path)
    try:
        with (progress or Progress()).task(f"converting {files[0].name}", n_rows) as task:
            store.build(partial(_write_rows, files, encoding, store.name, task))
    except OutputError as error:
        if not in_parts:
            raise
        return str(error)
    return None


def _write_rows(
    files: Sequence[TableFile], encoding: Encoding, name: str, task: Task, folder: Path
) -> Encoding:
    """Stream a table into ``rows.npy``; missing values are counted to the end, then refused."""
    dtype, width = np.dtype(encoding.dtype), encoding.n_features
    missing, done = MissingValues(), 0
    with NpyWriter(folder / "rows.npy", dtype, (width,)) as rows:
        for batch in stream(files, encoding.names):
            buffer = column_buffer(width, batch.num_rows, dtype)
            encode(encoding, batch, buffer, done, missing)
            if not missing.counts:
                rows.append(buffer.T)
            done += batch.num_rows
            task.advance(batch.num_rows)
    if missing.counts:
        raise missing.error(name)
    if done == 0:
        raise no_rows(name)
    return encoding
