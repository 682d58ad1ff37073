"""Answers as one table: Parquet, CSV or JSON lines; and the map of the rows beside it."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from biglp._files.local import atomic_write
from biglp._output.sink import MAP, Answers, FileSink, NpySink

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
        self.names = [self.path.name]

    def commit(self) -> None:
        """Write the table, whole or not at all; after an error the answers are still there."""
        self._write()
        self.abort()

    def abort(self) -> None:
        """Remove the unfinished files."""
        super().abort()
        with suppress(OSError):
            self.folder.rmdir()

    def _write(self) -> None:
        """Write the table. Its files are mapped until this returns; Windows removes none before."""
        stored = {name: np.load(part, mmap_mode="r") for name, part in self.parts.items()}
        ids = iter(()) if self.ids is None else regrouped(self.ids.pieces(), TABLE_ROWS)
        schema = self._table(stored, 0, 0, iter(())).schema
        with atomic_write(self.path) as file:
            # No time and no name in what is packed: the same answers are the same bytes.
            packed = self.path.suffix.lower() == ".gz"
            packing = gzip.GzipFile("", "wb", 6, file, mtime=0) if packed else nullcontext(file)
            with packing as out, self._writer(out, schema) as writer:
                for start in range(0, self.n_rows, TABLE_ROWS):
                    stop = min(start + TABLE_ROWS, self.n_rows)
                    writer.write_table(self._table(stored, start, stop, ids))

    @abstractmethod
    def _writer(self, file: Any, schema: Any) -> AbstractContextManager[Any]:
        """Begin a file; what is entered has ``write_table``."""

    def _table(
        self, stored: dict[str, np.ndarray], start: int, stop: int, ids: Iterator[Any]
    ) -> pa.Table:
        """The table of some rows, whose IDs are the next ones."""
        blocks = {name: np.asarray(values[start:stop]) for name, values in stored.items()}
        columns: list[tuple[str, Any]] = []
        if self.ids is not None:
            columns.append((self.ids.name, next(ids, pa.nulls(0, self.ids.type))))
        columns.append(("row", np.arange(start, stop)))
        columns += [(name, blocks[name]) for name in ("label", "confidence") if name in blocks]
        if "probabilities" in blocks:
            values = np.ascontiguousarray(blocks["probabilities"].T)
            columns += [(f"p_{c}", p) for c, p in zip(self.classes.tolist(), values, strict=True)]
        if "top_classes" in blocks:
            both = zip(blocks["top_classes"].T, blocks["top_probabilities"].T, strict=True)
            for rank, (classes, values) in enumerate(both, start=1):
                columns.append((f"class_{rank}", np.ascontiguousarray(classes)))
                columns.append((f"p_{rank}", np.ascontiguousarray(values)))
        columns += [(name, blocks[name]) for name in self.more_columns]
        arrays = [_as_arrow(c) if isinstance(c, np.ndarray) else c for _, c in columns]
        return pa.table(arrays, names=[name for name, _ in columns])


def _as_arrow(column: np.ndarray) -> Any:
    """An Arrow column; of texts a few at a time are Python's, which take ten times the bytes."""
    if column.dtype.kind in "iuf" and column.dtype.isnative and len(column):
        # As they lie in memory: pyarrow's own way loads pandas wherever it is installed.
        kind, held = pa.from_numpy_dtype(column.dtype), pa.py_buffer(np.ascontiguousarray(column))
        return pa.Array.from_buffers(kind, len(column), [None, held])
    if column.dtype.kind != "U":
        return pa.array(column)
    starts = range(0, len(column), TEXTS_AT_ONCE)
    pieces = (column[start : start + TEXTS_AT_ONCE].astype(object) for start in starts)
    return pa.chunked_array([pa.array(piece, pa.string()) for piece in pieces], pa.string())


def class_columns(schema: Any) -> list[str]:
    """Columns that hold classes."""
    return [name for name in schema.names if name.startswith(("label", "class_"))]


def regrouped(pieces: Iterable[Any], size: int) -> Iterator[Any]:
    """Cut a stream of Arrow arrays anew, into arrays of one size and a last one of what is left."""
    waiting: list[Any] = []
    count = 0
    for piece in pieces:
        while count + len(piece) >= size:
            yield pa.chunked_array([*waiting, piece[: size - count]])
            waiting, piece, count = [], piece[size - count :], 0
        if len(piece):
            waiting.append(piece)
            count += len(piece)
    if waiting:
        yield pa.chunked_array(waiting)


