"""Columns of the table of the rows that are no features: labels, IDs, what people want to see."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from biglp._core.arrays import as_arrow
from biglp._core.errors import BadRowsError, LabelError, ParameterError
from biglp._rows.format import LABEL_NAMES, LabelColumns, LabelPiece
from biglp._rows.opening import InputFiles
from biglp._rows.options import ReadOptions
from biglp._rows.source import some
from biglp._tables.table import TableFile, stream, take_rows


@dataclass(frozen=True)
class RowColumns:
    """A table that has a line for each row."""

    files: InputFiles
    reading: dict[str, Any] = field(default_factory=dict)
    """How the user says it is read: options of :class:`biglp._rows.ReadOptions`."""

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

    def as_written(self, columns: Sequence[str]) -> list[TableFile]:
        """The files, whose entries in these columns are as they are written."""
        return [table.as_written(*columns, keep_all=True) for table in self.tables]

    def stream(self, columns: Sequence[str]) -> Iterator[Any]:
        """Yield the rows' entries in these columns, in order; text files as they are written."""
        return stream(self.as_written(columns), columns)

    def count(self) -> int:
        """Number of rows."""
        if self.tables[0].part_rows:
            return sum(table.n_rows_guess for table in self.tables)
        return sum(batch.num_rows for batch in self.stream(self.names[:1]))

    def column(self, name: str) -> RowColumn:
        """One of the columns."""
        return RowColumn(self, name)

    def table(self, columns: Sequence[str], rows: np.ndarray) -> pa.Table:
        """Some rows, by number and in their order; of files with parts, only those are read."""
        order = np.argsort(rows, kind="stable")
        wanted, taken, start = np.asarray(rows)[order], list[pa.Table](), 0
        for table in self.as_written(columns):
            if taken and wanted[-1] < start:
                break
            pieces: Iterable[tuple[Any, int]] = (
                enumerate(table.part_rows)
                if table.part_rows
                else ((batch, batch.num_rows) for batch in stream([table], columns))
            )
            for piece, size in pieces:
                first, last = np.searchsorted(wanted, [start, start + size])
                if last > first:
                    read = table.read_part(piece, columns) if table.part_rows else piece
                    read = take_rows(read, as_arrow(wanted[first:last] - start))
                    taken.append(
                        read if isinstance(read, pa.Table) else pa.Table.from_batches([read])
                    )
                start += size
                if last == len(wanted):
                    break
        if len(wanted) and wanted[-1] >= start:
            raise BadRowsError(
                f"the table that has the column {columns[0]!r} ends after {start:,} rows, before "
                "the rows do; it must have one line for each, in their order. Check metadata= "
                "(--metadata)."
            )
        if not taken:
            return pa.table({name: pa.array([], pa.null()) for name in columns})
        back = np.argsort(order, kind="stable")
        return pa.concat_tables(taken).select(list(columns)).take(as_arrow(back))


@dataclass(frozen=True)
class RowColumn:
    """One column of such a table, such as the IDs of the rows."""

    table: RowColumns
    name: str

    @cached_property
    def type(self) -> Any:
        """Its Arrow type."""
        kind = self.table.as_written([self.name])[0].schema.field(self.name).type
        return kind.value_type if pa.types.is_dictionary(kind) else kind

    def pieces(self) -> Iterator[Any]:
        """Yield its entries in order, as Arrow arrays of its type."""
        for batch in self.table.stream([self.name]):
            column = batch.column(self.name)
            for chunk in column.chunks if isinstance(column, pa.ChunkedArray) else [column]:
                yield chunk if chunk.type == self.type else chunk.cast(self.type)

    def at(self, rows: np.ndarray) -> list[Any]:
        """Entries of some rows, by number and in their order."""
        return self.table.table([self.name], rows)[self.name].to_pylist()


# Labels in columns of a table: one a row, ``row,label`` or ``id,label``; weights beside them ------


ROW_NAMES = ("row", "rows", "index", "row_index")
ID_NAMES = ("id", "ids", "external_id")
WEIGHT_NAMES = ("weight", "weights", "confidence", "sample_weight")


