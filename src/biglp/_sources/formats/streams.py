"""Rows that come once, batch after batch: Arrow readers and streams, queries that are run.

A query of polars or DuckDB is run once, because it may take long or give other rows the second
time. What it gives is held while it is small. Beyond that it goes to a temporary Arrow file, since
finding categories and means takes a pass over the rows before they can be converted to raw rows;
so rows that are larger than the memory can be handed over.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from biglp._files.local import explained_writing, temporary_folder
from biglp._rows.options import ReadOptions
from biglp._rows.source import no_rows
from biglp._sources.formats.arrow import ArrowTable
from biglp._sources.tables.table import BATCH_ROWS, pieces

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
