"""Columns that are in the names of folders, as in ``year=2024/lang=de/part-0.parquet``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from biglp._core.errors import BadRowsError
from biglp._rows.options import ReadOptions
from biglp._sources.tables.table import TableFile

NOTHING = "__HIVE_DEFAULT_PARTITION__"
"""What Hive and Spark call a folder of rows without a value."""


class PartitionedTable(TableFile):
    """A table file with further columns, each of one value.

    Parameters
    ----------
    file : TableFile
    values : pyarrow.StructScalar or dict
        The value of each further column, as Arrow scalars.
    """

    def __init__(self, file: TableFile, values: dict[str, Any]) -> None:
        self._file, self._values = file, values
        self.kind, self.part_word = file.kind, file.part_word
        self.slow, self.typed = file.slow, file.typed
        self.name, self.stamp = file.name, file.stamp
        self.part_rows, self.part_bytes = file.part_rows, file.part_bytes
        self.n_rows_guess = file.n_rows_guess

    @property
    def page_bytes(self) -> int:  # type: ignore[override]  # asked of the largest file only
        """What its file says."""
        return self._file.page_bytes

    @property
    def schema(self) -> Any:
        """Columns of the file, then those of its folders."""
        schema = self._file.schema
        for name, value in self._values.items():
            schema = schema.append(pa.field(name, value.type))
        return schema

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """Yield batches of the file with the further columns."""
        for batch in self._file.batches(self._stored(columns)):
            yield self._with_values(batch, columns)

    def read_part(self, part: int, columns: Sequence[str]) -> Any:
        """Return a part of the file with the further columns."""
        return self._with_values(self._file.read_part(part, self._stored(columns)), columns)

    def extremes(self, column: str) -> Any | None:
        """Least and greatest value of a column; one of a folder's name is both."""
        value = self._values.get(column)
        if value is None:
            return self._file.extremes(column)
        return pa.repeat(value, 2) if value.is_valid else None

    def text_example(self, column: str) -> str:
        """Say where a column holds text."""
        if column not in self._values:
            return self._file.text_example(column)
        return f", in the folder {column}={self._values[column]}"

    def as_written(self, *columns: str, keep_all: bool = False) -> TableFile:
        """Columns as they are written; those of folders have one type in all files already."""
        stored = [column for column in columns if column not in self._values]
        return PartitionedTable(self._file.as_written(*stored, keep_all=keep_all), self._values)

    def _stored(self, columns: Sequence[str]) -> list[str]:
        """Columns to read; one at least, which says how many rows there are."""
        stored = [name for name in columns if name not in self._values]
        return stored or self._file.schema.names[:1]

    def _with_values(self, batch: Any, columns: Sequence[str]) -> Any:
        arrays = [
            pa.repeat(self._values[name], batch.num_rows)
            if name in self._values
            else batch.column(name)
            for name in columns
        ]
        return pa.table(arrays, names=list(columns))


def with_partitions(files: Sequence[TableFile], options: ReadOptions) -> list[TableFile]:
    """Add the columns that are in the names of the files' folders.

    A key that has one value in all files is a column only where it is asked for: a file may happen
    to lie in such a folder.

    Parameters
    ----------
    files : sequence of TableFile
        Files of one table.
    options : ReadOptions
        Names the columns that are asked for.
    """
    found = [_keys(file.name) for file in files]
    asked = {options.label_column, *(options.columns or ()), *options.drop}
    if options.encoding is not None:
        asked |= set(options.encoding.names)
    every = list(dict.fromkeys(name for keys in found for name in keys))
    values: dict[str, list[Any]] = {}
    for name in every:
        texts = [keys.get(name) for keys in found]
        if name in files[0].schema.names or (len(set(texts)) == 1 and name not in asked):
            continue
        _check_all(name, texts, files)
        values[name] = _typed([None if text == NOTHING else text for text in texts])
    if not values:
        return list(files)
    return [
        PartitionedTable(file, {name: column[place] for name, column in values.items()})
        for place, file in enumerate(files)
    ]


def _keys(path: str) -> dict[str, str]:
    """Keys and values in the names of the folders of a file."""
    parts = [folder.partition("=") for folder in Path(path).parts[:-1]]
    return {unquote(key): unquote(value) for key, mark, value in parts if key and mark}


def _check_all(name: str, texts: Sequence[str | None], files: Sequence[TableFile]) -> None:
    if None in texts:
        there = next(place for place, text in enumerate(texts) if text is not None)
        lacks = texts.index(None)
        raise BadRowsError(
            f"{files[there].name} is in a folder {name}=…, which makes {name!r} a column of the "
            f"table, and {files[lacks].name} is not; put all files of a table in such folders, or "
            "none."
        )


def _typed(texts: Sequence[str | None]) -> Any:
    """Values as integers where all are, else as numbers, else as text."""
    strings = pa.array(texts, type=pa.string())
    for kind in (pa.int64(), pa.float64()):
        try:
            return strings.cast(kind)
        except pa.ArrowInvalid:
            continue
    return strings
