"""A table's rows as numbers, read from any row to any row.

Columns are copied into the rows of a (features, rows) buffer, which is then transposed: that is
faster than filling a (rows, features) buffer by columns, and the rows have the same layout, hence
the same sums to the last bit, as those of a ``.npy`` file. Embeddings lie in rows already.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy import sparse

from biglp._core.arrays import Rows
from biglp._core.errors import InputWarning, OutputError, ParameterError, warn_caller
from biglp._core.memory import format_bytes
from biglp._core.progress import Progress, Task
from biglp._rows.arrays import ArraySource, CsrSource
from biglp._rows.cache import CachedSource, CacheStore, CsrWriter, NpyWriter, no_room
from biglp._rows.encoding import Encoding, some
from biglp._rows.format import (
    RAW_BYTES_PER_SECOND,
    SAMPLE_BYTES,
    FileFacts,
    Format,
    LabelColumns,
    LabelPiece,
    Probe,
)
from biglp._rows.options import ReadOptions
from biglp._rows.prepared import PartCache
from biglp._rows.source import (
    SPARSE_BYTES,
    FileSource,
    Source,
    explained_reading,
    no_rows,
    table_bytes,
)
from biglp._tables.detect_kinds import first_rows
from biglp._tables.encode_columns import encode, encode_sparse, make_encoding, ready_rows
from biglp._tables.kinds import (
    Column,
    Embedding,
    Frequency,
    MissingValues,
    Number,
    OneHot,
    missing_in,
    text,
)
from biglp._tables.side_columns import labels_in_columns
from biglp._tables.table import (
    BATCH_ROWS,
    MixedColumnError,
    TableFile,
    page_bytes_of,
    stream,
    take_rows,
    with_partitions,
)

# --------------------------------------------------------------------------------------------------
# How the columns of a new table differ from those that a model was fitted on.


NAMED = 3
"""Unknown categories that are named."""


def compare_columns(files: Sequence[TableFile], encoding: Encoding) -> dict[str, Any]:
    """Compare the first rows of a table with the facts that an encoding has kept.

    Returns
    -------
    drift : dict
        ``rows`` that were compared and, of each column that differs at all, the share of its
        ``missing`` values beside that of the training rows (``missing_before``), of numbers
        ``outside`` their range, and of ``unknown`` categories with a few of them (``examples``).
        JSON values only.
    """
    known = [column for column in encoding.columns or () if column.name in encoding.facts]
    if not known:  # embeddings, or a model of an earlier release
        return {}
    table = first_rows(files, [column.name for column in known]).table
    columns = {}
    for column in known:
        values = table.column(column.name)
        found = _figures(column, encoding.facts[column.name], values)
        if found:
            columns[column.name] = found
    return {"rows": table.num_rows, "columns": columns}


def _figures(column: Column, facts: dict[str, float], values: Any) -> dict[str, Any]:
    n_rows, found = max(len(values), 1), dict[str, Any]()
    missing, before = missing_in(values) / n_rows, facts["missing"]
    if isinstance(column, Number):
        numbers = column.numbers(values).astype(np.float64, copy=False)
        missing = float(np.isnan(numbers).mean())
        if "low" in facts:
            with np.errstate(invalid="ignore"):
                outside = ((numbers < facts["low"]) | (numbers > facts["high"])).mean()
            if outside > 0:
                found = {"outside": round(float(outside), 6)}
                found |= {"low": facts["low"], "high": facts["high"]}
    whole = isinstance(column, OneHot)
    if isinstance(column, Frequency):
        whole = len(column.categories) == column.n_levels
    if whole:
        unknown = _unknown(column, values)
        if len(unknown):
            examples = unknown.unique()[:NAMED].to_pylist()
            found |= {"unknown": round(len(unknown) / n_rows, 6), "examples": examples}
    if missing > before:
        found |= {"missing": round(missing, 6), "missing_before": before}
    return found


def _unknown(column: Any, values: Any) -> Any:
    """Values that are no category of the column, missing ones left aside."""
    words = text(values).drop_null()
    known = pc.is_in(words, value_set=pa.array(column.categories, type=pa.string()))
    return words.filter(pc.invert(known))


# --------------------------------------------------------------------------------------------------


class TabularSource(FileSource):
    """Rows of one or more files that can be read part by part.

    Parameters
    ----------
    files : sequence of TableFile
        Files of one table, in order.
    encoding : Encoding
        How columns become features.
    name : str
        What messages call the table.
    """

    kind = "table"
    encoding: Encoding

    def __init__(self, files: Sequence[TableFile], encoding: Encoding, name: str) -> None:
        self.name = name
        self._files = tuple(files)
        self.encoding = encoding
        self.feature_names = encoding.feature_names
        self.words_from = encoding.words_from
        self.is_sparse = encoding.words_from is not None
        self.stamps = tuple(file.stamp for file in files if file.stamp is not None)
        self._parts = [
            (number, part)
            for number, file in enumerate(files)
            for part, rows in enumerate(file.part_rows)
            if rows
        ]
        rows = [files[number].part_rows[part] for number, part in self._parts]
        self._bounds = np.concatenate([[0], np.cumsum(rows, dtype=np.int64)])
        self.n_rows = int(self._bounds[-1])
        self.n_features = encoding.n_features
        self.dtype = np.dtype(encoding.dtype)
        self.part_bytes = max(file.part_bytes for file in files)
        if self.stamps:  # a data frame is in memory and is not decoded
            pages = page_bytes_of(files)
            self.decoding_bytes = table_bytes(self.n_rows, encoding.n_inputs, pages)
        self._held = PartCache()

    def compare_columns(self) -> dict[str, Any]:
        """Compare the first rows with the training rows."""
        return compare_columns(self._files, self.encoding)

    def read(self, start: int, stop: int) -> Rows:
        """Decode rows ``start`` to ``stop`` (exclusive)."""
        if self.is_sparse:
            return self._read_sparse(start, stop)
        spans = list(self._spans(start, stop))
        if len(spans) == 1:
            part, low, high = spans[0]
            batch = self._part(part).slice(low - int(self._bounds[part]), high - low)
            ready = ready_rows(self.encoding, batch)
            if ready is not None:
                return ready
        out = feature_buffer(self.encoding, stop - start)
        missing = MissingValues()
        for part, low, high in spans:
            first = int(self._bounds[part])
            batch = self._part(part).slice(low - first, high - low)
            encode(self.encoding, batch, out[:, low - start : high - start], low, missing)
            del batch  # let go of this part before the next one is decoded
        if missing.counts:
            raise missing.error(self.name, whole=False)
        return np.ascontiguousarray(out.T)

    def take(self, indices: np.ndarray) -> Rows:
        """Decode the rows at increasing ``indices``, each part once."""
        indices = np.asarray(indices, dtype=np.int64)
        if self.is_sparse:
            return self._take_sparse(indices)
        out = feature_buffer(self.encoding, len(indices))
        missing = MissingValues()
        cuts = np.searchsorted(indices, self._bounds)
        for part in np.flatnonzero(np.diff(cuts)):
            low, high = int(cuts[part]), int(cuts[part + 1])
            batch = take_rows(self._part(int(part)), indices[low:high] - self._bounds[part])
            encode(self.encoding, batch, out[:, low:high], indices[low:high], missing)
            del batch
        if missing.counts:
            raise missing.error(self.name, whole=False)
        return np.ascontiguousarray(out.T)

    def _read_sparse(self, start: int, stop: int) -> Rows:
        missing, parts = MissingValues(), []
        for part, low, high in self._spans(start, stop):
            first = int(self._bounds[part])
            batch = self._part(part).slice(low - first, high - low)
            parts.append(encode_sparse(self.encoding, batch, low, missing))
            del batch
        return self._stacked(parts, missing)

    def _take_sparse(self, indices: np.ndarray) -> Rows:
        missing, parts = MissingValues(), []
        cuts = np.searchsorted(indices, self._bounds)
        for part in np.flatnonzero(np.diff(cuts)):
            chosen = indices[int(cuts[part]) : int(cuts[part + 1])]
            batch = take_rows(self._part(int(part)), chosen - self._bounds[part])
            parts.append(encode_sparse(self.encoding, batch, chosen, missing))
            del batch
        return self._stacked(parts, missing)

    def _stacked(self, parts: list[Rows], missing: MissingValues) -> Rows:
        if missing.counts:
            raise missing.error(self.name, whole=False)
        return parts[0] if len(parts) == 1 else sparse.vstack(parts, format="csr")

    def _spans(self, start: int, stop: int) -> Iterator[tuple[int, int, int]]:
        first = int(np.searchsorted(self._bounds, start, side="right")) - 1
        for part in range(first, len(self._parts)):
            low, high = int(self._bounds[part]), int(self._bounds[part + 1])
            if low >= stop:
                return
            yield part, max(low, start), min(high, stop)

    def _part(self, index: int) -> Any:
        number, part = self._parts[index]
        columns = self.encoding.names
        return self._held.get(index, lambda: self._files[number].read_part(part, columns))


def feature_buffer(encoding: Encoding, n_rows: int) -> np.ndarray:
    """Return an empty (features, rows) array in the layout that is quicker to fill and transpose.

    Where most features come from lists of numbers, each row is in one piece. Elsewhere columns are,
    and as those whose distance is a power of two would all fall on the same few cache lines, there
    is a small gap between them, which makes transposing the array six times as fast.
    """
    dtype, n_features = np.dtype(encoding.dtype), encoding.n_features
    if n_features > 2 * encoding.n_inputs and _from_lists(encoding) > n_features // 2:
        return np.empty((n_rows, n_features), dtype=dtype).T
    return np.empty((n_features, n_rows + 16), dtype=dtype)[:, :n_rows]


def _from_lists(encoding: Encoding) -> int:
    columns = encoding.columns or ()
    return sum(column.width for column in columns if isinstance(column, Embedding))


# --------------------------------------------------------------------------------------------------
# Tables converted once to raw rows, where the disk has room.


GUESSED_WORDS = 100
"""Different words of a text, for the disk space."""
logger = logging.getLogger("biglp")


def convert(
    store: CacheStore, files: Sequence[TableFile], encoding: Encoding, progress: Progress | None
) -> str | None:
    """Convert a table to raw rows.

    Returns
    -------
    problem : str or None
        Why a table that can also be read part by part was not converted: the disk is full.

    Raises
    ------
    OutputError
        When the disk is full and the table can only be streamed.
    """
    in_parts = bool(files[0].part_rows)
    n_rows = sum(file.n_rows_guess for file in files)
    needed = n_rows * row_bytes(encoding)
    shortage = store.shortage(needed)
    if shortage is not None and not in_parts:
        raise no_room(store.name, shortage)
    if shortage is not None:
        return shortage
    size = format_bytes(needed)
    logger.info("%s: converting to raw rows (%s) in %s", store.name, size, store.path)
    try:
        with (progress or Progress()).task(f"converting {files[0].name}", n_rows) as task:
            store.build(partial(_write_rows, files, encoding, store.name, task))
    except OutputError as error:
        if not in_parts:
            raise
        return str(error)
    return None


def row_bytes(encoding: Encoding) -> int:
    """What a row takes on disk; of a text only a guess can be made before it is read."""
    itemsize = np.dtype(encoding.dtype).itemsize
    if encoding.words_from is None:
        return encoding.n_features * itemsize
    words = GUESSED_WORDS * sum(column.sparse for column in encoding.columns or ())
    return (encoding.words_from + words) * (itemsize + 4)


def _write_rows(
    files: Sequence[TableFile], encoding: Encoding, name: str, task: Task, folder: Path
) -> Encoding:
    """Stream a table into ``rows.npy``; missing values are counted to the end, then refused."""
    missing, done = MissingValues(), 0
    dtype, width = np.dtype(encoding.dtype), encoding.n_features
    writer = (
        NpyWriter(folder / "rows.npy", dtype, (width,))
        if encoding.words_from is None
        else CsrWriter(folder, width, dtype)
    )
    with (
        writer as rows,
        ThreadPoolExecutor(1, "biglp-write") as disk,  # writes one batch while the next is decoded
    ):
        writing: Future[None] | None = None
        for batch in stream(files, encoding.names):
            found = _decoded(encoding, batch, done, missing)
            if writing is not None:
                writing.result()
            if not missing.counts:
                writing = disk.submit(rows.append, found)
            done += batch.num_rows
            task.advance(batch.num_rows)
        if writing is not None:
            writing.result()
    for file in files:  # what is kept must be what the stamps in its name say
        if file.stamp is not None:
            file.stamp.check()
    if missing.counts:
        raise missing.error(name)
    if done == 0:
        raise no_rows(name)
    return encoding


def _decoded(encoding: Encoding, batch: Any, first: int, missing: MissingValues) -> Rows:
    """Rows of a batch, sparse where some of its columns are."""
    if encoding.words_from is not None:
        return encode_sparse(encoding, batch, first, missing)
    ready = ready_rows(encoding, batch)
    if ready is not None:
        return ready
    buffer = feature_buffer(encoding, batch.num_rows)
    encode(encoding, batch, buffer, first, missing)
    return buffer.T


# --------------------------------------------------------------------------------------------------
# The first rows of a table, decoded without converting it.


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


# --------------------------------------------------------------------------------------------------
# Formats of tables: what Parquet, Arrow and delimited text have in common.


MOST_OPEN = 64
"""Files of a table that are kept open; a system allows a process about a thousand."""


class TableFormat(Format):
    """A format with named columns.

    Its methods are given the open files of a table (:meth:`InputFiles.tables`) where those of other
    formats are given names; only labels come from files that nothing else has opened.

    Attributes
    ----------
    table : type of TableFile
        Opens one file; called with its path, the options, and the first file of the same table.
    """

    table: Callable[..., TableFile]
    names_labels = True

    def open_files(self, files: Sequence[str], options: ReadOptions) -> list[TableFile]:
        """Open the files of one table."""
        tables: list[TableFile] = []
        for number, file in enumerate(files):
            with explained_reading(file):
                tables.append(self.table(file, options, *tables[:1]))
            if number >= MOST_OPEN:
                tables[-1].close()
        return tables

    def with_partitions(self, tables: Sequence[TableFile], options: ReadOptions) -> list[TableFile]:
        """Files of one table, with the columns that the names of their folders hold."""
        return with_partitions(tables, options)

    def open(self, tables: Sequence[TableFile], options: ReadOptions) -> FileSource:
        """Open a table, converting it first where that pays and the disk has room."""
        return open_tables(self.name, tables, options)

    def peek(self, tables: Sequence[TableFile], options: ReadOptions) -> FileFacts:
        """Say what files hold: their columns and number of rows."""
        if not any(table.n_rows_guess for table in tables):
            raise no_rows(tables[0].name)
        words = tables[0].words
        return FileFacts(
            kind=f"{self.name} ({words})" if words else self.name,
            files=tuple(table.name for table in tables),
            size=sum(table.stamp.size for table in tables if table.stamp is not None),
            n_rows=sum(table.n_rows_guess for table in tables),
            exact=bool(tables[0].part_rows),
            columns={field.name: str(field.type) for field in tables[0].schema},
            n_features=None,
            dtype=None,
            converted=tables[0].slow,
            page_bytes=page_bytes_of(tables),
        )

    def probe(self, tables: Sequence[TableFile], options: ReadOptions, wanted_rows: int) -> Probe:
        """Decode the first rows, to estimate how long decoding all of them takes."""
        return probe_table(tables, options)

    def count_rows(self, tables: Sequence[TableFile]) -> list[int]:
        """Count the rows of each file; text has to be read for that."""
        return [
            sum(table.part_rows)
            if table.part_rows
            else sum(batch.num_rows for batch in stream([table], table.schema.names[:1]))
            for table in tables
        ]

    def read_labels(
        self, files: Sequence[str], columns: LabelColumns, n_rows: int | None = None
    ) -> Iterator[LabelPiece]:
        """Yield a column of labels, of which only this column is read."""
        named = (columns.label, columns.weight, columns.id)
        asked = ReadOptions(drop=tuple(name for name in named if name is not None))
        return labels_in_columns(with_partitions(self.open_files(files, asked), asked), columns)


def open_tables(kind: str, tables: Sequence[TableFile], options: ReadOptions) -> FileSource:
    """Open the files of one table, converting them first where that pays and the disk has room.

    Parameters
    ----------
    kind : str
        Name of the format.
    tables : sequence of TableFile
    options : ReadOptions
    """
    stamps = tuple(table.stamp for table in tables if table.stamp is not None)
    name, in_parts = tables[0].name, bool(tables[0].part_rows)
    if len(tables) > 1:
        name += f" and {len(tables) - 1} more"
    n_rows = sum(table.n_rows_guess for table in tables)
    if n_rows == 0:
        raise no_rows(name)
    if in_parts and (options.cache == "never" or not tables[0].slow):
        encoding = make_encoding(tables, options)
        _tell(tables, options)
        return TabularSource(tables, encoding, name)
    if options.cache == "never":
        raise ParameterError(
            f"cache='never' cannot be used with {name}: {kind} cannot be read from the "
            "middle and must be converted once; use cache='auto' or name a folder."
        )
    store = CacheStore(name, stamps, options)
    found = store.find()
    tables, encoding, problem = (tables, found, None) if found else _convert(store, tables, options)
    _tell(tables, options)
    open_original = partial(TabularSource, tables, encoding, name) if in_parts else None
    if problem is not None and open_original is not None:
        logger.info("%s: not converted (%s); every sweep decodes it again", name, problem)
        return open_original()
    source = CachedSource(store, kind, stamps, encoding, open_original)
    if not source.is_sparse:
        pages = page_bytes_of(tables)
        source.decoding_bytes = table_bytes(source.n_rows, encoding.n_inputs, pages)
    if options.encoding is not None:  # new rows, compared with the training rows
        source.compare = partial(compare_columns, tables, encoding)
    return source


def _convert(
    store: CacheStore, tables: Sequence[TableFile], options: ReadOptions
) -> tuple[Sequence[TableFile], Encoding, str | None]:
    """Convert a table; a column in which a text turns up is read as text from its first row.

    Whether the text is found at the beginning of a file or later must make no difference. The
    table is returned as it was read.
    """
    while True:
        try:
            encoding = make_encoding(tables, options)
            return tables, encoding, convert(store, tables, encoding, options.progress)
        except MixedColumnError as error:
            if options.categorical != "auto" or options.encoding is not None:
                raise
            tables = [table.as_written(error.column) for table in tables]


def _tell(tables: Sequence[TableFile], options: ReadOptions) -> None:
    """Warn of what may not have been meant: guesses, and columns that the first file has not."""
    for table in tables:
        for remark in table.remarks:
            warn_caller(remark, InputWarning)
    if options.columns is not None or options.encoding is not None:
        return  # others are left out on purpose
    known = {*tables[0].schema.names, *options.drop}
    more = [(table, [n for n in table.schema.names if n not in known]) for table in tables]
    more = [(table, columns) for table, columns in more if columns]
    if more:
        table, columns = more[0]
        others = f", and {len(more) - 1} more files have such columns" if len(more) > 1 else ""
        warn_caller(
            f"{table.name} has {some(columns)}, which {tables[0].name} has not{others}; columns "
            "that the first file has not are left out.",
            InputWarning,
        )
