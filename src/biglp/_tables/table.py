"""Files and data frames with named columns: what every format of tables offers.

A file can be streamed from its first row to its last. Formats with an index (Parquet's row groups,
Arrow's record batches) can also be read part by part.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
import pyarrow as pa

from biglp._core.errors import BadRowsError
from biglp._files.local import FileStamp
from biglp._rows.options import ReadOptions
from biglp._rows.source import Encoding, some

BATCH_ROWS = 1 << 14
"""Rows that are decoded at once when a table is streamed."""


class TableFile(ABC):
    """One file (or data frame) of named columns."""

    kind: str
    part_word: str = "part"
    slow: bool = False
    """Whether decoding costs more than reading raw rows, so that converting once pays."""
    typed: bool = True
    """Whether the columns have declared types; labels in other formats are read as written."""
    name: str
    stamp: FileStamp | None
    """The file as it was when it was opened; None for a data frame."""
    schema: Any
    part_rows: list[int]
    """Rows of each part; empty when the file can only be streamed."""
    n_rows_guess: int
    """Exact when there are parts."""
    part_bytes: int = 0
    """Memory that the largest part takes when it is read; 0 when it is not copied."""
    page_bytes: int = 0
    """Memory that streaming holds of each column on the mean, because the format packs so much."""
    words: str = ""
    """What is unusual about the file's layout, beside its format."""
    remarks: tuple[str, ...] = ()
    """What the user should know about how the file is read."""
    _handle: Any = None
    """The file, where its format keeps it open."""
    _stays_open: bool = True

    @abstractmethod
    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """Yield all rows in order, as Arrow batches or tables of these columns."""

    def read_part(self, part: int, columns: Sequence[str]) -> Any:
        """Return one part as an Arrow table of these columns."""
        raise LookupError(f"{self.name} can only be read from its start to its end")

    @property
    def extremes(self) -> dict[str, Any]:
        """Least and greatest value, an Arrow array, of columns in which none can be missing."""
        return {}

    def text_example(self, column: str) -> str:
        """Say where a column holds text, for formats whose columns have no declared type."""
        return ""

    def as_written(self, *columns: str, keep_all: bool = False) -> TableFile:
        """The same file with columns as they are written, where they have no declared types.

        With ``keep_all`` nothing but an empty entry is missing, not even one that reads "NA".
        """
        return self

    def with_encoding(self, encoding: Encoding) -> TableFile:
        """The same file with columns as an encoding expects them, where they have no types."""
        return self

    def close(self) -> None:
        """Open the file for each reading from now on: it is one of very many."""
        self._handle, self._stays_open = None, False

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_handle": None}

    def unreadable(self, error: Exception, part: int | None = None) -> BadRowsError:
        """Explain an error of the format's reader."""
        where = self.name if part is None else f"{self.name}, {self.part_word} {part}"
        reason = " ".join(str(error).split())
        return BadRowsError(
            f"{where} cannot be read as {self.kind}: {reason[:300]}. The file is damaged, was cut "
            "short while it was written, or has the wrong ending; write or copy it again."
        )


class MixedColumnError(BadRowsError):
    """A column whose first rows are numbers, dates or truth values holds a text further down."""

    def __init__(self, message: str, column: str) -> None:
        super().__init__(message)
        self.column = column

    def __reduce__(self) -> Any:
        return type(self), (str(self), self.column)


def check_names(schema: Any, name: str) -> Any:
    """Refuse a table that has a column name twice, or no columns."""
    twice = sorted(column for column, count in Counter(schema.names).items() if count > 1)
    if twice:
        raise BadRowsError(
            f"{name} has more than one column named {some(twice)}; give each column its own name."
        )
    if not schema.names:
        raise BadRowsError(f"{name} has no columns; a table needs at least one feature column.")
    return schema


def shortened(text: str) -> str:
    """The beginning of a text, for messages."""
    return text if len(text) <= 60 else text[:57] + "..."


def with_text(table: Any) -> Any:
    """A table or batch whose text is UTF-8, else ``pyarrow.ArrowInvalid``.

    pyarrow's readers of Parquet and JSON take any bytes for text, and others then fail over them.
    """
    for field, column in zip(table.schema, table.columns, strict=True):
        kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        if pa.types.is_string(kind) or pa.types.is_large_string(kind):
            column.validate(full=True)
    return table


def page_bytes_of(files: Sequence[TableFile]) -> int:
    """``page_bytes`` of the largest file; one of thousands tells enough."""
    return max(files, key=lambda file: file.n_rows_guess).page_bytes


def stream(files: Sequence[TableFile], columns: Sequence[str]) -> Iterator[Any]:
    """Yield all rows of all files in order, none of the batches empty."""
    for file in files:
        try:
            yield from (batch for batch in file.batches(columns) if batch.num_rows)
        except (pa.ArrowException, OSError) as error:
            raise file.unreadable(error) from error


