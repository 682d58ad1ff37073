"""Dense rows in a ``.npy`` file."""

from __future__ import annotations

import os

import numpy as np

from biglp._core.arrays import Rows
from biglp._sources.cache.rawfile import RawFile
from biglp._sources.files import FileSource
from biglp._sources.formats.arrays import _checked_shape


class NpySource(FileSource):
    """Rows of a two-dimensional ``.npy`` file of any real type, in either order."""

    kind = "npy"

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._file = _checked_shape(RawFile(path), os.fspath(path))
        self.n_rows, self.n_features = self._file.shape
        self.dtype = self._file.dtype
        self.stamps = (self._file.stamp,)

    def read(self, start: int, stop: int) -> Rows:
        """Read rows ``start`` to ``stop`` (exclusive) into fresh memory."""
        return self._file.read(start, stop)

    def take(self, indices: np.ndarray) -> Rows:
        """Read the rows at increasing ``indices``."""
        return self._file.take(indices)
