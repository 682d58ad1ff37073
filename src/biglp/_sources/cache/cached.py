"""Rows that were converted from a slow format, read at the speed of the disk."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from biglp._core.arrays import Rows
from biglp._core.errors import BadRowsError
from biglp._files.local import FileStamp
from biglp._sources.base import Source
from biglp._sources.cache.csrfile import CsrFiles
from biglp._sources.cache.folder import CacheStore
from biglp._sources.cache.sums import CheckedFile
from biglp._sources.decoding import SPARSE_BYTES, table_bytes
from biglp._sources.files import FileSource
from biglp._sources.tables.encoding import Encoding


class CachedSource(FileSource):
    """Rows that were converted from a slow format; messages and fingerprint are the original's.

    Parameters
    ----------
    store : CacheStore
        The converted rows. It lives as long as this source; copies sent to other processes do not
        own it.
    kind : str
        The original's format.
    stamps : tuple of FileStamp
        The original's files.
    encoding : Encoding
        How its columns became features.
    open_original : callable, optional
        Opens the original, which is read on a machine that cannot see the converted rows.
    """

    encoding: Encoding
    compare: Callable[[], dict[str, Any]] | None = None
    """Compares the original's columns with those of the training rows, where it was opened."""

    def __init__(
        self,
        store: CacheStore,
        kind: str,
        stamps: tuple[FileStamp, ...],
        encoding: Encoding,
        open_original: Callable[[], Source] | None = None,
    ) -> None:
        self.name = store.name
        self.kind = kind
        self.stamps = stamps
        self.folder = store.folder
        self.encoding = encoding
        self.feature_names = encoding.feature_names
        self.words_from = encoding.words_from
        self.is_sparse = not (store.folder / "rows.npy").exists()
        self._rows: CheckedFile | CsrFiles = (
            CsrFiles(store.folder) if self.is_sparse else CheckedFile(store.folder / "rows.npy")
        )
        self.n_rows, self.n_features = self._rows.shape
        self.dtype = self._rows.dtype
        self.decoding_bytes = (
            SPARSE_BYTES if self.is_sparse else table_bytes(self.n_rows, encoding.n_inputs)
        )
        self._store: CacheStore | None = store
        self._open_original = open_original
        self._original: Source | None = None

    def read(self, start: int, stop: int) -> Rows:
        """Read converted rows."""
        return self._reader().read(start, stop)

    def take(self, indices: np.ndarray) -> Rows:
        """Read converted rows at increasing ``indices``."""
        return self._reader().take(np.asarray(indices))

    def compare_columns(self) -> dict[str, Any]:
        """Compare the original's columns."""
        return {} if self.compare is None else self.compare()

    def _reader(self) -> Any:
        # The original is not looked at for every block: who sweeps does so before and after.
        if self.folder.exists():
            return self._rows
        if self._open_original is None:
            raise BadRowsError(
                f"{self.name} was converted to raw rows in {self.folder}, which is gone or cannot "
                "be seen from this machine; name a folder that all machines share with cache= "
                "(--cache)."
            )
        if self._original is None:
            self._original = self._open_original()
        return self._original

    def __getstate__(self) -> dict[str, Any]:
        """Leave the ownership of the folder behind, and open files."""
        return {**self.__dict__, "_store": None, "_original": None, "compare": None}
