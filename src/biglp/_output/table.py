"""Answers as one table, whatever file it is in."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from biglp._core.arrays import as_arrow
from biglp._files.local import atomic_write
from biglp._output.npy import NpySink
from biglp._output.sink import MAP, Answers, FileSink

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


# --------------------------------------------------------------------------------------------------
# Answers as one Parquet table.


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


# --------------------------------------------------------------------------------------------------
# Answers as text: CSV, or JSON with a row a line; packed where the name ends in ``.gz``.


class TextSink(TableSink):
    """What both have in common: packing."""

    @contextmanager
    def _packed(self, file: Any) -> Iterator[Any]:
        if self.path.suffix.lower() != ".gz":
            yield file
            return
        # No time and no name in it: the same answers are the same bytes.
        with gzip.GzipFile("", "wb", 6, file, mtime=0) as packed:
            yield packed


class CsvSink(TextSink):
    """Answers as a CSV file with a line of names."""

    @contextmanager
    def _writer(self, file: Any, schema: Any) -> Iterator[Any]:
        with self._packed(file) as out:
            names = io.StringIO()
            csv.writer(names, lineterminator="\n").writerow(schema.names)
            out.write(names.getvalue().encode())
            options = pyarrow.csv.WriteOptions(
                include_header=False,
                quoting_style="needed" if self._needs_quotes(schema) else "none",
            )
            with pyarrow.csv.CSVWriter(out, schema, write_options=options) as writer:
                yield writer

    def _needs_quotes(self, schema: Any) -> bool:
        """Whether text may hold what means something in CSV; "needed" quotes every text."""
        known = class_columns(schema)
        others = [field for field in schema if field.name not in known]
        if any(not pa.types.is_primitive(field.type) for field in others):
            return True
        marks = set(',"\r\n')
        return any(marks & set(str(name)) for name in self.classes.tolist())


class JsonLinesSink(TextSink):
    """Answers as one JSON object a line."""

    @contextmanager
    def _writer(self, file: Any, schema: Any) -> Iterator[Any]:
        with self._packed(file) as out:
            yield _JsonLinesWriter(out)


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


# --------------------------------------------------------------------------------------------------
# A map of the rows beside their answers: where each is, its label, and how sure that is.


class MapSink(ParquetSink):
    """A table of ``row``, ``id``, ``x``, ``y``, ``label``, ``confidence`` and ``doubt``.

    It takes answers that have the places of the rows in their last two columns, and passes them on
    to the sink that they are for. The ID is the row's number where rows have none; doubt is 1 less
    the difference of the two likeliest classes.

    Parameters
    ----------
    answers : FileSink
        Takes the answers.
    folder : Path
        Folder of the map.
    """

    wants_places = True
    more_columns = ("x", "y", "doubt")

    def __init__(self, answers: FileSink, folder: Path) -> None:
        super().__init__(folder / MAP, answers.n_rows, answers.classes, ("label", "confidence"))
        self.answers = answers
        self.ids = answers.ids

    @property
    def names(self) -> list[str]:
        """Names of the files that a commit leaves."""
        return [*self.answers.names, *super().names]

    def resumable(self) -> bool:
        """Whether all answers and places of an interrupted run are there."""
        return self.answers.resumable() and super().resumable()

    def open(self, *, resume: bool = False) -> None:
        """Make room for both."""
        self.answers.open(resume=resume)
        super().open(resume=resume)

    def write(self, start: int, answers: Answers) -> None:
        """Take the answers and places of the rows from ``start`` on."""
        assert isinstance(answers, np.ndarray)
        shares = np.ascontiguousarray(answers[:, :-2])
        self.answers.write(start, shares)
        ordered = np.partition(shares, -2, axis=1)
        doubt = 1.0 - (ordered[:, -1] - ordered[:, -2])
        places = {"x": answers[:, -2], "y": answers[:, -1]}
        super().write(start, {"probabilities": shares, **places, "doubt": doubt})

    def sync(self) -> None:
        """Force what was written to disk."""
        self.answers.sync()
        super().sync()

    def commit(self) -> None:
        """Make both final."""
        self.answers.commit()
        super().commit()

    def abort(self) -> None:
        """Leave nothing behind."""
        self.answers.abort()
        super().abort()

    def _arranged(self, table: Any) -> Any:
        if self.ids is None:
            table = table.append_column("id", table.column("row"))
        else:
            names = ["id", *table.column_names[1:]]
            table = table.rename_columns(names)
        return table.select(["row", "id", "x", "y", "label", "confidence", "doubt"])
