"""A first look at some rows of an input: what reading it costs, and rows to try a method on."""

from __future__ import annotations

import io
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np

from biglp._core.arrays import Rows
from biglp._sources.base import table_bytes

SPARSE_BYTES = 160 << 20
from biglp._jobs.inputs import Inputs
from biglp._sources import ReadOptions, Source, as_source
from biglp._sources.formats.textfiles import guess_rows, open_text
from biglp._sources.naming import LIBSVM, find_files
from biglp._sources.opening import open_tables

HEAD_ROWS = 50_000
HEAD_BYTES = 64 << 20
LIBSVM_BYTES = 4 << 20
FETCHED_ROWS = 200
RAW_BYTES_PER_SECOND = 1.5e9
"""Writing and reading back converted rows."""


@dataclass(frozen=True)
class Probe:
    """Some rows of an input, and what reading all of them costs.

    Attributes
    ----------
    source : Source
        Rows to try things on.
    n_rows : int
        Rows of the whole input; a guess unless ``exact``.
    convert_seconds : float
        Time of the conversion before the first sweep.
    read_seconds : float
        Time of one pass over the rows when they are not in memory.
    fetch_seconds : float
        Time to fetch one row from anywhere.
    decoding : int
        Memory that decoding takes.
    missing : dict of str to int
        Missing values of each column in the first ``looked_at`` rows.
    categories : dict of str to int
        Different texts of each text column in these rows.
    """

    source: Source
    n_rows: int
    exact: bool
    looked_at: int
    convert_seconds: float = 0.0
    read_seconds: float = 0.0
    fetch_seconds: float = 0.0
    decoding: int = 0
    missing: dict[str, int] = field(default_factory=dict)
    categories: dict[str, int] = field(default_factory=dict)


def probe(inputs: Inputs, options: ReadOptions, wanted_rows: int = 1 << 19) -> Probe:
    """Look at an input without converting it.

    Parameters
    ----------
    inputs : Inputs
        The rows.
    options : ReadOptions
        How to read them.
    wanted_rows : int
        Rows to try things on, where they need not be held in memory.
    """
    if inputs.is_table:
        return _table(inputs, options)
    if inputs.ending in LIBSVM:
        return _libsvm(find_files(inputs.paths)[0])
    return _rows_by_position(as_source(inputs.paths), wanted_rows)


class Slice(Source):
    """A run of rows of another source."""

    def __init__(self, inner: Source, first: int, n_rows: int) -> None:
        self._inner, self._first = inner, first
        self.n_rows, self.n_features, self.dtype = n_rows, inner.n_features, inner.dtype

    def read(self, start: int, stop: int) -> Rows:
        """Read from the middle of the other source."""
        return self._inner.read(self._first + start, self._first + stop)

    def take(self, indices: np.ndarray) -> Rows:
        """Read from the middle of the other source."""
        return self._inner.take(np.asarray(indices) + self._first)


