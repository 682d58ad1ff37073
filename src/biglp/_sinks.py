"""Where the answers for each row go: arrays in memory, ``.npy`` files or a Parquet table.

A sink takes blocks in any order, from any thread, and with the file sinks from any process that
sees the same folder. Answers are written at their place in files with the ending ``.part``, which
get their final names when the run is committed; a run killed before leaves none of these names.
"""

from __future__ import annotations

import logging
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from biglp._blocks import format_bytes
from biglp._errors import ParameterError
from biglp._files import (
    NPY_HEADER_BYTES,
    PART,
    OutputError,
    atomic_write,
    explained_writing,
    free_space,
    npy_header,
    rename_into_place,
)

logger = logging.getLogger("biglp")

OUTPUTS = ("label", "confidence", "probabilities")
PARQUET_ROWS = 1 << 18
"""Rows of a row group of the Parquet sink."""

Answers = Mapping[str, np.ndarray] | np.ndarray
"""What a block gives: its class probabilities (b, c), or columns by name (see :meth:`Sink.write`)."""


class Sink(ABC):
    """Takes answers block by block.

    Used as a context manager it opens on entry, commits on success and aborts on an error.

    Parameters
    ----------
    n_rows : int
        Rows that there will be answers for.
    classes : array of shape (c,)
        Class of each code.
    outputs : sequence of {"label", "confidence", "probabilities"}
        What to keep.
    top : int, optional
        Keep the probabilities of the ``top`` likeliest classes of each row instead of all.
    """

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
        if top is not None and not 1 <= top <= len(classes):
            raise ParameterError(f"top={top} must be between 1 and the {len(classes)} classes.")
        self.n_rows = n_rows
        self.classes = _plain_classes(classes)
        self.outputs = tuple(outputs)
        self.top = top

    @property
    def columns(self) -> dict[str, tuple[np.dtype[Any], int]]:
        """Name, type and width of what is kept; a width of 0 is one number a row."""
        known = {
            "label": {"label": (self.classes.dtype, 0)},
            "confidence": {"confidence": (np.dtype(np.float32), 0)},
            "probabilities": {"probabilities": (np.dtype(np.float32), len(self.classes))},
        }
        if self.top is not None:
            known["probabilities"] = {
                "top_classes": (self.classes.dtype, self.top),
                "top_probabilities": (np.dtype(np.float32), self.top),
            }
        return {name: facts for output in self.outputs for name, facts in known[output].items()}

    def write(self, start: int, answers: Answers) -> None:
        """Take the answers of the rows from ``start`` on.

        Parameters
        ----------
        start : int
            First row.
        answers : ndarray of shape (b, c) or mapping
            Class probabilities, or columns: "label" (codes of classes) and "confidence", both of
            shape (b,), and "probabilities", of shape (b, c). What is wanted and not given is
            derived from the probabilities.
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

    def open(self, *, resume: bool = False) -> None:
        """Make room; with ``resume`` keep what an interrupted run has written."""

    @abstractmethod
    def _put(self, start: int, columns: dict[str, np.ndarray]) -> None:
        """Store the columns of a block."""

    def commit(self) -> None:
        """Make the answers final."""

    def abort(self) -> None:
        """Leave nothing behind."""

    def __enter__(self) -> Sink:
        self.open()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self.commit()
        else:
            self.abort()

    def _column(self, name: str, given: dict[str, np.ndarray]) -> np.ndarray:
        if name == "label":
            codes = given.get("label")
            return self.classes[_probabilities(given).argmax(axis=1) if codes is None else codes]
        if name == "confidence":
            confidence = given.get("confidence")
            return _probabilities(given).max(axis=1) if confidence is None else confidence
        probabilities = _probabilities(given)
        if name == "probabilities":
            return probabilities
        assert self.top is not None
        best = np.argsort(-probabilities, axis=1, kind="stable")[:, : self.top]
        if name == "top_classes":
            return self.classes[best]
        return np.take_along_axis(probabilities, best, axis=1)


class ArraySink(Sink):
    """Answers in memory: ``arrays["label"]`` and so on."""

    def open(self, *, resume: bool = False) -> None:
        """Make the arrays."""
        self.arrays = {
            name: np.zeros((self.n_rows, width) if width else self.n_rows, dtype=dtype)
            for name, (dtype, width) in self.columns.items()
        }

    def _put(self, start: int, columns: dict[str, np.ndarray]) -> None:
        for name, values in columns.items():
            self.arrays[name][start : start + len(values)] = values


class NpySink(Sink):
    """Answers in a folder: ``labels.npy``, ``confidence.npy``, ``probabilities.npy``.

    Parameters
    ----------
    folder : path
    n_rows, classes, outputs, top
        As for :class:`Sink`.
    """

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
        self._handles: dict[str, int] = {}

    @property
    def paths(self) -> dict[str, Path]:
        """Final name of each column's file."""
        return {name: self.folder / f"{_plural(name)}.npy" for name in self.columns}

    @property
    def parts(self) -> dict[str, Path]:
        """Name of each column's file while it is being written."""
        return {name: path.with_name(path.name + PART) for name, path in self.paths.items()}

    def open(self, *, resume: bool = False) -> None:
        """Reserve the disk space of all files, so that a full disk shows before the work begins."""
        with explained_writing(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
        try:
            for name, part in self.parts.items():
                size = self._size(name)
                if resume and part.exists() and part.stat().st_size == size:
                    continue
                with explained_writing(self.paths[name]), open(part, "wb") as file:
                    reserve(file.fileno(), size)
                    file.write(npy_header(self.columns[name][0], self._shape(name)))
        except BaseException:
            self.abort()
            raise

    def _put(self, start: int, columns: dict[str, np.ndarray]) -> None:
        for name, values in columns.items():
            dtype, width = self.columns[name]
            block = np.ascontiguousarray(values, dtype=dtype).reshape(-1).view(np.uint8)
            position = NPY_HEADER_BYTES + start * dtype.itemsize * max(width, 1)
            with explained_writing(self.paths[name]):
                write_at(self._handle(name), block, position)

    def sync(self) -> None:
        """Force what was written to disk, for a run that wants to resume from here."""
        for name in self.columns:
            with explained_writing(self.paths[name]):
                os.fsync(self._handle(name))

    def commit(self) -> None:
        """Force the files to disk and give them their final names."""
        self.sync()
        self._close()
        for name, part in self.parts.items():
            rename_into_place(part, self.paths[name])

    def abort(self) -> None:
        """Remove the unfinished files."""
        self._close()
        for part in self.parts.values():
            with suppress(OSError):
                part.unlink()

    def _shape(self, name: str) -> tuple[int, ...]:
        width = self.columns[name][1]
        return (self.n_rows, width) if width else (self.n_rows,)

    def _size(self, name: str) -> int:
        itemsize = self.columns[name][0].itemsize
        return NPY_HEADER_BYTES + itemsize * int(np.prod(self._shape(name), dtype=np.int64))

    def _handle(self, name: str) -> int:
        # Threads may both open the file; both handles work and the spare one is closed at once.
        if name not in self._handles:
            handle = os.open(self.parts[name], os.O_WRONLY | getattr(os, "O_CLOEXEC", 0))
            if self._handles.setdefault(name, handle) != handle:
                os.close(handle)
        return self._handles[name]

    def _close(self) -> None:
        while self._handles:
            os.close(self._handles.popitem()[1])

    def __getstate__(self) -> dict[str, Any]:
        """Other processes open the files themselves."""
        return {**self.__dict__, "_handles": {}}


class ParquetSink(Sink):
    """Answers as a table: ``row``, ``label``, ``confidence`` and probabilities.

    Probabilities are columns ``p_<class>``, or ``class_1``, ``p_1``, ``class_2``… with ``top``.
    Blocks are first written to ``.npy`` files beside the table, at their place; the table is made
    from these in order when the run is committed. So blocks may come in any order from any process,
    nothing has to wait in memory, and an interrupted run can go on.

    Parameters
    ----------
    path : path
        Final name of the table.
    n_rows, classes, outputs, top
        As for :class:`Sink`.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        n_rows: int,
        classes: Any,
        outputs: Sequence[str] = ("label", "confidence"),
        top: int | None = None,
    ) -> None:
        super().__init__(n_rows, classes, outputs, top)
        self.path = Path(path)
        stage = self.path.with_name(f".{self.path.name}.rows")
        self._stage = NpySink(stage, n_rows, classes, outputs, top)

    def open(self, *, resume: bool = False) -> None:
        """Make room beside the table."""
        with explained_writing(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
        self._stage.open(resume=resume)

    def _put(self, start: int, columns: dict[str, np.ndarray]) -> None:
        self._stage._put(start, columns)

    def sync(self) -> None:
        """Force what was written to disk."""
        self._stage.sync()

    def commit(self) -> None:
        """Write the table, whole or not at all."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        schema = pa.schema([("row", pa.int64()), *self._fields()])
        texts = [field.name for field in schema if pa.types.is_string(field.type)]
        numbers = [field.name for field in schema if field.name not in texts]
        with (
            atomic_write(self.path) as file,
            pq.ParquetWriter(
                file,
                schema,
                # Random digits do not repeat; counting rows is packed as differences of one.
                use_dictionary=texts or False,
                column_encoding={"row": "DELTA_BINARY_PACKED"} if numbers else None,
            ) as writer,
        ):
            self._write_groups(writer, schema)
        self.abort()

    def abort(self) -> None:
        """Remove the unfinished files."""
        self._stage.abort()
        with suppress(OSError):
            self._stage.folder.rmdir()

    def _write_groups(self, writer: Any, schema: Any) -> None:
        import pyarrow as pa

        stored = {name: np.load(part, mmap_mode="r") for name, part in self._stage.parts.items()}
        for start in range(0, self.n_rows, PARQUET_ROWS):
            stop = min(start + PARQUET_ROWS, self.n_rows)
            arrays: list[Any] = [pa.array(np.arange(start, stop))]
            for values in stored.values():
                block = np.asarray(values[start:stop])
                columns = [block] if block.ndim == 1 else list(np.ascontiguousarray(block.T))
                arrays += [_arrow_array(column) for column in columns]
            order = self._order(list(stored))
            picked = [arrays[0], *(arrays[1 + place] for place in order)]
            writer.write_table(pa.table(picked, schema=schema))

    def _order(self, names: list[str]) -> list[int]:
        """Places of the stored columns in the table: class_1, p_1, class_2, p_2, …"""
        places: dict[str, list[int]] = {}
        done = 0
        for name in names:
            width = max(self.columns[name][1], 1)
            places[name] = list(range(done, done + width))
            done += width
        if self.top is not None and "top_classes" in places:
            both = zip(places.pop("top_classes"), places.pop("top_probabilities"), strict=True)
            places["top"] = [place for pair in both for place in pair]
        return [place for several in places.values() for place in several]

    def _fields(self) -> list[tuple[str, Any]]:
        import pyarrow as pa

        label = pa.string() if self.classes.dtype.kind == "U" else pa.from_numpy_dtype(self.classes.dtype)
        fields: list[tuple[str, Any]] = []
        if "label" in self.outputs:
            fields.append(("label", label))
        if "confidence" in self.outputs:
            fields.append(("confidence", pa.float32()))
        if "probabilities" in self.outputs and self.top is None:
            fields += [(f"p_{name}", pa.float32()) for name in self.classes.tolist()]
        elif "probabilities" in self.outputs:
            for place in range(1, (self.top or 0) + 1):
                fields += [(f"class_{place}", label), (f"p_{place}", pa.float32())]
        return fields
