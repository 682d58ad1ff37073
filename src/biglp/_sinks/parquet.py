"""Answers as one Parquet table."""

from __future__ import annotations

from typing import Any

import pyarrow.parquet as pq

from biglp._sinks.table import TableSink, class_columns


class ParquetSink(TableSink):
    """Answers as a Parquet table, a row group at a time."""

    def _writer(self, file: Any, schema: Any) -> Any:
        return pq.ParquetWriter(
            file,
            schema,
            # Random digits do not repeat; counting rows is packed as differences of one.
            use_dictionary=class_columns(schema) or False,
            column_encoding={"row": "DELTA_BINARY_PACKED"},
        )
