"""Rows that were converted from a slow format, read at the speed of the disk."""

from __future__ import annotations

from typing import Any

import numpy as np

from biglp._core.arrays import Rows
from biglp._core.errors import BadRowsError
from biglp._core.files import FileStamp
from biglp._sources.base import Source
from biglp._sources.cache.csrfile import CsrFiles
from biglp._sources.cache.folder import VERSION, CacheStore, Entry
from biglp._sources.cache.rawfile import RawFile
from biglp._sources.files import FileSource
from biglp._sources.options import ReadOptions
from biglp._sources.tables.encoding import Encoding


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
