"""Arrow (Feather) files mapped into memory, and data frames that are there already."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from biglp._core.errors import BadRowsError
from biglp._core.files import FileStamp
from biglp._sources.tables.arrow_columns import is_number
from biglp._sources.tables.table import BATCH_ROWS, TableFile, check_names


class ArrowTable(TableFile):
    """One Arrow IPC file, also known as Feather version 2; record batches are the parts."""

    kind = "Arrow"
    part_word = "record batch"

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.name = os.fspath(path)
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
        self.check_unchanged()
        try:
            return self._open(columns).get_batch(part)
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
        return pa.ipc.open_file(pa.memory_map(self.name), options=options)


class FrameTable(TableFile):
    """A data frame in memory: pandas, polars, pyarrow, or anything that speaks Arrow."""

    kind = "a data frame"
    part_word = "chunk"

    def __init__(self, frame: Any) -> None:
        self.name = "data frame"
        self.stamp = None
        self._batches = _arrow_table(frame).to_batches()
        self.schema = check_names(self._batches[0].schema, self.name)
        self.part_rows = [batch.num_rows for batch in self._batches]
        self.n_rows_guess = sum(self.part_rows)

    def read_part(self, part: int, columns: Sequence[str]) -> Any:
        """Return a chunk without copying."""
        return self._batches[part].select(list(columns))

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """Yield the chunks in pieces of bounded size."""
        for part in range(len(self._batches)):
            yield from pieces(self.read_part(part, columns))


def is_frame(value: Any) -> bool:
    """Whether an object is a data frame with named columns."""
    speaks_arrow = hasattr(value, "__arrow_c_stream__") and hasattr(value, "columns")
    return speaks_arrow or _is_pandas(value) or isinstance(value, (pa.Table, pa.RecordBatch))


def plain_numbers(frame: Any) -> bool:
    """Whether a data frame holds nothing but numbers, none of them missing."""
    table = _arrow_table(frame)
    numbers = all(is_number(field.type) for field in table.schema)
    return numbers and all(column.null_count == 0 for column in table.columns)


def _is_pandas(value: Any) -> bool:
    pandas = type(value).__module__.partition(".")[0] == "pandas"
    return pandas and hasattr(value, "columns")


def pieces(batch: Any) -> Iterator[Any]:
    """Cut a batch into slices that share its memory."""
    for start in range(0, batch.num_rows, BATCH_ROWS):
        yield batch.slice(start, BATCH_ROWS)


def _arrow_table(frame: Any) -> Any:
    try:
        if isinstance(frame, pa.RecordBatch):
            table = pa.Table.from_batches([frame])
        elif _is_pandas(frame):
            table = pa.Table.from_pandas(frame, preserve_index=False)
        else:
            table = pa.table(frame)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise BadRowsError(
            f"the data frame holds values that Arrow cannot store: {error}. "
            "Give each column one type: numbers or text."
        ) from error
    if table.num_rows == 0:
        raise BadRowsError(
            f"Found array with 0 sample(s) (shape={table.shape}) in the data frame "
            "while a minimum of 1 is required."
        )
    return table