def pieces(batch: Any) -> Iterator[Any]:
    """Cut a batch into slices of bounded size that share its memory."""
    for start in range(0, batch.num_rows, BATCH_ROWS):
        yield batch.slice(start, BATCH_ROWS)


def take_rows(table: Any, rows: Any) -> Any:
    """Rows of a table or batch by increasing numbers.

    pyarrow takes none of views of text, as polars has; these become plain text first, of the rows
    from the first to the last that are wanted.
    """
    if len(rows) and any(str(kind) == "string_view" for kind in table.schema.types):
        numbers = np.asarray(rows)
        first = int(numbers[0])
        table = table.slice(first, int(numbers[-1]) + 1 - first)
        arrays = [
            column.cast(pa.large_string()) if str(column.type) == "string_view" else column
            for column in table.columns
        ]
        table = type(table).from_arrays(arrays, names=table.schema.names)
        rows = numbers - first
    return table.take(rows)


# Columns in the names of folders: ``year=2024/lang=de/part-0.parquet`` ----------------------------


NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
"""What Hive and Spark call a folder of rows without a value."""


class PartitionedTable(TableFile):
    """A table file with further columns, each of one value (an Arrow scalar)."""

    def __init__(self, file: TableFile, values: dict[str, Any]) -> None:
        self._file, self._values = file, values
        self.kind, self.part_word = file.kind, file.part_word
        self.slow, self.typed = file.slow, file.typed
        self.name, self.stamp = file.name, file.stamp
        self.part_rows, self.part_bytes = file.part_rows, file.part_bytes
        self.n_rows_guess = file.n_rows_guess

    @property
    def remarks(self) -> tuple[str, ...]:  # type: ignore[override]  # may change while it is read
        return self._file.remarks

    @property
    def page_bytes(self) -> int:  # type: ignore[override]  # asked of the largest file only
        return self._file.page_bytes

    @property
    def schema(self) -> Any:
        """Columns of the file, then those of its folders."""
        schema = self._file.schema
        for name, value in self._values.items():
            schema = schema.append(pa.field(name, value.type))
        return schema

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        for batch in self._file.batches(self._stored(columns)):
            yield self._with_values(batch, columns)

    def read_part(self, part: int, columns: Sequence[str]) -> Any:
        return self._with_values(self._file.read_part(part, self._stored(columns)), columns)

    @property
    def extremes(self) -> dict[str, Any]:
        values = {name: pa.repeat(x, 2) for name, x in self._values.items() if x.is_valid}
        return {**self._file.extremes, **values}

    def text_example(self, column: str) -> str:
        if column not in self._values:
            return self._file.text_example(column)
        return f", in the folder {column}={self._values[column]}"

    def as_written(self, *columns: str, keep_all: bool = False) -> TableFile:
        """Columns of folders stay as they are: they have one type in all files already."""
        stored = [column for column in columns if column not in self._values]
        return type(self)(self._file.as_written(*stored, keep_all=keep_all), self._values)

    def with_encoding(self, encoding: Encoding) -> TableFile:
        return type(self)(self._file.with_encoding(encoding), self._values)

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
    """Files of one table, with the columns that are in the names of their folders.

    A key that has one value in all files is a column only where the options name it: a file may
    happen to lie in such a folder.
    """
    keys: list[dict[str, str]] = []
    for file in files:
        folders = [folder.partition("=") for folder in Path(file.name).parts[:-1]]
        keys.append({unquote(key): unquote(text) for key, mark, text in folders if key and mark})
    named = {options.label_column, *(options.columns or ()), *options.drop}
    if options.encoding is not None:
        named |= set(options.encoding.names)
    values: dict[str, Any] = {}
    for name in dict.fromkeys(name for known in keys for name in known):
        texts = [known.get(name) for known in keys]
        if name in files[0].schema.names or (len(set(texts)) == 1 and name not in named):
            continue
        if None in texts:
            has = next(index for index, text in enumerate(texts) if text is not None)
            raise BadRowsError(
                f"{files[has].name} is in a folder {name}=…, which makes {name!r} a column of the "
                f"table, and {files[texts.index(None)].name} is not; put all files of a table in "
                "such folders, or none."
            )
        column = pa.array([None if text == NO_VALUE else text for text in texts], type=pa.string())
        for kind in (pa.int64(), pa.float64()):
            try:
                column = column.cast(kind)
                break
            except pa.ArrowInvalid:
                continue
        values[name] = column
    if not values:
        return list(files)
    return [
        PartitionedTable(file, {name: column[index] for name, column in values.items()})
        for index, file in enumerate(files)
    ]
