"""Arrow (Feather) files mapped into memory, and pyarrow data sets read batch by batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from biglp._files.local import FileStamp
from biglp._rows.options import ReadOptions
from biglp._tables.parquet import STREAM_BYTES
from biglp._tables.source import TableFormat
from biglp._tables.table import BATCH_ROWS, TableFile, check_names, pieces


class ArrowTable(TableFile):
    """One Arrow IPC file, also known as Feather version 2; record batches are the parts."""

    kind = "Arrow"
    part_word = "record batch"

    def __init__(self, path: str, options: ReadOptions, like: TableFile | None = None) -> None:
        self.name = self._path = path
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
        try:
            batch = self._open(columns).get_batch(part)
            batch.validate(full=True)  # a damaged file may name places outside its buffers
            return batch
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
        mapped = self._handle
        if mapped is None:
            if self.stamp is not None and self.stamp.elsewhere:
                self.stamp.check()
            mapped = pa.memory_map(self._path if self.stamp is None else self.stamp.path)
            self._handle = mapped if self._stays_open else None
        return pa.ipc.open_file(mapped, options=options)


class ArrowFormat(TableFormat):
    """Arrow files."""

    name = ArrowTable.kind
    table = ArrowTable


ARROW = ArrowFormat()


READ_AHEAD = {"batch_readahead": 2, "fragment_readahead": 1}
"""pyarrow holds some 16 batches of each of 4 files by default."""


class DatasetTable(TableFile):
    """A data set of any file format and file system, with its filter and partition columns."""

    kind = "a pyarrow dataset"
    slow = True

    def __init__(self, dataset: Any) -> None:
        self.name = "pyarrow dataset"
        self.stamp = None
        self.part_rows = []
        self._dataset = dataset
        self.schema = check_names(dataset.schema, self.name)
        self.n_rows_guess = dataset.count_rows()
        self._lean = None
        if isinstance(getattr(dataset, "format", None), ds.ParquetFileFormat):
            # As in parquet.py: by default, all that was read of a file is held until its end.
            self._lean = ds.ParquetFragmentScanOptions(
                use_buffered_stream=True, buffer_size=STREAM_BYTES, pre_buffer=False
            )

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """Read the files in order, these columns only."""
        # One thread: with more, a slow consumer lets batches pile up in memory.
        scanner = self._dataset.scanner(
            columns=list(columns),
            batch_size=BATCH_ROWS,
            use_threads=False,
            fragment_scan_options=self._lean,
            **READ_AHEAD,
        )
        return scanner.to_batches()
