"""Where a block's features wait between two sweeps: in memory, in a temporary file, or nowhere.

What is in memory is a tuple of the arrays themselves, so that a change of theirs stays too; what is
in a file is a list of places.

Reading 20 features back is several times faster than reading 100 columns from disk and computing
them again. What does not fit the memory budget goes to a file that has no name, so that the system
frees it whatever happens to the process; what fits neither is computed again. The file of features
has to share the system's cache with rows that are read, so that the less of it there is the better.
"""

from __future__ import annotations

import math
import tempfile
import threading
from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from biglp._core.arrays import Array
from biglp._core.errors import DISK_FULL
from biglp._files.local import read_at, write_at

Packed = tuple[Array, ...]


class FeatureStore(ABC):
    """Keeps tuples of arrays."""

    @abstractmethod
    def keep(self, arrays: Packed) -> Any:
        """Keep arrays and return what :meth:`load` needs, or None when they are not kept."""

    def load(self, stored: Any) -> Packed:
        """The arrays that were kept."""
        if isinstance(stored, tuple):
            return stored
        arrays = []
        for file, start, shape, dtype in stored:
            array = np.empty(shape, dtype=dtype)
            data, position = array.reshape(-1).view(np.uint8).data, start
            while data:
                got = read_at(file.fileno(), data, position)
                data, position = data[got:], position + got
            arrays.append(array)
        return tuple(arrays)

    def room(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
        """An array to be filled and then kept, by the same thread."""
        return np.empty(shape, dtype)


class NoStore(FeatureStore):
    """Keeps nothing."""

    def keep(self, arrays: Packed) -> Any:
        return None


class MemoryStore(FeatureStore):
    """Keeps copies in memory, packed into a few large arrays for each thread.

    Thousands of separate arrays of a megabyte would each be given fresh pages by the system, four
    kilobytes at a time; filling those costs more than computing the features. Large arrays get
    large pages. A buffer is freed when the last copy in it is.
    """

    BUFFER_BYTES = 64 << 20

    def __init__(self) -> None:
        self._current = threading.local()

    def keep(self, arrays: Packed) -> Any:
        """Keep a copy of NumPy arrays; tensors are kept as they are."""
        stored = []
        for array in arrays:
            if isinstance(array, np.ndarray):
                room = self.room(array.shape, array.dtype)
                if room.ctypes.data != array.ctypes.data:
                    room[...] = array
                # The next copy starts on a cache line of its own.
                self._current.__dict__["used"] += -(-array.nbytes // 64) * 64
                array = room
            stored.append(array)
        return tuple(stored)

    def room(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
        """The memory to which an array would be copied."""
        current = self._current.__dict__
        buffer, used = current.get("buffer"), current.get("used", 0)
        n_bytes = math.prod(shape) * dtype.itemsize
        if buffer is None or used + n_bytes > buffer.nbytes:
            buffer, used = np.empty(max(self.BUFFER_BYTES, n_bytes), dtype=np.uint8), 0
        current.update(buffer=buffer, used=used)
        room: np.ndarray = buffer[used : used + n_bytes].view(dtype).reshape(shape)
        return room

    def __getstate__(self) -> dict[str, Any]:
        return {}  # another process starts with an empty buffer

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._current = threading.local()


class DiskStore(FeatureStore):
    """Keeps arrays in a temporary file without a name, in ``folder`` or the system's own.

    What is kept holds on to the file: on another process a store is unpacked with each parcel of
    work and forgotten after it, while the blocks stay.
    """

    def __init__(self, folder: str | None = None) -> None:
        self.folder = folder
        self._lock = threading.Lock()
        self._end = 0
        self._file: Any = None
        self._full = False

    def keep(self, arrays: Packed) -> Any:
        """Append arrays to the file; on a full disk what comes is computed again instead."""
        if self._full:
            return None
        stored = []
        try:
            for array in arrays:
                contiguous = np.ascontiguousarray(array)
                with self._lock:
                    if self._file is None:
                        # Closed, and so removed, when neither the store nor a block needs it.
                        self._file = tempfile.TemporaryFile(dir=self.folder)  # noqa: SIM115
                    start, self._end = self._end, self._end + contiguous.nbytes
                data, position = contiguous.reshape(-1).view(np.uint8).data, start
                while data:
                    written = write_at(self._file.fileno(), data, position)
                    data, position = data[written:], position + written
                stored.append((self._file, start, contiguous.shape, contiguous.dtype))
        except OSError as error:
            if error.errno not in DISK_FULL:
                raise
            self._full = True
            return None
        return stored

    def __getstate__(self) -> dict[str, Any]:
        return {"folder": self.folder}  # another process has a file of its own

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["folder"])  # type: ignore[misc]


class SpillingStore(FeatureStore):
    """Keeps ``most_bytes`` in memory, and what comes later in a file in ``folder``."""

    def __init__(self, most_bytes: int, folder: str | None = None) -> None:
        self._left, self._lock = most_bytes, threading.Lock()
        self._memory, self._disk = MemoryStore(), DiskStore(folder)

    def keep(self, arrays: Packed) -> Any:
        n_bytes = sum(array.nbytes for array in arrays)
        with self._lock:
            fits = n_bytes <= self._left
            self._left -= n_bytes if fits else 0
        return self._memory.keep(arrays) if fits else self._disk.keep(arrays)

    def room(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
        if math.prod(shape) * dtype.itemsize <= self._left:
            return self._memory.room(shape, dtype)
        return super().room(shape, dtype)

    def __getstate__(self) -> dict[str, Any]:
        return {"folder": self._disk.folder}

    def __setstate__(self, state: dict[str, Any]) -> None:
        # A worker unpacks a store with every parcel of work: nobody would count what is in memory.
        self.__init__(0, state["folder"])  # type: ignore[misc]
