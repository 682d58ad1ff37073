"""Dense rows in a ``.npy`` file."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from biglp._core.arrays import Rows
from biglp._core.errors import LabelError
from biglp._sources.base import Source
from biglp._sources.cache.rawfile import RawFile
from biglp._sources.files import FileSource
from biglp._sources.filled import fill_missing
from biglp._sources.formats.arrays import check_shape
from biglp._sources.formats.base import Format, LabelColumns
from biglp._sources.labels.codes import LabelCodes
from biglp._sources.options import ReadOptions


class NpySource(FileSource):
    """Rows of a two-dimensional ``.npy`` file of any real type, in either order."""

    kind = "npy"

    def __init__(self, path: str) -> None:
        self.name = path
        self._file = check_shape(RawFile(path), path)
        self.n_rows, self.n_features = self._file.shape
        self.dtype = self._file.dtype
        self.stamps = (self._file.stamp,)

    def read(self, start: int, stop: int) -> Rows:
        """Read rows ``start`` to ``stop`` (exclusive) into fresh memory."""
        return self._file.read(start, stop)

    def take(self, indices: np.ndarray) -> Rows:
        """Read the rows at increasing ``indices``."""
        return self._file.take(indices)


class NpyFormat(Format):
    """An array: two-dimensional for rows, one-dimensional for labels."""

    name = "npy"

    def open(self, files: Sequence[str], options: ReadOptions) -> Source:
        """Open one file; rows are read where they are."""
        options.refuse(files[0], "columns", "label_column", "drop", "categorical", "text", "dtype")
        return fill_missing(NpySource(files[0]), options)

    def read_labels(self, codes: LabelCodes, files: Sequence[str], columns: LabelColumns) -> None:
        """Append the labels of the first file."""
        file = RawFile(files[0])
        if file.ndim != 1:
            raise LabelError(
                f"{files[0]} has shape {file.shape}; labels need one dimension, one a row."
            )
        if file.dtype.kind not in "iufbUS":
            raise LabelError(f"{files[0]} holds {file.dtype}; labels must be integers or text.")
        codes.append_all(file.shape[0], file.read)


NPY = NpyFormat()
