"""Tables with named columns, whatever file they are in.

A :class:`TableFile` knows one format. It can be streamed from its first row to its last; formats
with an index (Parquet's row groups, Arrow's record batches) can also be read part by part.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from biglp._core.errors import BadRowsError
from biglp._files.local import FileStamp
from biglp._rows.encoding import Encoding, some

BATCH_ROWS = 1 << 14
"""Rows that are decoded at once when a table is streamed."""


class TableFile(ABC):
    """One file (or data frame) of named columns.

    Attributes
    ----------
    kind, part_word : str
        Names of the format and of its parts.
    slow : bool
        Whether decoding costs more than reading raw rows, so that converting once pays.
    typed : bool
        Whether the columns have declared types; labels in other formats are read as written.
    name : str
        What messages call the file.
    stamp : FileStamp or None
        The file as it was when it was opened; None for a data frame.
    schema : pyarrow.Schema
        Names and types of the columns.
    part_rows : list of int
        Rows of each part; empty when the file can only be streamed.
    n_rows_guess : int
        Number of rows, exact when there are parts.
    part_bytes : int
        Memory that the largest part takes when it is read; 0 when it is not copied.
    page_bytes : int
        Memory that streaming holds of each column on the mean, because the format packs so much.
    words : str
        What is unusual about the file's layout, beside its format.
    remarks : tuple of str
        What the user should know about how the file is read.
    """

    kind: str
    part_word: str = "part"
    slow: bool = False
    typed: bool = True
    name: str
    stamp: FileStamp | None
    schema: Any
    part_rows: list[int]
    n_rows_guess: int
    part_bytes: int = 0
    page_bytes: int = 0
    words: str = ""
    remarks: tuple[str, ...] = ()
    _handle: Any = None
    """The file, where its format keeps it open."""
    _stays_open: bool = True

    @abstractmethod
    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """Yield all rows in order, as Arrow batches or tables of these columns."""

    def read_part(self, part: int, columns: Sequence[str]) -> Any:
        """Return one part as an Arrow table of these columns."""
        raise LookupError(f"{self.name} can only be read from its start to its end")

    def extremes(self, column: str) -> Any | None:
        """Least and greatest value of a column, where no value is missing.

        Returns
        -------
        found : pyarrow.Array of length 2 or None
            None when a value is missing, or when only reading the rows can tell.
        """
        return None

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
        """Leave the open file behind."""
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
    """A column whose first rows are numbers, dates or truth values holds a text further down.

    Attributes
    ----------
    column : str
    """

    def __init__(self, message: str, column: str) -> None:
        super().__init__(message)
        self.column = column

    def __reduce__(self) -> Any:
        return type(self), (str(self), self.column)


def check_names(schema: Any, name: str) -> Any:
    """Refuse a table that has a column name twice, or no columns."""
    names = schema.names
    twice = sorted(column for column, count in Counter(names).items() if count > 1)
    if twice:
        raise BadRowsError(
            f"{name} has more than one column named {some(twice)}; give each column its own name."
        )
    if not names:
        raise BadRowsError(f"{name} has no columns; a table needs at least one feature column.")
    return schema


def with_text(table: Any) -> Any:
    """A table or batch whose text is UTF-8.

    pyarrow's readers of Parquet and JSON take any bytes for text, and others then fail over them.

    Raises
    ------
    pyarrow.ArrowInvalid
        Where a text is none.
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


def take_rows(table: Any, places: Any) -> Any:
    """Rows of a table or batch by increasing numbers.

    pyarrow takes none of views of text, as polars has; these become plain text first, of the rows
    from the first to the last that are wanted.
    """
    if len(places) and any(str(kind) == "string_view" for kind in table.schema.types):
        numbers = np.asarray(places)
        first = int(numbers[0])
        table = table.slice(first, int(numbers[-1]) + 1 - first)
        arrays = [
            column.cast(pa.large_string()) if str(column.type) == "string_view" else column
            for column in table.columns
        ]
        table = type(table).from_arrays(arrays, names=table.schema.names)
        places = numbers - first
    return table.take(places)
