"""What every sink offers; sinks that write ``.npy`` files from any process, and sinks in memory."""

from __future__ import annotations

import errno
import os
import sys
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np

from biglp._compiled import largest_column
from biglp._core.arrays import Array, is_torch, to_numpy
from biglp._core.device import download
from biglp._core.errors import BigLPError, ParameterError
from biglp._core.size import Cost, Size
from biglp._files.local import (
    NPY_HEADER_BYTES,
    PART,
    explained_writing,
    npy_header,
    open_handle,
    rename_into_place,
    write_at,
)

OUTPUTS = ("label", "confidence", "probabilities")
MAP = "map.parquet"
"""Name of a map of the rows."""

Answers = Mapping[str, np.ndarray] | np.ndarray
"""What a block gives: class probabilities (b, c), or columns by name (see :meth:`Sink.write`)."""


class RowIds(Protocol):
    """The IDs of all rows, which a table of answers may carry."""

    @property
    def name(self) -> str:
        """Name of their column."""

    @property
    def type(self) -> Any:
        """Arrow type."""

    def pieces(self) -> Iterator[Any]:
        """Arrow arrays of this type, from the first row to the last."""


class Sink(ABC):
    """Takes answers block by block, in any order, from any thread."""

    in_memory: bool = True
    """Whether the answers stay in the memory of this process, which others cannot write."""
    n_bytes: int = 0
    """What they take of it."""
    takes_tensors: ClassVar[bool] = False
    """Whether answers may come as they are on a device."""
    wants_places: bool = False
    """Whether answers are to have the places of the rows on a map in two more columns."""

    def cost(self, size: Size) -> Cost:
        """Answers that stay in memory."""
        return Cost(answers=self.n_bytes)

    @abstractmethod
    def write(self, start: int, answers: np.ndarray) -> None:
        """Take the answers of the rows from ``start`` on."""

    def sync(self) -> None:  # noqa: B027  memory has nothing to force to disk
        """Make sure that what was taken survives a crash, for a run that wants to resume."""


class NoSink(Sink):
    """Drops everything, for runs of which only the time counts."""

    in_memory = False

    def write(self, start: int, answers: np.ndarray) -> None: ...


def check_top(top: int | None, n_classes: int) -> None:
    """Refuse to keep the likeliest of more classes than there are."""
    if top is not None and not 1 <= top <= n_classes:
        raise ParameterError(f"top={top} must be between 1 and the {n_classes} classes.")


class FileSink(Sink):
    """Writes answers to files, also from other processes.

    Used as a context manager it opens on entry, commits on success and aborts on an error.
    ``classes`` (c,) has the class of each code, ``outputs`` says what to keep, and ``top`` to keep
    the probabilities of so many likeliest classes of each row instead of all.
    """

    in_memory = False
    ids: RowIds | None = None
    """IDs of the rows, which a table has beside the answers; they are read when it is made."""
    more_columns: tuple[str, ...] = ()
    """Further numbers that are given for each row."""
    names: list[str]
    """Names of the files that a commit leaves."""
    columns: dict[str, tuple[np.dtype[Any], int]]
    """Type and width of what is kept; a width of 0 is one number a row."""

    def __init__(
        self,
        n_rows: int,
        classes: Any,
        outputs: Sequence[str] = ("label",),
        top: int | None = None,
    ) -> None:
        unknown = [name for name in outputs if name not in OUTPUTS]
        if unknown or not outputs:
            raise ParameterError(f"outputs={list(outputs)!r}: use some of {', '.join(OUTPUTS)}.")
        check_top(top, len(classes))
        self.n_rows = n_rows
        self.classes = np.asarray(classes)
        if self.classes.dtype.kind not in "biufU":  # files hold numbers or text, never objects
            self.classes = np.array([str(value) for value in self.classes.tolist()])
        self.outputs = tuple(name for name in OUTPUTS if name in outputs)
        self.top = top
        number, label = np.dtype(np.float32), self.classes.dtype
        self.columns = {}
        if "label" in outputs:
            self.columns["label"] = (label, 0)
        if "confidence" in outputs:
            self.columns["confidence"] = (number, 0)
        if "probabilities" in outputs:
            self.columns |= (
                {"probabilities": (number, len(self.classes))}
                if top is None
                else {"top_classes": (label, top), "top_probabilities": (number, top)}
            )
        self.columns |= dict.fromkeys(self.more_columns, (number, 0))

    @abstractmethod
    def resumable(self) -> bool:
        """Whether all answers of an interrupted run are there, also if it was about to end."""

    def write(self, start: int, answers: Answers) -> None:
        """Take the answers of the rows from ``start`` on.

        They are class probabilities (b, c), or columns: "label" (codes of classes) and
        "confidence", both (b,), and "probabilities" (b, c), from which is derived what is wanted
        and not given.
        """
        given = {"probabilities": answers} if isinstance(answers, np.ndarray) else dict(answers)
        columns = {name: self._column(name, given) for name in self.columns}
        rows = {len(values) for values in columns.values()}
        if len(rows) != 1 or start < 0 or start + max(rows) > self.n_rows:
            raise ParameterError(
                f"answers for rows from {start:,} have lengths {sorted(rows)}; the sink has "
                f"{self.n_rows:,} rows."
            )
        self._put(start, columns)

    @abstractmethod
    def open(self, *, resume: bool = False) -> None:
        """Make room; with ``resume`` keep what an interrupted run has written."""

    @abstractmethod
    def _put(self, start: int, columns: dict[str, np.ndarray]) -> None:
        """Store the columns of a block."""

    @abstractmethod
    def commit(self) -> None:
        """Make the answers final."""

    @abstractmethod
    def abort(self) -> None:
        """Leave nothing behind."""

    def __enter__(self) -> FileSink:
        self.open()
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if kind is None:
            self.commit()
        else:
            self.abort()

    def _column(self, name: str, given: dict[str, np.ndarray]) -> np.ndarray:
        """Take a column as it was given, or derive it from the probabilities."""
        if name in given and name != "probabilities":
            return self.classes[given[name]] if name == "label" else given[name]
        probabilities = given.get("probabilities")
        if probabilities is None:
            raise ParameterError(
                f"answers hold {sorted(given)} only; the outputs asked for need probabilities."
            )
        if not np.isfinite(probabilities).all():
            raise BigLPError(
                "some class probabilities are NaN or infinite; nothing is written for such rows. "
                "Please report this with the settings of the run."
            )
        if name == "label":
            return self.classes[probabilities.argmax(axis=1)]
        if name == "confidence":
            return probabilities.max(axis=1)
        if name == "probabilities":
            return probabilities
        best = np.argsort(-probabilities, axis=1, kind="stable")[:, : self.top]
        if name == "top_classes":
            return self.classes[best]
        return np.take_along_axis(probabilities, best, axis=1)


