"""Rows in files that store them in chunks, each packed as a whole: HDF5 and Zarr."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, ClassVar

import numpy as np

from biglp._core.arrays import Rows
from biglp._core.errors import BadRowsError
from biglp._files.local import FileStamp
from biglp._files.uri import split_inside
from biglp._sources.base import Source
from biglp._sources.files import FileSource
from biglp._sources.formats.arrays import check_shape
from biglp._sources.formats.base import (
    Format,
    LabelArray,
    LabelColumns,
    LabelPiece,
    labels_in_arrays,
)
from biglp._sources.formats.inside import Facts, choose, named
from biglp._sources.formats.shards import ShardedSource
from biglp._sources.kept import PartCache
from biglp._sources.options import ReadOptions
from biglp._sources.prepared import fill_missing

PART_BYTES = 1 << 20
"""Chunks are unpacked so many bytes at a time at least: small ones several together."""


class ArrayFile(ABC):
    """A file that holds arrays by name, opened where it is first read.

    Parameters
    ----------
    path : str
    """

    kind: ClassVar[str]
    _file: Any

    def __init__(self, path: str) -> None:
        self.path = path
        self.stamp = FileStamp.of(path)
        self._begin()

    @abstractmethod
    def open_file(self) -> Any:
        """Open the file for reading: a mapping from names to arrays."""

    @abstractmethod
    def facts(self) -> dict[str, Facts]:
        """Names, shapes and types of all arrays."""

    @property
    def file(self) -> Any:
        """The file, open."""
        with self._lock:
            if self._file is None:
                self.check()
                try:
                    self._file = self.open_file()
                except (OSError, ValueError, KeyError) as error:
                    raise BadRowsError(
                        f"{self.path} cannot be read as {self.kind}: {error}. It is damaged, was "
                        "cut short while it was written, or has the wrong ending; write or copy "
                        "it again."
                    ) from error
            return self._file

    def array(self, name: str) -> Any:
        """One of its arrays."""
        return self.file[name]

    def check(self) -> None:
        """Raise when it is no longer the file that was looked at first."""
        self.stamp.check()

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._file = None

    def __getstate__(self) -> dict[str, Any]:
        """Leave the open file behind."""
        return {**self.__dict__, "_lock": None, "_file": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Begin with the file closed."""
        self.__dict__.update(state, path=state["stamp"].path)
        self._begin()


class ChunkedSource(FileSource):
    """Rows of a two-dimensional array in a file that holds arrays by name.

    A chunk is unpacked as a whole. Each thread keeps the one it read last, for the next block may
    begin in its middle.

    Parameters
    ----------
    name : str
        The file, with ``::name`` where the array is named.
    open_file : callable
        Opens it: a subclass of :class:`ArrayFile`.
    may_be_empty : bool
        Whether it may hold no rows, as one shard of several.
    """

    def __init__(
        self, name: str, open_file: Callable[[str], ArrayFile], may_be_empty: bool = False
    ) -> None:
        self.name = name
        self._file = open_file(split_inside(name)[0])
        self.kind = self._file.kind
        self.stamps = (self._file.stamp,)
        self._array_name = choose(name, self._file.facts())
        array = check_shape(self._file.array(self._array_name), name, may_be_empty)
        self.n_rows, self.n_features = array.shape
        self.dtype = np.dtype(array.dtype)
        row_bytes = self.n_features * self.dtype.itemsize
        chunk_rows = (array.chunks or (1,))[0]
        self._part_rows = chunk_rows * -(-PART_BYTES // (chunk_rows * row_bytes))
        self.part_bytes = 2 * self._part_rows * row_bytes  # packed and unpacked
        self._held = PartCache()

    def read(self, start: int, stop: int) -> Rows:
        """Read rows ``start`` to ``stop`` (exclusive)."""
        return self._gather([slice(*span) for span in self._spans(start, stop)])

    def take(self, indices: np.ndarray) -> Rows:
        """Read the rows at increasing ``indices``, each chunk once."""
        indices = np.asarray(indices, dtype=np.int64)
        cuts = np.flatnonzero(np.diff(indices // self._part_rows)) + 1
        return self._gather([part for part in np.split(indices, cuts) if len(part)])

    def check_unchanged(self) -> None:
        """Raise when the file is no longer the one that was looked at first."""
        self._file.check()

    def _gather(self, wanted: Sequence[slice | np.ndarray]) -> np.ndarray:
        """Rows of several parts, in order; each of ``wanted`` lies in one part."""
        found = []
        for rows in wanted:
            first = int(rows.start if isinstance(rows, slice) else rows[0])
            begin = first - first % self._part_rows
            end = min(begin + self._part_rows, self.n_rows)
            if isinstance(rows, slice):
                whole = (rows.start, rows.stop) == (begin, end)
                inside: Any = slice(rows.start - begin, rows.stop - begin)
            else:
                whole, inside = False, rows - begin
            if whole:  # nothing of it is needed again
                found.append(self._load(begin, end))
            else:
                found.append(self._held.get(begin, partial(self._load, begin, end))[inside])
        if len(found) == 1:
            return np.array(found[0])  # a copy: others may read the same part
        shape = (0, self.n_features)
        return np.concatenate(found) if found else np.empty(shape, dtype=self.dtype)

    def _load(self, begin: int, end: int) -> np.ndarray:
        try:
            return np.asarray(self._file.array(self._array_name)[begin:end])
        except MemoryError:
            raise
        except Exception as error:  # a damaged chunk can fail in any layer of its library
            raise BadRowsError(
                f"{self.name}: rows {begin:,} to {end:,} cannot be read ({error}). The file is "
                "damaged or was cut short; write or copy it again."
            ) from error

    def _spans(self, start: int, stop: int) -> Iterator[tuple[int, int]]:
        while start < stop:
            end = min(stop, start - start % self._part_rows + self._part_rows)
            yield start, end
            start = end


class ChunkedFormat(Format):
    """A format of named arrays in chunks.

    Attributes
    ----------
    file : type of ArrayFile
        Opens one file.
    """

    holds_arrays = True
    file: type[ArrayFile]

    def open(self, files: Sequence[str], options: ReadOptions) -> Source:
        """Open one file or several; rows are read where they are."""
        options.refuse(files[0], "columns", "drop", "categorical", "text", "dtype")
        source: FileSource
        if len(files) == 1:
            source = ChunkedSource(files[0], self.file)
        else:
            open_shard = partial(ChunkedSource, open_file=self.file, may_be_empty=True)
            source = ShardedSource(files, open_shard)
        return fill_missing(source, options)

    def count_rows(self, files: Sequence[str]) -> list[int]:
        """Count the rows of each file, which its array says."""
        return [ChunkedSource(file, self.file, may_be_empty=True).n_rows for file in files]

    def read_labels(
        self, files: Sequence[str], columns: LabelColumns, n_rows: int | None = None
    ) -> Iterator[LabelPiece]:
        """Yield the labels in an array of each file, which must be named."""
        return labels_in_arrays([self._labels(file) for file in files])

    def _labels(self, path: str) -> LabelArray:
        file = self.file(split_inside(path)[0])
        array = file.array(named(path, file.facts()))
        return LabelArray(
            path, array.shape, np.dtype(array.dtype), lambda start, stop: array[start:stop]
        )
