"""Tables converted once to raw rows, where the disk has room."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from biglp._core.arrays import Rows
from biglp._core.errors import OutputError
from biglp._core.memory import format_bytes
from biglp._core.progress import Progress, Task
from biglp._rows.cache import CacheStore, CsrWriter, NpyWriter, no_room
from biglp._rows.encoding import Encoding
from biglp._rows.source import no_rows
from biglp._sources.tables.encode import encode, encode_sparse, ready_rows
from biglp._sources.tables.missing import MissingValues
from biglp._sources.tables.table import TableFile, stream
from biglp._sources.tables.tabular import feature_buffer

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
    missing, done = MissingValues(), 0
    dtype, width = np.dtype(encoding.dtype), encoding.n_features
    writer = (
        NpyWriter(folder / "rows.npy", dtype, (width,))
        if encoding.words_from is None
        else CsrWriter(folder, width, dtype)
    )
    with (
        writer as rows,
        ThreadPoolExecutor(1, "biglp-write") as disk,  # writes one batch while the next is decoded
    ):
        writing: Future[None] | None = None
        for batch in stream(files, encoding.names):
            found = _decoded(encoding, batch, done, missing)
            if writing is not None:
                writing.result()
            if not missing.counts:
                writing = disk.submit(rows.append, found)
            done += batch.num_rows
            task.advance(batch.num_rows)
        if writing is not None:
            writing.result()
    for file in files:  # what is kept must be what the stamps in its name say
        if file.stamp is not None:
            file.stamp.check()
    if missing.counts:
        raise missing.error(name)
    if done == 0:
        raise no_rows(name)
    return encoding


def _decoded(encoding: Encoding, batch: Any, first: int, missing: MissingValues) -> Rows:
    """Rows of a batch, sparse where some of its columns are."""
    if encoding.words_from is not None:
        return encode_sparse(encoding, batch, first, missing)
    ready = ready_rows(encoding, batch)
    if ready is not None:
        return ready
    buffer = feature_buffer(encoding, batch.num_rows)
    encode(encoding, batch, buffer, first, missing)
    return buffer.T
