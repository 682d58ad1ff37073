"""Parquet files: row groups are the parts, columns are decoded one by one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from biglp._files.local import FileStamp
from biglp._rows.options import ReadOptions
from biglp._tables.source import TableFormat
from biglp._tables.table import BATCH_ROWS, TableFile, check_names, with_text

STREAM_BYTES = 1 << 16
"""What is read of a column at a time when a table is streamed."""
VALUE_BYTES = 4
"""What a number takes at least, however well it is packed in the file."""
BATCH_BYTES = 8 << 20
"""Rows of many numbers are decoded so many bytes at a time, where this is fewer of them."""
PAGE_BYTES = 1 << 20
"""Most writers let a page grow to this, unpacked."""
PAGES_HELD = 1.5
"""Pages of a column that are in memory, measured: 1.0 to 1.1 with pyarrow 26, up to 1.4 with 18,
where some are there packed as well."""
NUMBER = b"\x15"
"""What stands before a number of a page's header."""


class ParquetTable(TableFile):
    """One Parquet file."""

    kind = "Parquet"
    part_word = "row group"
    slow = True
    stamp: FileStamp

    def __init__(self, path: str, options: ReadOptions, like: TableFile | None = None) -> None:
        self.name = path
        self.stamp = FileStamp.of(path)
        self._metadata: Any = None
        try:
            with self._open() as file:
                self.schema = check_names(file.schema_arrow, self.name)
                metadata = file.metadata
        except (pa.ArrowException, OSError) as error:
            raise self.unreadable(error) from error
        groups = [metadata.row_group(group) for group in range(metadata.num_row_groups)]
        self.part_rows = [group.num_rows for group in groups]
        width = 0
        for field in self.schema:
            try:
                width += max(int(field.type.bit_width) // 8, 1)
            except ValueError:  # text: a guess
                width += 16
        sizes = [max(group.total_byte_size, group.num_rows * width) for group in groups]
        self.part_bytes = max(sizes, default=0)
        self.n_rows_guess = metadata.num_rows
        paths = metadata.schema  # such as emb.list.element
        self._indices = {paths.column(index).path: index for index in range(len(paths))}
        self._metadata = metadata

    def read_part(self, part: int, columns: Sequence[str]) -> Any:
        """Decode the columns of one row group."""
        try:
            with self._open() as file:
                # One thread: several row groups are decoded at once by the engine's workers.
                table = file.read_row_group(part, columns=list(columns), use_threads=False)
                return with_text(table)
        except (pa.ArrowException, OSError) as error:
            raise self.unreadable(error, part) from error

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """Decode a few rows at a time, so that large row groups need little memory."""
        wanted = set(columns)
        with self._open(STREAM_BYTES) as file:
            indices = self._indices.items()
            chosen = [index for path, index in indices if wanted & {path, path.partition(".")[0]}]
            for part in range(len(self.part_rows)):
                try:
                    # Fewer rows at once where they hold long lists.
                    size = 0
                    for stored in _described(file, part, chosen):
                        size += max(stored.total_uncompressed_size, stored.num_values * VALUE_BYTES)
                    fitting = BATCH_BYTES * self.part_rows[part] // max(size, 1)
                    for batch in file.iter_batches(
                        batch_size=max(min(fitting, BATCH_ROWS), 1),
                        row_groups=[part],
                        columns=list(columns),
                    ):
                        yield with_text(batch)
                except (pa.ArrowException, OSError) as error:
                    raise self.unreadable(error, part) from error

    @cached_property
    def extremes(self) -> dict[str, Any]:
        """By the statistics of all row groups, which do not count NaN.

        Of all columns at once: a file of thousands takes long to open.
        """
        plain = {field.name for field in self.schema if not pa.types.is_floating(field.type)}
        indices = {name: index for name, index in self._indices.items() if name in plain}
        ranges: dict[str, list[Any]] = {name: [] for name in indices}
        try:
            with self._open(STREAM_BYTES) as file:
                for part in range(len(self.part_rows)):
                    stored = _described(file, part, list(indices.values()))
                    for name, column in zip(indices, stored, strict=True):
                        known = column.statistics if name in ranges else None
                        if (
                            known is None
                            or not (known.has_null_count and known.has_min_max)
                            or known.null_count
                        ):
                            ranges.pop(name, None)
                        else:
                            ranges[name] += [known.min, known.max]
        except (pa.ArrowException, OSError, ValueError):
            return {}  # damaged, as the reading will say
        ends: dict[str, Any] = {}
        for name, values in ranges.items():
            with suppress(pa.ArrowException, TypeError, ValueError):  # stored as another type
                if values:
                    kind = self.schema.field(name).type
                    ends[name] = pa.array([min(values), max(values)], type=kind)
        return ends

    @cached_property
    def page_bytes(self) -> int:  # type: ignore[override]
        """What a page of a column holds on the mean: decoding unpacks one of every column.

        Writers cut pages by their bytes or by their rows, which the first of the largest column
        tells in both cases.
        """
        try:
            with self._open(STREAM_BYTES) as file:
                stored = _described(file, 0, list(self._indices.values()))
        except (IndexError, pa.ArrowException, OSError, ValueError):
            return 0  # without rows, or damaged, as the reading will say
        sizes = [column.total_uncompressed_size for column in stored]
        largest = stored[sizes.index(max(sizes))]
        # The unpacked size of a page is the second number of its header. Each number stands behind
        # a byte that tells its type, in groups of seven bits, the lowest first, its sign in the
        # last of them.
        handle = self._handle or pa.OSFile(self.stamp.path)
        header = handle.read_at(8, largest.data_page_offset)
        page = PAGE_BYTES
        if header[:1] == header[2:3] == NUMBER:
            number = 0
            for group, byte in enumerate(header[3:]):
                number |= (byte & 127) << 7 * group
                if byte < 128:
                    page = number >> 1
                    break
        return int(PAGES_HELD * sum(min(size, page) for size in sizes) / len(sizes))

    def _open(self, buffer_bytes: int = 0) -> Any:
        """A reader of the file; threads may read from it at once, each with one of its own."""
        file = self._handle
        if file is None:
            if self.stamp.elsewhere:
                self.stamp.check()
            file = pa.OSFile(self.stamp.path)
            if self._stays_open:
                self._handle = file
        # With pre_buffer, pyarrow holds on to everything it has read. Without a buffer it reads
        # the columns of a whole row group at once: 590 MB instead of 80 for 1 M rows × 100.
        return pq.ParquetFile(
            file,
            metadata=self._metadata,
            pre_buffer=False,
            buffer_size=buffer_bytes,
            page_checksum_verification=True,
        )

    def __getstate__(self) -> dict[str, Any]:
        """Leave the file and its footer behind; they are read again where they are needed."""
        state = {name: value for name, value in self.__dict__.items() if name != "extremes"}
        return {**state, "_metadata": None, "_handle": None}


def _described(file: Any, part: int, indices: list[int]) -> list[Any]:
    """What the footer says of columns of a row group.

    Asked for the description of a damaged column, pyarrow aborts the process. Its readers raise an
    error instead, so one is made first, of no rows, which decodes nothing. Without columns it would
    divide by zero, which ends the process too.
    """
    if not indices:
        return []
    for _ in file.reader.iter_batches(0, row_groups=[part], column_indices=indices):
        break
    group, schema = file.metadata.row_group(part), file.metadata.schema
    columns = [group.column(index) for index in indices]
    for column, index in zip(columns, indices, strict=True):
        if column.physical_type != schema.column(index).physical_type:
            raise pa.ArrowInvalid(f"{column.path_in_schema}: stored as {column.physical_type}")
    return columns


PARQUET = TableFormat(ParquetTable)
