"""pyarrow data sets: read batch by batch, and converted once to raw rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow.dataset as ds

from biglp._sources.formats.parquet import STREAM_BYTES
from biglp._sources.tables.table import BATCH_ROWS, TableFile, check_names

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