def _rows_by_position(source: Source, wanted: int) -> Probe:
    """Rows that are read where they are: one pass over a part tells the time of all."""
    most = max(HEAD_BYTES * 4 // (source.n_features * source.dtype.itemsize), 1)
    n_rows = min(source.n_rows, wanted, most)
    part = Slice(source, (source.n_rows - n_rows) // 2, n_rows)
    each = max((4 << 20) // (source.n_features * source.dtype.itemsize), 1)
    began, missing = time.perf_counter(), 0
    for start in range(0, n_rows, each):
        rows = part.read(start, min(start + each, n_rows))
        if start == 0 and rows.dtype.kind == "f":
            missing = int(np.isnan(rows).sum())
    read = time.perf_counter() - began
    chosen = np.unique(np.random.default_rng(0).integers(source.n_rows, size=FETCHED_ROWS))
    began = time.perf_counter()
    source.take(chosen)
    fetch = (time.perf_counter() - began) / len(chosen)
    return Probe(
        source=part,
        n_rows=source.n_rows,
        exact=True,
        looked_at=min(each, n_rows),
        read_seconds=read * source.n_rows / n_rows,
        fetch_seconds=fetch,
        missing={"values": missing} if missing else {},
    )


def _table(inputs: Inputs, options: ReadOptions) -> Probe:
    from biglp._sources.tables.arrow_columns import encode
    from biglp._sources.tables.columns import make_encoding
    from biglp._sources.tables.missing import MissingTally
    from biglp._sources.tables.table import stream

    files = open_tables(find_files(inputs.paths), options)
    heads = [_head(file) for file in files[:1]]
    encoding = make_encoding(heads, options)
    width = encoding.n_features
    most = max(HEAD_BYTES // (8 * width), 1)
    missing, done = MissingTally(), 0
    holes: dict[str, int] = {}
    parts: list[np.ndarray] = []
    began = time.perf_counter()
    for batch in stream(heads, encoding.columns or ()):
        batch = batch.slice(0, most - done)
        buffer = np.empty((width, batch.num_rows), dtype=encoding.dtype)
        encode(encoding, batch, buffer, done, missing)
        for name in encoding.columns or ():
            holes[name] = holes.get(name, 0) + _holes(batch.column(name))
        parts.append(np.ascontiguousarray(buffer.T))
        done += batch.num_rows
        if done >= min(most, HEAD_ROWS):
            break
    seconds = time.perf_counter() - began
    rows = np.concatenate(parts)
    if rows.dtype.kind == "f":
        rows = np.nan_to_num(rows, copy=False)
    n_rows = sum(file.n_rows_guess for file in files)
    size = n_rows * width * rows.dtype.itemsize
    convert = seconds * n_rows / done + size / RAW_BYTES_PER_SECOND
    return Probe(
        source=as_source(rows),
        n_rows=n_rows,
        exact=bool(files[0].part_rows),
        looked_at=done,
        convert_seconds=convert if files[0].slow else 0.0,
        read_seconds=size / RAW_BYTES_PER_SECOND if files[0].slow else convert,
        decoding=table_bytes(n_rows, encoding.n_inputs),
        missing={name: count for name, count in holes.items() if count},
        categories={name: len(values) for name, values in encoding.categories.items()},
    )


def _holes(column: Any) -> int:
    """Missing values of an Arrow column: null or NaN."""
    import pyarrow as pa
    import pyarrow.compute as pc

    count = int(column.null_count)
    if pa.types.is_floating(column.type):
        count += int(pc.sum(pc.is_nan(column)).as_py() or 0)
    return count


def _head(file: Any) -> Any:
    """The first rows of a table file, as a table file."""
    from biglp._sources.tables.table import BATCH_ROWS, TableFile

    batches = -(-HEAD_ROWS // BATCH_ROWS) + 1

    class Head(TableFile):
        kind, part_word, slow = file.kind, file.part_word, file.slow

        def __init__(self) -> None:
            self.name, self.stamp, self.schema = file.name, file.stamp, file.schema
            self.part_rows, self.n_rows_guess = [], file.n_rows_guess

        def batches(self, columns: Sequence[str]) -> Iterator[Any]:
            return islice(file.batches(columns), batches)

        def text_example(self, column: str) -> str:
            return str(file.text_example(column))

    return Head()


def _libsvm(path: str) -> Probe:
    from sklearn.datasets import load_svmlight_file

    with open_text(path) as file:
        text = file.read(LIBSVM_BYTES)
    text = text[: text.rfind(b"\n") + 1] or text
    began = time.perf_counter()
    rows, _ = load_svmlight_file(io.BytesIO(text))
    seconds = time.perf_counter() - began
    n_rows = guess_rows(path, Inputs((path,)).size)
    scale = n_rows / rows.shape[0]
    size = scale * rows.nnz * 12
    return Probe(
        source=as_source(rows),
        n_rows=n_rows,
        exact=False,
        looked_at=rows.shape[0],
        convert_seconds=scale * seconds + size / RAW_BYTES_PER_SECOND,
        read_seconds=size / RAW_BYTES_PER_SECOND,
        decoding=SPARSE_BYTES,
    )
