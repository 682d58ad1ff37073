"""Dense rows in ``.npy`` files, one or several."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from biglp._core.arrays import Rows
from biglp._sources.base import Source
from biglp._sources.cache.rawfile import RawFile
from biglp._sources.files import FileSource
from biglp._sources.formats.arrays import check_shape
from biglp._sources.formats.base import (
    Format,
    LabelArray,
    LabelColumns,
    LabelPiece,
    labels_in_arrays,
)
from biglp._sources.formats.shards import ShardedSource
from biglp._sources.options import ReadOptions
from biglp._sources.prepared import fill_missing


class NpySource(FileSource):
    """Rows of a two-dimensional ``.npy`` file of any real type, in either order.

    Parameters
    ----------
    path : str
    may_be_empty : bool
        Whether it may hold no rows, as one shard of several.
    """

    kind = "npy"

    def __init__(self, path: str, may_be_empty: bool = False) -> None:
        self.name = path
        self._file = check_shape(RawFile(path), path, may_be_empty)
        self.n_rows, self.n_features = self._file.shape
        self.dtype = self._file.dtype
        self.stamps = (self._file.stamp,)

    def read(self, start: int, stop: int) -> Rows:
        """Read rows ``start`` to ``stop`` (exclusive) into fresh memory."""
        return self._file.read(start, stop)

    def take(self, indices: np.ndarray) -> Rows:
        """Read the rows at increasing ``indices``."""
        return self._file.take(indices)

    def ask_for(self, start: int, stop: int) -> None:
        """Let the disk begin with rows that will be read soon."""
        self._file.ask_for(start, stop)


class NpyFormat(Format):
    """Arrays: two-dimensional for rows, one-dimensional for labels."""

    name = "npy"

    def open(self, files: Sequence[str], options: ReadOptions) -> Source:
        """Open one file or several shards; rows are read where they are."""
        options.refuse(files[0], "columns", "label_column", "drop", "categorical", "text", "dtype")
        source: FileSource
        if len(files) == 1:
            source = NpySource(files[0])
        else:
            source = ShardedSource(files, partial(NpySource, may_be_empty=True))
        return fill_missing(source, options)

    def count_rows(self, files: Sequence[str]) -> list[int]:
        """Count the rows of each file, which are in its header."""
        return [NpySource(file, may_be_empty=True).n_rows for file in files]

    def read_labels(
        self, files: Sequence[str], columns: LabelColumns, n_rows: int | None = None
    ) -> Iterator[LabelPiece]:
        """Yield the labels of all files."""
        arrays = [RawFile(file) for file in files]
        return labels_in_arrays(
            [
                LabelArray(file, array.shape, array.dtype, array.read)
                for file, array in zip(files, arrays, strict=True)
            ]
        )


NPY = NpyFormat()
