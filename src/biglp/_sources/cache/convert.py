"""Tables converted once to raw rows, where that pays and the disk has room."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from biglp._core.errors import OutputError, ParameterError
from biglp._core.memory import format_bytes
from biglp._core.progress import Progress
from biglp._sources.cache.cached import CachedSource, conversion_facts
from biglp._sources.cache.folder import CacheStore, NpyWriter, no_room
from biglp._sources.files import FileSource, check_not_empty, describe_files
from biglp._sources.options import ReadOptions
from biglp._sources.tables.arrow_columns import encode
from biglp._sources.tables.columns import make_encoding
from biglp._sources.tables.encoding import Encoding
from biglp._sources.tables.missing import MissingTally
from biglp._sources.tables.table import TableFile, stream
from biglp._sources.tables.tabular import TabularSource, column_buffer

logger = logging.getLogger("biglp")


def open_table(files: Sequence[TableFile], options: ReadOptions) -> FileSource:
    """Open a table, converting it first where that pays and the disk has room."""
    name, kind = files[0].name, files[0].kind
    in_parts = bool(files[0].part_rows)
    if in_parts and (options.cache == "never" or not files[0].slow):
        return TabularSource(files, make_encoding(files, options))
    if options.cache == "never":
        raise ParameterError(
            f"cache='never' cannot be used with {name}: {kind} cannot be read from the middle and "
            "must be converted once; use cache='auto' or name a folder."
        )
    stamps = tuple(file.stamp for file in files if file.stamp is not None)
    store = CacheStore(options.cache_folder)
    facts = conversion_facts(stamps, options)
    entry = store.find(name, facts)
    if entry is not None:
        encoding = Encoding.from_json(entry.meta["encoding"])
        original = TabularSource(files, encoding) if in_parts else None
        return CachedSource(entry, kind, stamps, store, original)
    encoding = make_encoding(files, options)
    original = TabularSource(files, encoding) if in_parts else None
    needed = sum(file.n_rows_guess for file in files) * _row_bytes(encoding)
    shortage = store.shortage(needed)
    if shortage is not None and original is None:
        raise no_room(name, shortage)
    if shortage is None:
        logger.info("%s: converting to raw rows (%s) in %s", name, format_bytes(needed), store.path)
        try:
            entry = store.build(
                name, facts, lambda folder: _write_rows(files, encoding, folder, options.progress)
            )
            return CachedSource(entry, kind, stamps, store, original)
        except OutputError as error:
            if original is None:
                raise
            shortage = str(error)
    assert original is not None
    logger.info("%s: not converted (%s); every sweep decodes it again", name, shortage)
    return original


def _row_bytes(encoding: Encoding) -> int:
    return encoding.n_features * np.dtype(encoding.dtype).itemsize


def _write_rows(
    files: Sequence[TableFile], encoding: Encoding, folder: Path, progress: Progress | None
) -> dict[str, Any]:
    """Stream a table into ``rows.npy``; missing values are counted to the end, then refused."""
    assert encoding.columns is not None
    dtype, width = np.dtype(encoding.dtype), encoding.n_features
    name = describe_files(tuple(file.stamp for file in files if file.stamp is not None))
    missing, done = MissingTally(), 0
    guess = sum(file.n_rows_guess for file in files)
    with (
        NpyWriter(folder / "rows.npy", dtype, (width,)) as rows,
        (progress or Progress()).task(f"converting {files[0].name}", guess) as task,
    ):
        for batch in stream(files, encoding.columns):
            buffer = column_buffer(width, batch.num_rows, dtype)
            encode(encoding, batch, buffer, done, missing)
            if not missing.counts:
                rows.append(buffer.T)
            done += batch.num_rows
            task.advance(batch.num_rows)
    missing.check(name)
    check_not_empty(done, name)
    return {"encoding": encoding.to_json()}
