"""Slow formats converted once to raw rows, so that later sweeps read at the speed of the disk."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from biglp._arrays import Rows
from biglp._blocks import format_bytes
from biglp._errors import BadRowsError, ParameterError
from biglp._files import FileStamp, OutputError
from biglp._progress import Progress
from biglp._sources.base import Source
from biglp._sources.columns import make_encoding
from biglp._sources.csrfile import CsrFiles
from biglp._sources.encoding import Encoding
from biglp._sources.files import FileSource, describe_files
from biglp._sources.missing import MissingTally
from biglp._sources.options import ReadOptions
from biglp._sources.rawfile import RawFile
from biglp._sources.store import VERSION, CacheStore, Entry, NpyWriter, no_room
from biglp._sources.table import TableFile, stream
from biglp._sources.tabular import TabularSource, check_not_empty, column_buffer

logger = logging.getLogger("biglp")

SLOW = ("Parquet", "CSV")
"""Formats that cost more to decode than raw rows cost to read."""


class CachedSource(FileSource):
    """Rows that were converted from a slow format; messages and fingerprint are the original's.

    Parameters
    ----------
    entry : Entry
        The converted rows.
    kind : str
        The original's format.
    stamps : tuple of FileStamp
        The original's files.
    store : CacheStore, optional
        Kept alive as long as this source; copies sent to other processes do not own it.
    original : Source, optional
        Read instead on a machine that cannot see the converted rows.
    """

    def __init__(
        self,
        entry: Entry,
        kind: str,
        stamps: tuple[FileStamp, ...],
        store: CacheStore | None = None,
        original: Source | None = None,
    ) -> None:
        self._kind = kind
        self.stamps = stamps
        self.folder = entry.folder
        self.encoding = Encoding.from_json(entry.meta["encoding"])
        self.feature_names = self.encoding.feature_names
        dense = (entry.folder / "rows.npy").exists()
        self._rows: RawFile | CsrFiles = (
            RawFile(entry.folder / "rows.npy") if dense else CsrFiles(entry.folder)
        )
        self.n_rows, self.n_features = self._rows.shape
        self.dtype = self._rows.dtype
        self._store = store
        self._original = original

    def read(self, start: int, stop: int) -> Rows:
        """Read converted rows."""
        return self._reader().read(start, stop)

    def take(self, indices: np.ndarray) -> Rows:
        """Read converted rows at increasing ``indices``."""
        return self._reader().take(np.asarray(indices))

    @property
    def is_sparse(self) -> bool:
        """Whether blocks are CSR matrices."""
        return isinstance(self._rows, CsrFiles)

    def file_labels(self) -> np.ndarray | None:
        """Labels that were in the file (LIBSVM), one a row; None where there are none."""
        path = self.folder / "labels.npy"
        return np.load(path) if path.exists() else None

    def fingerprint(self) -> dict[str, Any]:
        """Facts about the original, not about its conversion."""
        return {**super().fingerprint(), "kind": self._kind}

    def _reader(self) -> Any:
        self.check_unchanged()
        if self.folder.exists():
            return self._rows
        if self._original is not None:
            return self._original
        raise BadRowsError(
            f"{self.name} was converted to raw rows in {self.folder}, which is gone or cannot be "
            "seen from this machine; name a folder that all machines share with cache= (--cache)."
        )

    def __getstate__(self) -> dict[str, Any]:
        """Leave the ownership of the folder behind."""
        return {**self.__dict__, "_store": None}


def open_table(files: Sequence[TableFile], options: ReadOptions) -> FileSource:
    """Open a table, converting it first where that pays and the disk has room."""
    name, kind = files[0].name, files[0].kind
    in_parts = bool(files[0].part_rows)
    if in_parts and (options.cache == "never" or kind not in SLOW):
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


def conversion_facts(stamps: tuple[FileStamp, ...], options: ReadOptions) -> dict[str, Any]:
    """Everything that the converted rows depend on."""
    return {
        "version": VERSION,
        "files": [stamp.facts() for stamp in stamps],
        "columns": options.columns and list(options.columns),
        "left_out": [options.label_column, *options.drop],
        "categorical": options.categorical,
        "missing": options.missing,
        "dtype": options.dtype and np.dtype(options.dtype).str,
        "encoding": options.encoding and options.encoding.to_json(),
        "layout": [options.delimiter, options.header, options.zero_based, options.n_features],
    }


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
            encoding.encode(batch, buffer, done, missing)
            if not missing.counts:
                rows.append(buffer.T)
            done += batch.num_rows
            task.advance(batch.num_rows)
    missing.check(name)
    check_not_empty(done, name)
    return {"encoding": encoding.to_json()}
