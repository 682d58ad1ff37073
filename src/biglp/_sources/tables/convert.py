"""Tables converted once to raw rows, where the disk has room."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np

from biglp._core.arrays import Rows
from biglp._core.errors import OutputError
from biglp._core.memory import format_bytes
from biglp._core.progress import Progress, Task
from biglp._sources.cache.csrfile import CsrWriter
from biglp._sources.cache.folder import CacheStore, NpyWriter, no_room
from biglp._sources.files import no_rows
from biglp._sources.tables.arrow_columns import encode, encode_sparse
from biglp._sources.tables.encoding import Encoding
from biglp._sources.tables.missing import MissingValues
from biglp._sources.tables.table import TableFile, stream
from biglp._sources.tables.tabular import column_buffer

GUESSED_WORDS = 100
"""Different words of a text, for the disk space."""
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
    needed = n_rows * row_bytes(encoding)
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


def row_bytes(encoding: Encoding) -> int:
    """What a row takes on disk; of a text only a guess can be made before it is read."""
    itemsize = np.dtype(encoding.dtype).itemsize
    if encoding.words_from is None:
        return encoding.n_features * itemsize
    words = GUESSED_WORDS * sum(column.sparse for column in encoding.columns or ())
    return (encoding.words_from + words) * (itemsize + 4)


def _write_rows(
    files: Sequence[TableFile], encoding: Encoding, name: str, task: Task, folder: Path
) -> Encoding:
    """Stream a table into ``rows.npy``; missing values are counted to the end, then refused."""
    dtype, width = np.dtype(encoding.dtype), encoding.n_features
    missing, done = MissingValues(), 0
    words = encoding.words_from is not None
    writer = (
        CsrWriter(folder, width, dtype)
        if words
        else NpyWriter(folder / "rows.npy", dtype, (width,))
    )
    with writer as rows:
        for batch in stream(files, encoding.names):
            found: Rows
            if words:
                found = encode_sparse(encoding, batch, done, missing)
            else:
                buffer = column_buffer(width, batch.num_rows, dtype)
                encode(encoding, batch, buffer, done, missing)
                found = buffer.T
            if not missing.counts:
                rows.append(found)
            done += batch.num_rows
            task.advance(batch.num_rows)
    if missing.counts:
        raise missing.error(name)
    if done == 0:
        raise no_rows(name)
    return encoding
