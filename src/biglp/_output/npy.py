"""Answers in ``.npy`` files, written at their place from any thread or process."""

from __future__ import annotations

import errno
import os
import threading
import weakref
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from biglp._files.local import (
    NPY_HEADER_BYTES,
    PART,
    explained_writing,
    npy_header,
    open_handle,
    rename_into_place,
    write_at,
)
from biglp._output.sink import FileSink


class NpySink(FileSink):
    """Answers in a folder: ``labels.npy``, ``confidence.npy``, ``probabilities.npy``."""

    def __init__(
        self,
        folder: str | os.PathLike[str],
        n_rows: int,
        classes: Any,
        outputs: Sequence[str] = ("label",),
        top: int | None = None,
    ) -> None:
        super().__init__(n_rows, classes, outputs, top)
        self.folder = Path(folder)
        # Final name of each column's file, and its name while it is being written.
        self.paths = {
            name: self.folder / f"{'labels' if name == 'label' else name}.npy"
            for name in self.columns
        }
        self.parts = {name: path.with_name(path.name + PART) for name, path in self.paths.items()}
        self._begin()

    @property
    def names(self) -> list[str]:
        return [path.name for path in self.paths.values()]

    def resumable(self) -> bool:
        for name, part in self.parts.items():
            if self.paths[name].exists() and not part.exists():
                self.paths[name].rename(part)  # committing gives it back its name
        return all(part.exists() for part in self.parts.values())

    def open(self, *, resume: bool = False) -> None:
        """Reserve the disk space of all files, so that a full disk shows before the work begins."""
        with explained_writing(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
        try:
            for name, part in self.parts.items():
                dtype, width = self.columns[name]
                shape = (self.n_rows, width) if width else (self.n_rows,)
                size = NPY_HEADER_BYTES + dtype.itemsize * self.n_rows * max(width, 1)
                if resume and part.exists() and part.stat().st_size == size:
                    continue
                with explained_writing(self.paths[name]), open(part, "wb") as file:
                    reserve(file.fileno(), size)
                    file.write(npy_header(dtype, shape))
        except BaseException:
            self.abort()
            raise

    def _put(self, start: int, columns: dict[str, np.ndarray]) -> None:
        for name, values in columns.items():
            dtype, width = self.columns[name]
            block = np.ascontiguousarray(values, dtype=dtype).reshape(-1).view(np.uint8)
            position, done = NPY_HEADER_BYTES + start * dtype.itemsize * max(width, 1), 0
            with explained_writing(self.paths[name]):
                while done < len(block):
                    done += write_at(self._handle(name), block[done:].data, position + done)

    def sync(self) -> None:
        for name in self.columns:
            with explained_writing(self.paths[name]):
                os.fsync(self._handle(name))

    def commit(self) -> None:
        """Force the files to disk and give them their final names."""
        self.sync()
        self.close()
        for name, part in self.parts.items():
            rename_into_place(part, self.paths[name])

    def abort(self) -> None:
        """Remove the unfinished files."""
        self.close()
        for part in self.parts.values():
            with suppress(OSError):
                part.unlink()

    def _handle(self, name: str) -> int:
        with self._lock:
            if name not in self._handles:
                handle = open_handle(self.parts[name], os.O_WRONLY)
                self._handles[name] = handle
                self._closers.append(weakref.finalize(self, os.close, handle))
            return self._handles[name]

    def close(self) -> None:
        """Close the files that this process has open; writing opens them again."""
        with self._lock:
            self._handles.clear()
            while self._closers:
                self._closers.pop()()

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._handles: dict[str, int] = {}
        self._closers: list[Any] = []

    def __getstate__(self) -> dict[str, Any]:
        """Other processes open the files themselves."""
        private = ("_lock", "_handles", "_closers")
        return {name: value for name, value in self.__dict__.items() if name not in private}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._begin()


def reserve(handle: int, size: int) -> None:
    """Make a file ``size`` bytes long, on disk and not in name only where the system can."""
    try:
        os.posix_fallocate(handle, 0, size)
    except (AttributeError, OSError) as error:  # macOS; file systems that cannot
        unable = (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS)
        if isinstance(error, OSError) and error.errno not in unable:
            raise
        os.ftruncate(handle, size)
