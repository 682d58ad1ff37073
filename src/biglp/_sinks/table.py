"""Answers as one table, whatever file it is in."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from biglp._core.arrays import as_arrow
from biglp._files.local import atomic_write
from biglp._sinks.npy import NpySink

TABLE_ROWS = 1 << 18
"""Rows that are written at once; those of a row group of Parquet."""

TEXTS_AT_ONCE = 1 << 13


class TableSink(NpySink):
    """Answers as a table: ``row``, ``label``, ``confidence`` and probabilities.

    Where rows have IDs (``ids``), their column is the first. Probabilities are columns
    ``p_<class>``, or ``class_1``, ``p_1``, ``class_2``… with ``top``. Blocks are first written to
    ``.npy`` files beside the table, at their place; the table is made from these in order when the
    run is committed. So blocks may come in any order from any process, nothing has to wait in
    memory, and an interrupted run can go on.

    Parameters
    ----------
    path : path
        Final name of the table.
    n_rows, classes, outputs, top
        As for :class:`FileSink`.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        n_rows: int,
        classes: Any,
        outputs: Sequence[str] = ("label", "confidence"),
        top: int | None = None,
    ) -> None:
        self.path = Path(path)
        stage = self.path.with_name(f".{self.path.name}.rows")
        super().__init__(stage, n_rows, classes, outputs, top)

    @property
    def names(self) -> list[str]:
        """Name of the table."""
        return [self.path.name]

    def commit(self) -> None:
        """Write the table, whole or not at all; after an error the answers are still there."""
        self._write()
        self.abort()

    def _write(self) -> None:
        """Write the table. Its files are mapped until this returns; Windows removes none before."""
        fields = [("row", pa.int64()), *self._fields()]
        ids = iter(()) if self.ids is None else regrouped(self.ids.pieces(), TABLE_ROWS)
        if self.ids is not None:
            fields.insert(0, (self.ids.name, self.ids.type))
        read = pa.schema(fields)
        schema = self._arranged(pa.Table.from_batches([], schema=read)).schema
        stored = [np.load(part, mmap_mode="r") for part in self.parts.values()]
        with atomic_write(self.path) as file, self._writer(file, schema) as writer:
            for start in range(0, self.n_rows, TABLE_ROWS):
                stop = min(start + TABLE_ROWS, self.n_rows)
                arrays = [] if self.ids is None else [next(ids, pa.nulls(0, self.ids.type))]
                arrays += self._arrays(stored, start, stop)
                writer.write_table(self._arranged(pa.table(arrays, schema=read)))

    @abstractmethod
    def _writer(self, file: Any, schema: Any) -> AbstractContextManager[Any]:
        """Begin a file; what is entered has ``write_table``."""

    def abort(self) -> None:
        """Remove the unfinished files."""
        super().abort()
        with suppress(OSError):
            self.folder.rmdir()

    def _arranged(self, table: Any) -> Any:
        """The table as it is written, from one with all columns."""
        return table

    def _arrays(self, stored: list[np.ndarray], start: int, stop: int) -> list[Any]:
        """Columns of the table for some rows, in the order of :meth:`_fields`."""
        blocks = {
            name: np.asarray(values[start:stop])
            for name, values in zip(self.columns, stored, strict=True)
        }
        columns = [np.arange(start, stop)]
        columns += [blocks[name] for name in ("label", "confidence") if name in blocks]
        columns += list(np.ascontiguousarray(blocks.get("probabilities", np.empty((0, 0))).T))
        if "top_classes" in blocks:
            both = zip(blocks["top_classes"].T, blocks["top_probabilities"].T, strict=True)
            columns += [np.ascontiguousarray(column) for pair in both for column in pair]
        columns += [blocks[name] for name in self.more_columns]
        return [_texts(one) if one.dtype.kind == "U" else as_arrow(one) for one in columns]

    def _fields(self) -> list[tuple[str, Any]]:
        dtype = self.classes.dtype
        label = pa.string() if dtype.kind == "U" else pa.from_numpy_dtype(dtype)
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
        return fields + [(name, pa.float32()) for name in self.more_columns]


def _texts(column: np.ndarray) -> Any:
    """An Arrow column of texts; a few at a time are Python's, which take ten times the bytes."""
    starts = range(0, len(column), TEXTS_AT_ONCE)
    pieces = (column[start : start + TEXTS_AT_ONCE].astype(object) for start in starts)
    return pa.chunked_array([pa.array(piece, pa.string()) for piece in pieces], pa.string())


def class_columns(schema: Any) -> list[str]:
    """Columns that hold classes."""
    return [name for name in schema.names if name.startswith(("label", "class_"))]


def regrouped(pieces: Iterable[Any], size: int) -> Iterator[Any]:
    """Cut a stream of Arrow arrays anew, into arrays of one size and a last one of what is left."""
    kept: list[Any] = []
    held = 0
    for piece in pieces:
        while held + len(piece) >= size:
            yield pa.chunked_array([*kept, piece[: size - held]])
            kept, piece, held = [], piece[size - held :], 0
        if len(piece):
            kept.append(piece)
            held += len(piece)
    if kept:
        yield pa.chunked_array(kept)
