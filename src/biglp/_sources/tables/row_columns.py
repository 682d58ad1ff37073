"""Columns of the table of the rows that are no features: labels, IDs, what people want to see."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from biglp._core.errors import BadRowsError, ParameterError
from biglp._rows.encoding import some
from biglp._rows.opening import InputFiles
from biglp._rows.options import ReadOptions
from biglp._sources.tables.table import TableFile, stream, take_rows


@dataclass(frozen=True)
class RowColumns:
    """A table that has a line for each row.

    Attributes
    ----------
    files : InputFiles
        Its files.
    reading : dict
        How the user says it is read: options of :class:`biglp._rows.ReadOptions`.
    """

    files: InputFiles
    reading: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """What messages call the table."""
        return self.tables[0].name

    @property
    def names(self) -> list[str]:
        """Names of its columns."""
        return list(self.tables[0].schema.names)

    def check(self, option: str, *columns: str) -> None:
        """Refuse columns that are not there."""
        absent = [column for column in columns if column not in self.names]
        if absent:
            raise ParameterError(
                f"{option}={absent[0]!r}: {self.name} has no column {some(absent)}; it has "
                f"{some(self.names, 20)}."
            )

    @cached_property
    def tables(self) -> list[TableFile]:
        """The files, open."""
        return self.files.tables(ReadOptions(**self.reading))

    def stream(self, columns: Sequence[str]) -> Iterator[Any]:
        """Yield the rows' entries in these columns, in order; text files as they are written."""
        return stream(self._as_written(columns), columns)

    def count(self) -> int:
        """Number of rows."""
        tables = self.tables
        if tables[0].part_rows:
            return sum(table.n_rows_guess for table in tables)
        first = self.names[:1]
        return sum(batch.num_rows for batch in self.stream(first))

    def column(self, name: str) -> RowColumn:
        """One of the columns."""
        return RowColumn(self, name)

    def take(self, columns: Sequence[str], rows: np.ndarray) -> dict[str, list[Any]]:
        """Entries of some rows, by number and in their order."""
        return self.table(columns, rows).to_pydict()

    def table(self, columns: Sequence[str], rows: np.ndarray) -> pa.Table:
        """Some rows, by number and in their order, as an Arrow table.

        Only the parts that hold them are read, where the format has parts.
        """
        order = np.argsort(rows, kind="stable")
        wanted, found, start = np.asarray(rows)[order], [], 0
        for size, read in self._pieces(columns):
            first, last = np.searchsorted(wanted, [start, start + size])
            if last > first:
                piece = read()
                found.append(take_rows(piece, pa.array(wanted[first:last] - start)))
            start += size
            if last == len(wanted):
                break
        if len(wanted) and wanted[-1] >= start:
            raise BadRowsError(
                f"the table that has the column {columns[0]!r} ends after {start:,} rows, before "
                "the rows do; it must have one line for each, in their order. Check metadata= "
                "(--metadata)."
            )
        if not found:
            return pa.table({name: pa.array([], pa.null()) for name in columns})
        table = pa.concat_tables(
            [piece if isinstance(piece, pa.Table) else pa.table(piece) for piece in found]
        )
        back = np.argsort(order, kind="stable")
        return table.select(list(columns)).take(pa.array(back))

    def _pieces(self, columns: Sequence[str]) -> Iterator[tuple[int, Any]]:
        """Sizes of pieces of the table, and how each is read."""
        for table in self._as_written(columns):
            if table.part_rows:
                for part, size in enumerate(table.part_rows):
                    yield size, lambda part=part, table=table: table.read_part(part, columns)
            else:
                for batch in stream([table], columns):
                    yield batch.num_rows, lambda batch=batch: batch

    def _as_written(self, columns: Sequence[str]) -> list[TableFile]:
        return [table.as_written(*columns, keep_all=True) for table in self.tables]


@dataclass(frozen=True)
class RowColumn:
    """One column of such a table, such as the IDs of the rows."""

    table: RowColumns
    name: str

    @cached_property
    def type(self) -> Any:
        """Its Arrow type."""
        first = self.table._as_written([self.name])[0]
        kind = first.schema.field(self.name).type
        return kind.value_type if pa.types.is_dictionary(kind) else kind

    def pieces(self) -> Iterator[Any]:
        """Yield its entries in order, as Arrow arrays of its type."""
        for batch in self.table.stream([self.name]):
            column = batch.column(self.name)
            for chunk in column.chunks if isinstance(column, pa.ChunkedArray) else [column]:
                yield chunk if chunk.type == self.type else chunk.cast(self.type)

    def at(self, rows: np.ndarray) -> list[Any]:
        """Entries of some rows, by number and in their order."""
        return self.table.take([self.name], rows)[self.name]