# Answers in memory, for the estimators: the computer's, or a device's where the rows are there ----


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
        self.names = [path.name for path in self.paths.values()]
        self.parts = {name: path.with_name(path.name + PART) for name, path in self.paths.items()}
        self._lock = threading.Lock()
        self._handles: dict[str, int] = {}
        self._closers: list[Any] = []

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
                    try:  # on disk, and not in name only, where the system can
                        os.posix_fallocate(file.fileno(), 0, size)
                    except (AttributeError, OSError) as error:  # macOS; some file systems
                        unable = (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS)
                        if isinstance(error, OSError) and error.errno not in unable:
                            raise
                        os.ftruncate(file.fileno(), size)
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

    def __getstate__(self) -> dict[str, Any]:
        """Other processes open the files themselves."""
        private = ("_lock", "_handles", "_closers")
        return {name: value for name, value in self.__dict__.items() if name not in private}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=threading.Lock(), _handles={}, _closers=[])


class ArraySink(Sink):
    """The label (n,) and the probabilities (n, c) of every row, in memory.

    ``device`` is where the rows are, and so the answers: "cpu" makes NumPy arrays, anything else
    tensors. Labels that are numbers are where the probabilities are, others in an array.
    """

    takes_tensors = True

    def __init__(
        self, classes: np.ndarray, n_rows: int, dtype: np.dtype[Any], device: str = "cpu"
    ) -> None:
        self._classes = classes
        self.labels: Array = _room((n_rows,), classes.dtype, device)
        self.probabilities: Array = _room((n_rows, len(classes)), dtype, device)
        on_host = [self.labels, self.probabilities] if device == "cpu" else []
        self.n_bytes = sum(array.nbytes for array in on_host)

    def write(self, start: int, answers: Array) -> None:
        """Keep the answers of the rows from ``start`` on."""
        stop, codes = start + len(answers), largest_column(answers)
        _put(answers, self.probabilities, start, stop)
        classes: Any = self._classes
        if is_torch(codes) and _torch_type(classes.dtype) is not None:
            classes = sys.modules["torch"].as_tensor(classes, device=codes.device)
        _put(classes[codes if is_torch(classes) else to_numpy(codes)], self.labels, start, stop)


class ValuesSink(Sink):
    """Values of regression (n, targets) in memory; ``device`` as of :class:`ArraySink`."""

    takes_tensors = True

    def __init__(self, n_rows: int, n_targets: int, device: str = "cpu") -> None:
        self.values: Array = _room((n_rows, n_targets), np.dtype(np.float64), device)
        self.n_bytes = self.values.nbytes if device == "cpu" else 0

    def write(self, start: int, answers: Array) -> None:
        """Keep the values of the rows from ``start`` on."""
        _put(answers, self.values, start, start + len(answers))


def _room(shape: tuple[int, ...], dtype: np.dtype[Any], device: str) -> Array:
    """An array, or a tensor on a device where it has such numbers."""
    if device == "cpu" or _torch_type(dtype) is None:
        return np.empty(shape, dtype=dtype)
    device = device.removeprefix("torch:")
    return sys.modules["torch"].empty(shape, dtype=_torch_type(dtype), device=device)


def _torch_type(dtype: np.dtype[Any]) -> Any:
    """The type of torch for numbers; None for text and objects, and where torch is not loaded."""
    return getattr(sys.modules.get("torch"), dtype.name, None) if dtype.kind in "bif" else None


def _put(values: Array, room: Array, start: int, stop: int) -> None:
    """Write values to rows of a room, from wherever they are."""
    if is_torch(values) and not is_torch(room):
        download(values, room[start:stop])
    elif is_torch(room) and not is_torch(values):
        room[start:stop] = sys.modules["torch"].as_tensor(values)
    else:
        room[start:stop] = values
