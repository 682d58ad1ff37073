"""The first rows of a table, decoded without converting it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np
from scipy import sparse

from biglp._core.arrays import Rows
from biglp._rows.arrays import ArraySource, CsrSource
from biglp._rows.encoding import Encoding
from biglp._rows.format import RAW_BYTES_PER_SECOND, SAMPLE_BYTES, Probe
from biglp._rows.options import ReadOptions
from biglp._rows.source import SPARSE_BYTES, Source, table_bytes
from biglp._sources.tables.arrow_columns import missing_in
from biglp._sources.tables.columns import make_encoding
from biglp._sources.tables.convert import row_bytes
from biglp._sources.tables.encode import encode, encode_sparse
from biglp._sources.tables.missing import MissingValues
from biglp._sources.tables.table import BATCH_ROWS, TableFile, page_bytes_of, stream
from biglp._sources.tables.tabular import feature_buffer

HEAD_ROWS, DECODED_ROWS = 50_000, 1 << 14
"""Rows that tell what columns hold, and rows of these that are made features."""
TALLIED = 0.4
"""Share of the time of looking at columns that is taken for all rows: counting categories."""


class Head(TableFile):
    """The first rows of a table file, as a table file."""

    kind = "table"

    def __init__(self, file: TableFile) -> None:
        self._file = file
        self.name, self.stamp, self.schema = file.name, file.stamp, file.schema
        self.part_rows, self.n_rows_guess = [], file.n_rows_guess

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """Yield the first batches."""
        return islice(self._file.batches(columns), -(-HEAD_ROWS // BATCH_ROWS) + 1)

    def first(self, columns: Sequence[str]) -> Any:
        """The first row."""
        return next(self.batches(columns)).slice(0, 1)

    def text_example(self, column: str) -> str:
        """Say where a column holds text."""
        return self._file.text_example(column)


def probe_table(files: Sequence[TableFile], options: ReadOptions) -> Probe:
    """Decode the first rows of the first file; all rows take as much longer.

    Parameters
    ----------
    files : sequence of TableFile
    options : ReadOptions
        Which columns are features, and how they become numbers.
    """
    head = Head(files[0])
    began = time.process_time()
    encoding = make_encoding([head], options)
    if words := encoding.words_from is not None:
        encode_sparse(encoding, head.first(encoding.names), 0, MissingValues())  # loads libraries
    looking = time.process_time() - began
    columns, width = encoding.names, encoding.n_features
    most = max(SAMPLE_BYTES // (row_bytes(encoding) if words else 8 * width), 1)
    counts = dict.fromkeys(columns, 0)
    parts: list[Rows] = []
    done = 0
    began = time.process_time()
    for batch in stream([head], columns):
        batch = batch.slice(0, most - done)
        if words:
            parts.append(encode_sparse(encoding, batch, done, MissingValues()))
        else:
            buffer = feature_buffer(encoding, batch.num_rows)
            encode(encoding, batch, buffer, done, MissingValues())
            parts.append(np.ascontiguousarray(buffer.T))
        for name in columns:
            counts[name] += missing_in(batch.column(name))
        done += batch.num_rows
        if done >= min(most, DECODED_ROWS):
            break
    seconds = time.process_time() - began
    source = _source_of(parts, encoding)
    n_rows = sum(file.n_rows_guess for file in files)
    size = n_rows * row_bytes(encoding)
    decode = seconds * n_rows / done + size / RAW_BYTES_PER_SECOND
    pages = page_bytes_of(files)
    looking *= 1.0 + TALLIED * max(n_rows / HEAD_ROWS - 1.0, 0.0)
    return Probe(
        source=source,
        n_rows=n_rows,
        exact=bool(files[0].part_rows),
        looked_at=done,
        convert_seconds=looking + (decode if files[0].slow else 0.0),
        read_seconds=size / RAW_BYTES_PER_SECOND if files[0].slow else decode,
        decoding=SPARSE_BYTES if words else table_bytes(n_rows, encoding.n_inputs, pages),
        missing={name: count for name, count in counts.items() if count},
        uses={column.name: column.describe() for column in encoding.columns or ()},
        left_out=encoding.left_out,
    )


def _source_of(parts: list[Rows], encoding: Encoding) -> Source:
    """The rows that were decoded, as a source in memory."""
    if encoding.words_from is not None:
        words = CsrSource(sparse.vstack(parts, format="csr"))
        words.words_from = encoding.words_from
        return words
    rows = np.concatenate(parts)
    return ArraySource(np.nan_to_num(rows, copy=False) if rows.dtype.kind == "f" else rows)
