"""Arrow (Feather) files mapped into memory, pyarrow data sets read batch by batch, and tables in
memory: pandas, polars, pyarrow, DuckDB, or anything with Arrow's interface.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from biglp._core.errors import BadRowsError
from biglp._files.local import FileStamp, explained_writing, temporary_folder
from biglp._rows.options import LAYOUT, ReadOptions
from biglp._rows.source import Source, no_rows
from biglp._tables.encode_columns import make_encoding
from biglp._tables.gaps import as_model_expects, refuse_gaps, tell_gaps
from biglp._tables.parquet import STREAM_BYTES
from biglp._tables.source import TableFormat, TabularSource, open_tables
from biglp._tables.table import BATCH_ROWS, TableFile, check_names, pieces


class ArrowTable(TableFile):
    """One Arrow IPC file, also known as Feather version 2; record batches are the parts."""

    kind = "Arrow"
    part_word = "record batch"

    def __init__(self, path: str, options: ReadOptions, like: TableFile | None = None) -> None:
        self.name = self._path = path
        self.stamp = FileStamp.of(path)
        try:
            reader = self._open()
            self.schema = check_names(reader.schema, self.name)
            # Counting rows through one column: compressed columns are unpacked when read.
            narrow = self._open([self.schema.names[0]])
            batches = range(reader.num_record_batches)
            self.part_rows = [narrow.get_batch(part).num_rows for part in batches]
        except (pa.ArrowException, OSError) as error:
            raise self.unreadable(error) from error
        self.n_rows_guess = sum(self.part_rows)

    def read_part(self, part: int, columns: Sequence[str]) -> Any:
        """Return a record batch; without compression nothing is copied."""
        try:
            batch = self._open(columns).get_batch(part)
            batch.validate(full=True)  # a damaged file may name places outside its buffers
            return batch
        except (pa.ArrowException, OSError) as error:
            raise self.unreadable(error, part) from error

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """Yield the record batches in pieces of bounded size."""
        for part in range(len(self.part_rows)):
            yield from pieces(self.read_part(part, columns))

    def _open(self, columns: Sequence[str] | None = None) -> Any:
        options = pa.ipc.IpcReadOptions()
        if columns is not None:
            options.included_fields = [self.schema.get_field_index(name) for name in columns]
        mapped = self._handle
        if mapped is None:
            if self.stamp is not None and self.stamp.elsewhere:
                self.stamp.check()
            mapped = pa.memory_map(self._path if self.stamp is None else self.stamp.path)
            self._handle = mapped if self._stays_open else None
        return pa.ipc.open_file(mapped, options=options)


ARROW = TableFormat(ArrowTable)


READ_AHEAD = {"batch_readahead": 2, "fragment_readahead": 1}
"""pyarrow holds some 16 batches of each of 4 files by default."""


class DatasetTable(TableFile):
    """A data set of any file format and file system, with its filter and partition columns."""

    kind = "a pyarrow dataset"
    slow = True

    def __init__(self, dataset: Any) -> None:
        self.name = "pyarrow dataset"
        self.stamp = None
        self.part_rows = []
        self._dataset = dataset
        self.schema = check_names(dataset.schema, self.name)
        self.n_rows_guess = dataset.count_rows()
        self._lean = None
        if isinstance(getattr(dataset, "format", None), ds.ParquetFileFormat):
            # As in parquet.py: by default, all that was read of a file is held until its end.
            self._lean = ds.ParquetFragmentScanOptions(
                use_buffered_stream=True, buffer_size=STREAM_BYTES, pre_buffer=False
            )

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """Read the files in order, these columns only."""
        # One thread: with more, a slow consumer lets batches pile up in memory.
        scanner = self._dataset.scanner(
            columns=list(columns),
            batch_size=BATCH_ROWS,
            use_threads=False,
            fragment_scan_options=self._lean,
            **READ_AHEAD,
        )
        return scanner.to_batches()


# Tables in memory ---------------------------------------------------------------------------------


def open_frame(frame: Any, options: ReadOptions, keep_plain: bool) -> Source | None:
    """Open a table that is in memory, or comes from a query, a reader, a scanner or a data set.

    The answer is None for what is none of these, and, unless ``keep_plain``, for a frame whose
    columns are all numbers and features, none missing: an array does as well.
    """
    library = type(frame).__module__.partition(".")[0]
    in_memory = (isinstance(frame, (pa.Table, pa.RecordBatch)) or library == "pandas") and hasattr(
        frame, "columns"
    )
    datasets = sys.modules.get("pyarrow.dataset")
    name, table = "a data frame", None
    if in_memory or (library == "polars" and hasattr(type(frame), "get_columns")):
        try:
            if isinstance(frame, pa.RecordBatch):
                table = pa.Table.from_batches([frame])
            elif library == "pandas":
                table = pa.Table.from_pandas(frame, preserve_index=False)
            else:
                table = pa.table(frame)
        except (pa.ArrowException, TypeError, ValueError) as error:
            raise BadRowsError(
                f"the data frame holds values that Arrow cannot store: {error}. "
                "Give each column one type: numbers or text."
            ) from error
    elif datasets is not None and isinstance(frame, datasets.Dataset):
        name, table = "a pyarrow dataset", DatasetTable(frame)
    else:
        keep_plain = True  # a stream is used up: an array cannot be made of it any more
        table = _read_stream(frame, library)
        if table is None:
            return None
    options.refuse(name, *LAYOUT, "header", "zero_based", "n_features")
    if isinstance(table, TableFile):  # converted: a named cache would not know it again
        cache = "never" if options.cache == "never" else "auto"
        return open_tables([table], replace(options, cache=cache))
    rows, options = as_model_expects([FrameTable(table)], options)
    encoding = make_encoding(rows, options)
    refuse_gaps(rows, encoding, options)
    notes = tell_gaps(rows, encoding, options)
    nulls = any(column.null_count for column in table.columns)
    numbers = encoding.takes_arrays and encoding.n_features == encoding.n_inputs  # no lists
    if not keep_plain and numbers and not encoding.left_out and not nulls:
        return None
    if encoding.views and options.cache != "never":  # texts are taken apart once
        return open_tables(rows, replace(options, cache="auto"))
    source = TabularSource(rows, encoding, rows[0].name)
    source.notes = notes
    return source


class FrameTable(TableFile):
    """A data frame in memory."""

    kind = "a data frame"
    part_word = "chunk"

    def __init__(self, table: Any, name: str = "data frame") -> None:
        self.name = name
        self.stamp = None
        if table.num_rows == 0:
            raise BadRowsError(
                f"Found array with 0 sample(s) (shape={table.shape}) in the data frame "
                "while a minimum of 1 is required."
            )
        self._batches = table.to_batches()
        self.schema = check_names(self._batches[0].schema, self.name)
        self.part_rows = [batch.num_rows for batch in self._batches]
        self.n_rows_guess = sum(self.part_rows)

    def read_part(self, part: int, columns: Sequence[str]) -> Any:
        """Return a chunk without copying."""
        return self._batches[part].select(list(columns))

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        for part in range(len(self._batches)):
            yield from pieces(self.read_part(part, columns))


# Rows that come once, batch after batch: Arrow readers and streams, queries that are run ----------
#
# A query of polars or DuckDB is run once, because it may take long or give other rows the second
# time. What it gives is held while it is small. Beyond that it goes to a temporary Arrow file,
# since finding categories and means takes a pass over the rows before they can be converted to raw
# rows; so rows that are larger than the memory can be handed over.


HELD_BYTES = 64 << 20
"""Rows that are held in memory; more of them go to a file."""


class Spool:
    """A temporary Arrow file, removed with the last table that reads it in this process."""

    def __init__(self) -> None:
        self.path = temporary_folder(self) / "rows.arrow"


class SpooledTable(ArrowTable):
    """Rows of a stream in a temporary Arrow file, to be converted to raw rows."""

    slow = True

    def __init__(self, spool: Spool, name: str) -> None:
        super().__init__(str(spool.path), ReadOptions())
        self.name = name
        self.stamp = None  # nobody else knows the file, and it is gone after the conversion
        self._spool = spool  # lives as long as this table
        self._n_parts, self.part_rows = len(self.part_rows), []
        if self.n_rows_guess == 0:
            raise no_rows(name)

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        for part in range(self._n_parts):
            yield from pieces(self.read_part(part, columns))


def _read_stream(value: Any, library: str) -> Any:
    """Rows of a query, a reader or a stream as an Arrow table, or in a file; None for others."""
    name = f"{library} {type(value).__name__}"
    try:
        if library == "polars" and hasattr(value, "sink_ipc"):
            # A LazyFrame is run without holding all rows, where polars can.
            spool = Spool()
            with explained_writing(spool.path):
                value.sink_ipc(Path(spool.path), maintain_order=True)
            return SpooledTable(spool, name)
        if isinstance(value, pa.RecordBatchReader):
            return hold_or_spool(value, name)
        if library == "datasets" and hasattr(value, "with_format"):
            return _hugging_face(value, name)
        if hasattr(value, "toArrow"):  # Spark
            return value.toArrow()
        if library == "pyarrow" and hasattr(value, "to_reader"):  # a scanner
            return hold_or_spool(value.to_reader(), name)
        if hasattr(value, "__arrow_c_stream__"):
            return hold_or_spool(pa.RecordBatchReader.from_stream(value), name)
        if hasattr(value, "__arrow_c_array__"):
            return pa.Table.from_batches([pa.record_batch(value)])
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        if "struct" in str(error):  # one column, not a table: an array says what is wrong
            return None
        raise BadRowsError(f"the rows of {name} cannot be read: {error}") from error
    return None


def _hugging_face(value: Any, name: str) -> Any:
    """Rows of a Hugging Face dataset; those that were chosen or shuffled, in that order."""
    if isinstance(value, dict):
        raise BadRowsError(
            f"X is a {name} of {', '.join(map(repr, value))}; give the rows of one, such as "
            f"X[{next(iter(value))!r}]."
        )
    # Without indices the table is the rows, and may be mapped from a file.
    if getattr(value, "_indices", True) is None:
        return value.data.table
    parts = value.with_format("arrow").iter(batch_size=BATCH_ROWS)
    first = next(parts, None)
    if first is None:
        raise no_rows(name)
    batches = (batch for part in chain([first], parts) for batch in part.to_batches())
    return hold_or_spool(pa.RecordBatchReader.from_batches(first.schema, batches), name)


def hold_or_spool(reader: Any, name: str) -> Any:
    """Read a stream of Arrow batches to its end, into an Arrow table or a SpooledTable."""
    # An Arrow file holds one dictionary a column; a stream may have another in each batch.
    schema = pa.schema(
        [
            field.with_type(field.type.value_type) if pa.types.is_dictionary(field.type) else field
            for field in reader.schema
        ]
    )
    batches = _grouped(reader, schema)
    stored: list[Any] = []
    for batch in batches:
        stored.append(batch)
        if sum(part.nbytes for part in stored) > HELD_BYTES:
            break
    else:
        return pa.Table.from_batches(stored, schema)
    spool = Spool()
    with (
        explained_writing(spool.path),
        pa.OSFile(str(spool.path), "wb") as file,
        pa.ipc.new_file(file, schema) as writer,
    ):
        while stored:
            writer.write_batch(stored.pop(0))
        for batch in batches:
            writer.write_batch(batch)
    return SpooledTable(spool, name)


def _grouped(reader: Any, schema: Any) -> Iterator[Any]:
    """Bring small batches together, so that each is worth the trouble of finding it."""
    waiting: list[Any] = []
    count = 0
    for batch in chain(reader, [None]):  # None is the end
        if batch is not None:
            waiting.append(batch)
            count += batch.num_rows
        if count >= BATCH_ROWS or (count and batch is None):
            yield pa.Table.from_batches(waiting).cast(schema).combine_chunks().to_batches()[0]
            waiting, count = [], 0
