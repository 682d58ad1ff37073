"""Tables in memory: pandas, polars, pyarrow, DuckDB, or anything with Arrow's interface."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from biglp._core.errors import BadRowsError
from biglp._files.local import explained_writing, temporary_folder
from biglp._rows.options import LAYOUT, ReadOptions
from biglp._rows.source import Source, no_rows
from biglp._tables.arrow import ArrowTable
from biglp._tables.encode_columns import make_encoding
from biglp._tables.source import TabularSource, open_tables
from biglp._tables.table import BATCH_ROWS, TableFile, check_names, pieces

# --------------------------------------------------------------------------------------------------
# Rows that come once, batch after batch: Arrow readers and streams, queries that are run.
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
    """Rows of a stream in a temporary Arrow file, to be converted to raw rows.

    Parameters
    ----------
    spool : Spool
        It lives as long as this table.
    name : str
        What messages call the rows.
    """

    slow = True

    def __init__(self, spool: Spool, name: str) -> None:
        super().__init__(str(spool.path), ReadOptions())
        self.name = name
        self.stamp = None  # nobody else knows the file, and it is gone after the conversion
        self._spool = spool
        self._n_parts, self.part_rows = len(self.part_rows), []
        if self.n_rows_guess == 0:
            raise no_rows(name)

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """Yield the record batches in pieces of bounded size."""
        for part in range(self._n_parts):
            yield from pieces(self.read_part(part, columns))


def hold_or_spool(reader: Any, name: str) -> Any:
    """Read a stream to its end.

    Parameters
    ----------
    reader : pyarrow.RecordBatchReader
    name : str
        What messages call it.

    Returns
    -------
    rows : pyarrow.Table or SpooledTable
    """
    schema = pa.schema([_plain(field) for field in reader.schema])
    batches = _grouped(reader, schema)
    held: list[Any] = []
    for batch in batches:
        held.append(batch)
        if sum(part.nbytes for part in held) > HELD_BYTES:
            break
    else:
        return pa.Table.from_batches(held, schema)
    spool = Spool()
    with (
        explained_writing(spool.path),
        pa.OSFile(str(spool.path), "wb") as file,
        pa.ipc.new_file(file, schema) as writer,
    ):
        while held:
            writer.write_batch(held.pop(0))
        for batch in batches:
            writer.write_batch(batch)
    return SpooledTable(spool, name)


def spool_query(frame: Any, name: str) -> SpooledTable:
    """Run a polars LazyFrame into a temporary file, without holding all rows where polars can."""
    spool = Spool()
    with explained_writing(spool.path):
        frame.sink_ipc(Path(spool.path), maintain_order=True)
    return SpooledTable(spool, name)


def _grouped(reader: Any, schema: Any) -> Iterator[Any]:
    """Bring small batches together, so that each is worth the trouble of finding it."""
    waiting: list[Any] = []
    count = 0
    for batch in reader:
        waiting.append(batch)
        count += batch.num_rows
        if count >= BATCH_ROWS:
            yield _joined(waiting, schema)
            waiting, count = [], 0
    if count:
        yield _joined(waiting, schema)


def _joined(batches: list[Any], schema: Any) -> Any:
    table = pa.Table.from_batches(batches).cast(schema).combine_chunks()
    return table.to_batches()[0]


def _plain(field: Any) -> Any:
    """An Arrow file holds one dictionary a column; a stream may have another in each batch."""
    kind = field.type
    return field.with_type(kind.value_type) if pa.types.is_dictionary(kind) else field


# --------------------------------------------------------------------------------------------------


def open_frame(frame: Any, options: ReadOptions, keep_plain: bool) -> Source | None:
    """Open a table that is in memory, or comes from a query or a stream.

    Parameters
    ----------
    frame : data frame, query, reader, scanner or data set
    options : ReadOptions
    keep_plain : bool
        Whether a frame of plain numbers is a table too. Otherwise the answer is None for one whose
        columns are all numbers and features, none missing, as for what is no data frame: an array
        does as well.
    """
    if _is_frame(frame):
        found = _arrow_table(frame)
    elif "pyarrow.dataset" in sys.modules and _is_dataset(frame):
        from biglp._tables.arrow import DatasetTable

        _refuse_layout(options, "a pyarrow dataset")
        return open_once(DatasetTable(frame), options)
    else:
        keep_plain = True  # a stream is used up: an array cannot be made of it any more
        found = _streamed(frame)
        if found is None:
            return None
    _refuse_layout(options, "a data frame")
    if isinstance(found, SpooledTable):
        return open_once(found, options)
    table = FrameTable(found)
    encoding = make_encoding([table], options)
    numbers = encoding.takes_arrays and encoding.n_features == encoding.n_inputs  # no lists
    if not keep_plain and numbers and not encoding.left_out and not table.has_nulls:
        return None
    return TabularSource([table], encoding, table.name)


def open_once(table: TableFile, options: ReadOptions) -> Source:
    """Convert a table that has no file of its own; a named cache would not know it again."""
    if options.cache != "never":
        options = replace(options, cache="auto")
    return open_tables(table.kind, [table], options)


class FrameTable(TableFile):
    """A data frame in memory."""

    kind = "a data frame"
    part_word = "chunk"

    def __init__(self, table: Any) -> None:
        self.name = "data frame"
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

    @property
    def has_nulls(self) -> bool:
        """Whether a value is missing."""
        return any(column.null_count for batch in self._batches for column in batch.columns)

    def read_part(self, part: int, columns: Sequence[str]) -> Any:
        """Return a chunk without copying."""
        return self._batches[part].select(list(columns))

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """Yield the chunks in pieces of bounded size."""
        for part in range(len(self._batches)):
            yield from pieces(self.read_part(part, columns))


def _is_frame(value: Any) -> bool:
    """Whether an object is a data frame that holds its rows."""
    if isinstance(value, (pa.Table, pa.RecordBatch)) or _made_by(value, "pandas"):
        return hasattr(value, "columns")
    return _made_by(value, "polars") and hasattr(type(value), "get_columns")


def _is_dataset(value: Any) -> bool:
    return isinstance(value, sys.modules["pyarrow.dataset"].Dataset)


def _streamed(value: Any) -> Any:
    """Rows of a query, a reader or a stream as a table; None where an object gives none."""
    name = f"{type(value).__module__.partition('.')[0]} {type(value).__name__}"
    try:
        if _made_by(value, "polars") and hasattr(value, "sink_ipc"):
            return spool_query(value, name)
        if isinstance(value, pa.RecordBatchReader):
            return hold_or_spool(value, name)
        if _made_by(value, "pyarrow") and hasattr(value, "to_reader"):  # a scanner
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


def _made_by(value: Any, library: str) -> bool:
    return type(value).__module__.partition(".")[0] == library


def _refuse_layout(options: ReadOptions, name: str) -> None:
    options.refuse(name, *LAYOUT, "header", "zero_based", "n_features")


def _arrow_table(frame: Any) -> Any:
    try:
        if isinstance(frame, pa.RecordBatch):
            return pa.Table.from_batches([frame])
        if _made_by(frame, "pandas"):
            return pa.Table.from_pandas(frame, preserve_index=False)
        return pa.table(frame)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise BadRowsError(
            f"the data frame holds values that Arrow cannot store: {error}. "
            "Give each column one type: numbers or text."
        ) from error
