"""Sparse rows in three ``.npy`` files: where rows begin, their features, and the values."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from scipy import sparse

from biglp._core.arrays import Rows
from biglp._sources.cache.folder import NpyWriter
from biglp._sources.cache.sums import CheckedFile

WIDTH = "width.npy"


def write_width(folder: Path, width: int) -> None:
    """Write the number of features."""
    with NpyWriter(folder / WIDTH, np.int64) as file:
        file.append(np.array([width]))


class CsrWriter(AbstractContextManager["CsrWriter"]):
    """Sparse rows that are written piece by piece, as :class:`CsrFiles` reads them.

    Parameters
    ----------
    folder : Path
    width : int
        Number of features.
    dtype : numpy.dtype
    """

    def __init__(self, folder: Path, width: int, dtype: Any) -> None:
        write_width(folder, width)
        self._starts = NpyWriter(folder / "indptr.npy", np.int64)
        self._features = NpyWriter(folder / "indices.npy", np.int32)
        self._values = NpyWriter(folder / "data.npy", dtype)
        self._starts.append(np.zeros(1))
        self._end = 0

    def append(self, rows: Rows) -> None:
        """Write a CSR matrix after the rows that are there."""
        self._starts.append(rows.indptr[1:].astype(np.int64) + self._end)
        self._features.append(rows.indices)
        self._values.append(rows.data)
        self._end += int(rows.indptr[-1])

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for part in (self._starts, self._features, self._values):
            part.__exit__(kind, error, trace)


class CsrFiles:
    """CSR rows in a folder with ``indptr.npy``, ``indices.npy``, ``data.npy`` and ``width.npy``.

    Attributes
    ----------
    shape : tuple of int
    dtype : numpy.dtype
    """

    def __init__(self, folder: Path) -> None:
        self._starts = CheckedFile(folder / "indptr.npy")
        self._features = CheckedFile(folder / "indices.npy")
        self._values = CheckedFile(folder / "data.npy")
        width = int(CheckedFile(folder / WIDTH).read(0, 1)[0])
        self.shape = (self._starts.shape[0] - 1, width)
        self.dtype: np.dtype[Any] = self._values.dtype

    def read(self, start: int, stop: int) -> Rows:
        """Return rows ``start`` to ``stop`` (exclusive) as a CSR matrix."""
        starts = self._starts.read(start, stop + 1)
        low, high = int(starts[0]), int(starts[-1])
        parts = (self._values.read(low, high), self._features.read(low, high), starts - low)
        return sparse.csr_matrix(parts, shape=(stop - start, self.shape[1]))

    def take(self, indices: np.ndarray) -> Rows:
        """Return the rows at increasing ``indices`` as a CSR matrix."""
        indices = np.asarray(indices, dtype=np.int64)
        bounds = np.union1d(indices, indices + 1)
        starts = self._starts.take(bounds)
        low = starts[np.searchsorted(bounds, indices)]
        lengths = starts[np.searchsorted(bounds, indices + 1)] - low
        pointers = np.concatenate([[0], np.cumsum(lengths)])
        # Positions of all values of the chosen rows, increasing because the rows are.
        places = np.repeat(low - pointers[:-1], lengths) + np.arange(pointers[-1])
        parts = (self._values.take(places), self._features.take(places), pointers)
        return sparse.csr_matrix(parts, shape=(len(indices), self.shape[1]))
