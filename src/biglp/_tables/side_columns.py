"""Columns of the table of the rows that are no features: labels, IDs, what people want to see."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from biglp._core.errors import BadRowsError, LabelError, ParameterError
from biglp._rows.encoding import some
from biglp._rows.format import LABEL_NAMES, LabelColumns, LabelPiece
from biglp._rows.opening import InputFiles
from biglp._rows.options import ReadOptions
from biglp._tables.table import TableFile, stream, take_rows


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


# --------------------------------------------------------------------------------------------------
# Labels in columns of a table: one a row, ``row,label`` or ``id,label``; weights beside them.


ROW_NAMES = ("row", "rows", "index", "row_index")
ID_NAMES = ("id", "ids", "external_id")
WEIGHT_NAMES = ("weight", "weights", "confidence", "sample_weight")


def labels_in_columns(tables: Sequence[TableFile], columns: LabelColumns) -> Iterator[LabelPiece]:
    """Yield the labels in columns of a table.

    Parameters
    ----------
    tables : sequence of TableFile
    columns : LabelColumns
        What the user named; the rest is found by names and places.
    """
    found = LabelTable.of(tables[0], columns)
    text = not tables[0].typed
    if text:  # classes and IDs are read as they are written, whatever they look like
        as_written = [name for name in (found.label, found.id) if name is not None]
        keep_all = found.weight is None
        tables = [table.as_written(*as_written, keep_all=keep_all) for table in tables]
    name = tables[0].name
    for batch in stream(tables, found.wanted):
        kind = batch.schema.field(found.label).type
        if pa.types.is_nested(kind):
            raise LabelError(
                f"{name}: column {found.label!r} holds {kind}, and labels are integers or text; "
                "name another column, or write one label a row."
            )
        weights = None if found.weight is None else _numbers(batch, found.weight, name)
        rows = None if found.row is None else _row_numbers(batch, found.row, name)
        ids = None if found.id is None else batch.column(found.id)
        yield LabelPiece(batch.column(found.label), rows, ids, text, weights)


@dataclass(frozen=True)
class LabelTable:
    """Which columns of a table are what; rows and IDs are never both used."""

    label: str
    row: str | None = None
    id: str | None = None
    weight: str | None = None

    @property
    def wanted(self) -> list[str]:
        """All of them."""
        found = (self.row, self.id, self.label, self.weight)
        return [name for name in found if name is not None]

    @classmethod
    def of(cls, table: TableFile, columns: LabelColumns) -> LabelTable:
        """Find the columns of a table."""
        names = table.schema.names
        named = {"label": columns.label, "weight": columns.weight}
        for what, name in named.items():
            if name is not None and name not in names:
                if columns.must:
                    raise ParameterError(
                        f"{what} column: {table.name} has no column {name!r}; it has "
                        f"{some(names, 20)}."
                    )
                named[what] = None
        label, weight = named["label"], named["weight"]
        id_column = None if columns.id is None else _id_column(names, columns.id)
        others = [name for name in names if name not in (id_column, weight)]
        if label is None and weight is None:
            weight = _weight_column(others, 2 if id_column else 3)
            others = [name for name in others if name != weight]
        if label is not None:
            row = next((name for name in others if name.lower() == ROW_NAMES[0]), None)
            by_row = not columns.by_line and id_column is None and row != label
            return cls(label, row if by_row else None, id_column, weight)
        row = _row_column(others, id_column is not None)
        rest = [name for name in others if name != row]
        if len(rest) > 1 and (row or id_column):  # what biglp suggest wrote, filled in
            rest = [name for name in rest if name.lower() in LABEL_NAMES]
        if len(rest) != 1:
            raise LabelError(_which(table, names))
        return cls(rest[0], None if id_column else row, id_column, weight)


def _which(table: TableFile, names: Sequence[str]) -> str:
    by_id = [name for name in names if name.lower() in ID_NAMES]
    more = (
        f" Labels are joined by {by_id[0]!r} when the rows have IDs too: say where with "
        "id_column= (--id-column)."
        if by_id
        else ""
    )
    return (
        f"{table.name} has columns {some(names)}; say which holds the labels with column= "
        f"(--label-column), or give a file with the columns 'row' and 'label'.{more}"
    )


def _id_column(names: Sequence[str], wanted: str) -> str | None:
    """The column of IDs: of the same name as in the table of the rows, or called "id"."""
    if wanted in names:
        return wanted
    return next((name for name in names if name.lower() in ID_NAMES), None)


def _weight_column(names: list[str], count: int) -> str | None:
    """The column beside row (or ID) and label, with or without these names."""
    if len(names) != count:
        return None
    weights = [name for name in names if name.lower() in WEIGHT_NAMES]
    if weights and (count == 2 or any(name.lower() in ROW_NAMES for name in names)):
        return weights[0]
    return names[2] if names == ["f0", "f1", "f2"] else None


def _numbers(batch: Any, column: str, name: str) -> np.ndarray:
    """A column of weights; NaN where it is empty, which labelled rows are refused for."""
    values = np.asarray(batch.column(column).to_numpy(zero_copy_only=False))
    if values.dtype.kind not in "iufb":
        raise LabelError(f"{name}: column {column!r} must hold weights, which are numbers.")
    return values.astype(np.float64)


def _row_column(names: list[str], by_id: bool) -> str | None:
    named = [name for name in names if name.lower() in ROW_NAMES]
    if len(names) != 2 or by_id:
        labels = [name for name in names if name.lower() in LABEL_NAMES]
        return named[0] if len(named) == len(labels) == 1 else None
    return named[0] if named else names[0] if names == ["f0", "f1"] else None


def _row_numbers(batch: Any, column: str, name: str) -> np.ndarray:
    if batch.column(column).null_count:
        raise LabelError(f"{name}: column {column!r} has empty entries.")
    values = np.asarray(batch.column(column).to_numpy(zero_copy_only=False))
    if values.dtype.kind not in "iuf" or (values != np.floor(values)).any():
        raise LabelError(f"{name}: row numbers must be whole numbers, counted from 0.")
    return values.astype(np.int64)