class ParquetSink(TableSink):
    """Answers as a Parquet table, a row group at a time."""

    def _writer(self, file: Any, schema: Any) -> Any:
        return pq.ParquetWriter(
            file,
            schema,
            # Random digits do not repeat; counting rows is packed as differences of one.
            use_dictionary=class_columns(schema) or False,
            column_encoding={"row": "DELTA_BINARY_PACKED"},
        )


class CsvSink(TableSink):
    """Answers as a CSV file with a line of names."""

    @contextmanager
    def _writer(self, file: Any, schema: Any) -> Iterator[Any]:
        names = io.StringIO()
        csv.writer(names, lineterminator="\n").writerow(schema.names)
        file.write(names.getvalue().encode())
        # Whether text may hold what means something in CSV; "needed" quotes every text.
        known, marks = class_columns(schema), set(',"\r\n')
        texts = [f for f in schema if f.name not in known and not pa.types.is_primitive(f.type)]
        quotes = texts or any(marks & set(str(name)) for name in self.classes.tolist())
        options = pyarrow.csv.WriteOptions(
            include_header=False, quoting_style="needed" if quotes else "none"
        )
        with pyarrow.csv.CSVWriter(file, schema, write_options=options) as writer:
            yield writer


class JsonLinesSink(TableSink):
    """Answers as one JSON object a line."""

    @contextmanager
    def _writer(self, file: Any, schema: Any) -> Iterator[Any]:
        yield _JsonLinesWriter(file)


class _JsonLinesWriter:
    """Writes Arrow tables column by column, which is many times faster than row by row."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def write_table(self, table: Any) -> None:
        """Append rows."""
        parts: list[Any] = []
        for name, column in zip(table.column_names, table.columns, strict=True):
            key = json.dumps(name, ensure_ascii=False)
            parts += [f"{', ' if parts else '{'}{key}: ", _json_texts(column)]
        lines = pc.binary_join_element_wise(*parts, "}\n", "")
        self._file.write("".join(lines.to_pylist()).encode())


def _json_texts(column: Any) -> Any:
    """Values of a column as JSON writes them."""
    kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind):
        return column.cast(pa.string()).fill_null("null")
    coded = column.cast(pa.string()).combine_chunks().dictionary_encode()
    texts = [json.dumps(text, ensure_ascii=False) for text in coded.dictionary.to_pylist()]
    return pa.array(texts, pa.string()).take(coded.indices).fill_null("null")


class MapSink(ParquetSink):
    """A map of the rows: ``row``, ``id``, ``x``, ``y``, ``label``, ``confidence`` and ``doubt``.

    It takes answers that have the places of the rows in their last two columns, and passes them on
    to the sink that they are for. The ID is the row's number where rows have none; doubt is 1 less
    the difference of the two likeliest classes.
    """

    wants_places = True
    more_columns = ("x", "y", "doubt")

    def __init__(self, answers: FileSink, folder: Path) -> None:
        super().__init__(folder / MAP, answers.n_rows, answers.classes, ("label", "confidence"))
        self.answers = answers
        self.names = [*answers.names, *self.names]
        self.ids = answers.ids

    def resumable(self) -> bool:
        return self.answers.resumable() and super().resumable()

    def open(self, *, resume: bool = False) -> None:
        """Make room for both."""
        self.answers.open(resume=resume)
        super().open(resume=resume)

    def write(self, start: int, answers: Answers) -> None:
        """Take the answers and places of the rows from ``start`` on.  (b, c + 2)"""
        assert isinstance(answers, np.ndarray)
        probabilities = np.ascontiguousarray(answers[:, :-2])
        self.answers.write(start, probabilities)
        ordered = np.partition(probabilities, -2, axis=1)
        doubt = 1.0 - (ordered[:, -1] - ordered[:, -2])
        places = {"x": answers[:, -2], "y": answers[:, -1]}
        super().write(start, {"probabilities": probabilities, **places, "doubt": doubt})

    def sync(self) -> None:
        self.answers.sync()
        super().sync()

    def commit(self) -> None:
        self.answers.commit()
        super().commit()

    def abort(self) -> None:
        self.answers.abort()
        super().abort()

    def _table(
        self, stored: dict[str, np.ndarray], start: int, stop: int, ids: Iterator[Any]
    ) -> pa.Table:
        table = super()._table(stored, start, stop, ids)
        if self.ids is None:
            table = table.append_column("id", table.column("row"))
        else:
            table = table.rename_columns(["id", *table.column_names[1:]])
        return table.select(["row", "id", "x", "y", "label", "confidence", "doubt"])
