"""Answers as one Parquet table."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from biglp._core.files import atomic_write, explained_writing
from biglp._sinks.base import FileSink
from biglp._sinks.npy import NpySink

PARQUET_ROWS = 1 << 18
"""Rows of a row group."""


class ParquetSink(FileSink):
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
        super().__init__(n_rows, classes, outputs, top)
        self.path = Path(path)
        stage = self.path.with_name(f".{self.path.name}.rows")
        self._stage = NpySink(stage, n_rows, classes, outputs, top)

    @property
    def names(self) -> list[str]:
        """Name of the table."""
        return [self.path.name]

    def resumable(self) -> bool:
        """Whether the answers of an interrupted run wait beside the table."""
        return self._stage.resumable()

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
        """Write the table, whole or not at all; after an error the answers are still there."""
        schema = pa.schema([("row", pa.int64()), *self._fields()])
        classes = [name for name in schema.names if name.startswith(("label", "class_"))]
        with (
            atomic_write(self.path) as file,
            pq.ParquetWriter(
                file,
                schema,
                # Random digits do not repeat; counting rows is packed as differences of one.
                use_dictionary=classes or False,
                column_encoding={"row": "DELTA_BINARY_PACKED"},
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
        stored = {name: np.load(part, mmap_mode="r") for name, part in self._stage.parts.items()}
        order = self._order(list(stored))
        for start in range(0, self.n_rows, PARQUET_ROWS):
            stop = min(start + PARQUET_ROWS, self.n_rows)
            arrays: list[Any] = [pa.array(np.arange(start, stop))]
            for values in stored.values():
                block = np.asarray(values[start:stop])
                columns = [block] if block.ndim == 1 else list(np.ascontiguousarray(block.T))
                arrays += [_arrow_array(column) for column in columns]
            picked = [arrays[0], *(arrays[1 + place] for place in order)]
            writer.write_table(pa.table(picked, schema=schema))

    def _order(self, names: list[str]) -> list[int]:
        """Places of the stored columns in the table: class_1, p_1, class_2, p_2…."""
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
        return fields


def _arrow_array(column: np.ndarray) -> Any:
    return pa.array(column.astype(object) if column.dtype.kind == "U" else column)