def labels_in_columns(tables: Sequence[TableFile], columns: LabelColumns) -> Iterator[LabelPiece]:
    """Yield the labels in the columns that the user named, or that have such names."""
    name = tables[0].name
    names = tables[0].schema.names
    named = {"label": columns.label, "weight": columns.weight}
    for what, column in named.items():
        if column is not None and column not in names:
            if columns.must:
                raise ParameterError(
                    f"{what} column: {name} has no column {column!r}; it has {some(names, 20)}."
                )
            named[what] = None
    label, weight = named["label"], named["weight"]

    # IDs have the name that they have in the table of the rows, or are called "id".
    by_id = [name for name in names if name.lower() in ID_NAMES]
    row_id = None
    if columns.id is not None:
        row_id = columns.id if columns.id in names else next(iter(by_id), None)
    others = [name for name in names if name not in (row_id, weight)]

    # A weight stands beside a row (or ID) and a label, with or without these names.
    if label is None and weight is None and len(others) == (2 if row_id else 3):
        by_name = [name for name in others if name.lower() in WEIGHT_NAMES]
        if by_name and (row_id or any(name.lower() in ROW_NAMES for name in others)):
            weight = by_name[0]
        elif others == ["f0", "f1", "f2"]:
            weight = others[2]
        others = [name for name in others if name != weight]

    if label is not None:
        row = next((column for column in others if column.lower() == ROW_NAMES[0]), None)
        row = None if columns.by_line or row_id is not None or row == label else row
    else:
        rows = [column for column in others if column.lower() in ROW_NAMES]
        labels = [column for column in others if column.lower() in LABEL_NAMES]
        if len(others) == 2 and row_id is None:
            row = rows[0] if rows else others[0] if others == ["f0", "f1"] else None
        else:
            row = rows[0] if len(rows) == len(labels) == 1 else None
        rest = [column for column in others if column != row]
        if len(rest) > 1 and (row or row_id):  # what biglp suggest wrote, filled in
            rest = [column for column in rest if column.lower() in LABEL_NAMES]
        if len(rest) != 1:
            more = (
                f" Labels are joined by {by_id[0]!r} when the rows have IDs too: say where with "
                "id_column= (--id-column)."
                if by_id
                else ""
            )
            raise LabelError(
                f"{name} has columns {some(names)}; say which holds the labels with column= "
                f"(--label-column), or give a file with the columns 'row' and 'label'.{more}"
            )
        label, row = rest[0], None if row_id else row

    text = not tables[0].typed
    if text:  # classes and IDs are read as they are written, whatever they look like
        written = [column for column in (label, row_id) if column is not None]
        tables = [table.as_written(*written, keep_all=weight is None) for table in tables]
    wanted = [column for column in (row, row_id, label, weight) if column is not None]
    for batch in stream(tables, wanted):
        kind = batch.schema.field(label).type
        if pa.types.is_nested(kind):
            raise LabelError(
                f"{name}: column {label!r} holds {kind}, and labels are integers or text; "
                "name another column, or write one label a row."
            )
        numbers = weights = None
        if weight is not None:  # NaN where it is empty, which labelled rows are refused for
            weights = np.asarray(batch.column(weight).to_numpy(zero_copy_only=False))
            if weights.dtype.kind not in "iufb":
                raise LabelError(f"{name}: column {weight!r} must hold weights, which are numbers.")
            weights = weights.astype(np.float64)
        if row is not None:
            if batch.column(row).null_count:
                raise LabelError(f"{name}: column {row!r} has empty entries.")
            numbers = np.asarray(batch.column(row).to_numpy(zero_copy_only=False))
            if numbers.dtype.kind not in "iuf" or (numbers != np.floor(numbers)).any():
                raise LabelError(f"{name}: row numbers must be whole numbers, counted from 0.")
            numbers = numbers.astype(np.int64)
        ids = None if row_id is None else batch.column(row_id)
        yield LabelPiece(batch.column(label), numbers, ids, text, weights)
