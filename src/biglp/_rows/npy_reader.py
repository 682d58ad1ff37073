"""Rows of a ``.npy`` file read by position into fresh memory.

Measured against mapping the file (4 GB, blocks of 4 MB, two threads, a Gaussian kernel's worth of
arithmetic on each block): from the cache the two take the same time; from disk, reading with a
request for the next 32 MB takes about half the time of mapping, because the disk works while the
processor does. Mapping also counts every page it touched as resident, 3.9 GB against 60 MB here.
Fresh memory for each block costs nothing that can be measured below 32 MB (the allocator hands the
same pages back) and, unlike a reused buffer, never changes a block that a caller has kept.
"""

from __future__ import annotations

import os
import warnings
import weakref
from collections import deque
from itertools import pairwise
from typing import Any

import numpy as np

from biglp._core.errors import BadRowsError
from biglp._files.local import FileStamp, open_handle, read_at

READ_AHEAD_BYTES = 32 << 20
JOIN_GAP_BYTES = 32 << 10
"""Rows closer than this are fetched by one read: a disk needs as long for 32 kB as for one row."""
JOINED_BYTES = 1 << 20


class RawFile:
    """An array in a ``.npy`` file, read by ranges of its first axis.

    Cheap to pickle: the file is opened where it is first read.
    """

    _handle: int | None = None

    def __init__(self, path: str | os.PathLike[str], stamp: FileStamp | None = None) -> None:
        self.stamp = stamp or FileStamp.of(path)
        try:
            with warnings.catch_warnings(action="ignore"):
                mapped = np.load(path, mmap_mode="r", allow_pickle=False)
        except Exception as error:  # a damaged header can fail in any layer of its parser
            raise BadRowsError(
                f"{os.fspath(path)} cannot be read as a .npy array: {error}. "
                "It may have been cut short; write it with numpy.save and a numeric type."
            ) from error
        if not isinstance(mapped, np.memmap):
            raise BadRowsError(f"{os.fspath(path)} is an archive of arrays; give one .npy array.")
        self.shape: tuple[int, ...] = mapped.shape
        self.dtype: np.dtype[Any] = mapped.dtype
        self.ndim = len(self.shape)
        self._offset = int(mapped.offset)
        self._entry_bytes = int(self.dtype.itemsize * np.prod(self.shape[1:], dtype=np.int64))
        self._by_columns = bool(mapped.flags.f_contiguous and not mapped.flags.c_contiguous)
        self._ends: deque[int] = deque(maxlen=32)
        self._asked = 0

    def read(self, start: int, stop: int) -> np.ndarray:
        """Return entries ``start`` to ``stop`` (exclusive) of the first axis."""
        if self._by_columns:
            return self._columns(start, stop)
        out = np.empty((stop - start, *self.shape[1:]), dtype=self.dtype)
        first = self._offset + start * self._entry_bytes
        self._fill(out.reshape(-1).view(np.uint8).data, first)
        # Ask for the next bytes when blocks are read in order (by one thread or several).
        end, in_order = first + out.nbytes, first in self._ends
        self._ends.append(end)
        if not in_order:
            self._asked = end
        elif end + READ_AHEAD_BYTES // 2 > self._asked:
            begin, self._asked = max(self._asked, end), end + READ_AHEAD_BYTES
            if hasattr(os, "posix_fadvise"):
                length = self._asked - begin
                os.posix_fadvise(self._open(), begin, length, os.POSIX_FADV_WILLNEED)
        return out

    def take(self, indices: np.ndarray) -> np.ndarray:
        """Return the entries at increasing ``indices``, near ones with one read."""
        indices = np.asarray(indices)
        out = np.empty((len(indices), *self.shape[1:]), dtype=self.dtype)
        if out.size == 0:
            return out
        # Runs of rows that are read together; one may not grow without end, or a dense choice
        # would hold the whole file.
        size = max(self._entry_bytes, 1)
        far = np.diff(indices) > max(JOIN_GAP_BYTES // size, 1)
        groups = (indices - indices[0]) // max(JOINED_BYTES // size, 1)
        bounds = np.flatnonzero(np.r_[True, far | (np.diff(groups) > 0), True])
        starts, stops = indices[bounds[:-1]], indices[bounds[1:] - 1] + 1
        runs = list(zip(pairwise(bounds.tolist()), starts.tolist(), stops.tolist(), strict=True))
        if self._by_columns:
            for (first, last), low, high in runs:
                out[first:last] = self._columns(low, high)[indices[first:last] - low]
            return out
        for _, low, high in runs:  # ask first: the disk can order these
            self.ask_for(low, high)
        view = out.reshape(-1).view(np.uint8).data
        for (first, last), low, high in runs:
            if last - first == high - low:  # nothing between the rows: straight to their place
                self._fill(view[first * size : last * size], self._offset + low * size)
            else:
                near = np.empty((high - low, *self.shape[1:]), dtype=self.dtype)
                self._fill(near.reshape(-1).view(np.uint8).data, self._offset + low * size)
                out[first:last] = near[indices[first:last] - low]
        return out

    def _columns(self, start: int, stop: int) -> np.ndarray:
        """Entries of a file in Fortran's order, one read a column.

        Mapping would end the process without a word when the file is cut short meanwhile.
        """
        lanes = np.empty((int(np.prod(self.shape[1:])), stop - start), dtype=self.dtype)
        for number, lane in enumerate(lanes):
            first = (number * self.shape[0] + start) * self.dtype.itemsize
            self._fill(lane.view(np.uint8).data, self._offset + first)
        return lanes.T.reshape((stop - start, *self.shape[1:]), order="F")

    def ask_for(self, start: int, stop: int) -> None:
        """Let the disk begin with entries that will be read soon."""
        # Not on macOS, where the system guesses well enough.
        if not self._by_columns and hasattr(os, "posix_fadvise"):
            size = self._entry_bytes
            position, length = self._offset + start * size, (stop - start) * size
            os.posix_fadvise(self._open(), position, length, os.POSIX_FADV_WILLNEED)

    def _fill(self, view: memoryview, position: int) -> None:
        """Read bytes from ``position`` on until ``view`` is full."""
        handle, done = self._open(), 0
        while done < len(view):
            got = read_at(handle, view[done:] if done else view, position + done)
            if got == 0:
                raise BadRowsError(
                    f"{self.stamp.path} ends at byte {position + done:,}, in the middle of its "
                    "rows; it was cut short while being read. Write it again and run again."
                )
            done += got

    def _open(self) -> int:
        if self._handle is None:
            self.stamp.check()  # the file that was looked at; whether it stays so, its users ask
            handle = open_handle(self.stamp.path, os.O_RDONLY)
            self._handle = handle
            weakref.finalize(self, os.close, handle)
        return self._handle

    def __getstate__(self) -> dict[str, Any]:
        """Leave open files behind, and what was read of them."""
        ends: deque[int] = deque(maxlen=32)
        return {**self.__dict__, "_handle": None, "_ends": ends, "_asked": 0}
