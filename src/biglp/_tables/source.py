"""A table's rows as numbers, read from any row to any row.

Columns are copied into the rows of a (features, rows) buffer, which is then transposed: that is
faster than filling a (rows, features) buffer by columns, and the rows have the same layout, hence
the same sums to the last bit, as those of a ``.npy`` file. Embeddings lie in rows already.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy import sparse

from biglp._core.arrays import Rows
from biglp._core.errors import BadRowsError, InputWarning, OutputError, ParameterError, warn_caller
from biglp._core.memory import format_bytes
from biglp._core.progress import Progress, Task
from biglp._rows.arrays import ArraySource, CsrSource
from biglp._rows.cache import CachedSource, CacheStore, CsrWriter, NpyWriter, no_room
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
    Encoding,
    Source,
    explained_reading,
    no_rows,
    some,
    table_bytes,
)
from biglp._tables.detect_kinds import first_rows
from biglp._tables.encode_columns import make_encoding
from biglp._tables.gaps import (
    absent_columns,
    as_model_expects,
    reads_text,
    refuse_gaps,
    tell_gaps,
)
from biglp._tables.kinds import (
    Embedding,
    Frequency,
    Number,
    OneHot,
    WrongRowsError,
    missing_in,
    number_type,
    numpy_type,
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

logger = logging.getLogger("biglp")
MOST_OPEN = 64
"""Files of a table that are kept open; a system allows a process about a thousand."""


# Tables converted once to raw rows, where that pays and the disk has room -------------------------


def open_tables(files: Sequence[TableFile], options: ReadOptions) -> Source:
    """Open the files of one table, converting them first where that pays."""
    stamps = tuple(table.stamp for table in files if table.stamp is not None)
    name, kind, in_parts = files[0].name, files[0].kind, bool(files[0].part_rows)
    if len(files) > 1:
        name += f" and {len(files) - 1} more"
    n_rows = sum(table.n_rows_guess for table in files)
    if not n_rows:
        raise no_rows(name)
    store: CacheStore | None = None  # of converted rows
    if not in_parts or (options.cache != "never" and files[0].slow):
        if options.cache == "never":
            raise ParameterError(
                f"cache='never' cannot be used with {name}: {kind} cannot be read from the "
                "middle and must be converted once; use cache='auto' or name a folder."
            )
        store = CacheStore(name, stamps, options)
    files, options = as_model_expects(files, options)
    encoding, problem = None if store is None else store.find(), None
    while encoding is None:
        try:
            encoding = make_encoding(files, options)
            if store is None and encoding.views and (options.cache == "auto" or stamps):
                # Texts are taken apart once, not in every sweep.
                store = None if options.cache == "never" else CacheStore(name, stamps, options)
                encoding = encoding if store is None else store.find() or encoding
            refuse_gaps(files, encoding, options)
            if store is None:
                break
            needed = n_rows * row_bytes(encoding)
            problem = store.shortage(needed)
            if problem is not None and not in_parts:
                raise no_room(store.name, problem)
            if problem is None:
                size = format_bytes(needed)
                logger.info("%s: converting to raw rows (%s) in %s", store.name, size, store.path)
                progress = options.progress or Progress()
                with progress.task(f"converting {files[0].name}", n_rows) as task:
                    store.build(partial(_write_rows, files, encoding, store.name, task))
        except MixedColumnError as error:
            # A column in which a text turns up is read as text from its first row: whether the
            # text is at the beginning of a file or later must make no difference.
            model = options.encoding
            column = None if model is None else model.column(error.column)
            if options.categorical != "auto" or (column is not None and not column.fills):
                raise
            encoding, files = None, [table.as_written(error.column) for table in files]
            if model is not None:
                options = replace(options, encoding=reads_text(model, error.column, files))
        except OutputError as error:
            if not in_parts or encoding is None:
                raise
            problem = str(error)

    # What may not have been meant: guesses, what new rows lack, columns that only others have.
    if options.encoding is not None:  # also where the rows were converted earlier
        files = [table.with_encoding(encoding) for table in files]
    notes = tell_gaps(files, encoding, options)
    for table in files:
        for remark in table.remarks:
            warn_caller(remark, InputWarning)
    if options.columns is None and options.encoding is None:  # else they are left out on purpose
        known = {*files[0].schema.names, *options.drop}
        more = [(table, [n for n in table.schema.names if n not in known]) for table in files]
        more = [(table, columns) for table, columns in more if columns]
        if more:
            table, columns = more[0]
            others = f", and {len(more) - 1} more files have such columns" if len(more) > 1 else ""
            note = (
                f"{table.name} has {some(columns)}, which {files[0].name} has not{others}; "
                "columns that the first file has not are left out."
            )
            if options.strict:
                raise BadRowsError(f"{note} With strict=True (--strict) nothing is left out.")
            warn_caller(note, InputWarning)

    open_original = partial(TabularSource, files, encoding, name) if in_parts else None
    if problem is not None:
        logger.info("%s: not converted (%s); every sweep decodes it again", name, problem)
    if open_original is not None and (store is None or problem is not None):
        source: Source = open_original()
        source.notes = notes
        return source
    assert store is not None
    source = CachedSource(store, stamps, encoding, open_original)
    source.notes = notes
    if not source.is_sparse:
        pages = page_bytes_of(files)
        source.decoding_bytes = table_bytes(source.n_rows, encoding.n_inputs, pages)
    if options.encoding is not None:  # new rows, compared with the training rows
        source.compare = partial(compare_columns, files, encoding)
    return source


GUESSED_WORDS = 100
"""Different words of a text, for the disk space."""


def row_bytes(encoding: Encoding) -> int:
    """What a row takes on disk; of a text only a guess can be made before it is read."""
    itemsize = np.dtype(encoding.dtype).itemsize
    if encoding.words_from is None:
        return encoding.n_features * itemsize
    return (encoding.words_from + GUESSED_WORDS * len(encoding.text_columns)) * (itemsize + 4)


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
            decoded = decode(encoding, batch, done, missing)
            if writing is not None:
                writing.result()
            if not missing.counts:
                writing = disk.submit(rows.append, decoded)
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


# The first rows of a table, decoded without converting it -----------------------------------------


HEAD_ROWS, DECODED_ROWS = 50_000, 1 << 14
"""Rows that tell what columns hold, and rows of these that are made features."""
TALLIED = 0.4
"""Share of the time of looking at columns that is taken for all rows: counting categories."""


class Head(TableFile):
    """The first rows of a table file, as a table file."""

    def __init__(self, file: TableFile) -> None:
        self._file = file
        self.name, self.stamp, self.schema = file.name, file.stamp, file.schema
        self.part_rows, self.n_rows_guess = [], file.n_rows_guess

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        return islice(self._file.batches(columns), -(-HEAD_ROWS // BATCH_ROWS) + 1)

    def text_example(self, column: str) -> str:
        return self._file.text_example(column)


def probe_table(files: Sequence[TableFile], options: ReadOptions, wanted_rows: int) -> Probe:
    """Decode the first rows of the first file; all rows take as much longer."""
    head = Head(files[0])
    began = time.process_time()
    encoding = make_encoding([head], options)
    refuse_gaps([head], encoding, options)
    columns, words = encoding.names, encoding.words_from is not None
    if words:  # the first row loads libraries
        row = next(head.batches(columns)).slice(0, 1)
        encode_sparse(encoding, row, 0, MissingValues())
    looking = time.process_time() - began
    row_size = row_bytes(encoding)
    most = max(SAMPLE_BYTES // (row_size if words else 8 * encoding.n_features), 1)
    counts = dict.fromkeys(columns, 0)
    parts: list[Rows] = []
    done = 0
    began = time.process_time()
    for batch in stream([head], columns):
        batch = batch.slice(0, most - done)
        rows = decode(encoding, batch, done, MissingValues())
        parts.append(rows if words else np.ascontiguousarray(rows))
        for name in columns:
            counts[name] += missing_in(batch.column(name))
        done += batch.num_rows
        if done >= min(most, DECODED_ROWS):
            break
    seconds = time.process_time() - began
    source: Source
    if words:
        source = CsrSource(sparse.vstack(parts, format="csr"))
        source.words_from, source.views = encoding.words_from, encoding.views
    else:
        rows = np.concatenate(parts)
        source = ArraySource(np.nan_to_num(rows, copy=False) if rows.dtype.kind == "f" else rows)
    n_rows = sum(file.n_rows_guess for file in files)
    size = n_rows * row_size
    decoding = seconds * n_rows / done + size / RAW_BYTES_PER_SECOND
    pages = page_bytes_of(files)
    looking *= 1.0 + TALLIED * max(n_rows / HEAD_ROWS - 1.0, 0.0)
    return Probe(
        source=source,
        n_rows=n_rows,
        exact=bool(files[0].part_rows),
        looked_at=done,
        convert_seconds=looking + (decoding if files[0].slow else 0.0),
        read_seconds=size / RAW_BYTES_PER_SECOND if files[0].slow else decoding,
        decoding=SPARSE_BYTES if words else table_bytes(n_rows, encoding.n_inputs, pages),
        missing={name: count for name, count in counts.items() if count},
        uses={column.name: column.describe() for column in encoding.columns or ()},
        left_out=encoding.left_out,
    )


# What a format with named columns offers ---------------------------------------------------------


class TableFormat(Format):
    """A format with named columns: what Parquet, Arrow, delimited text and others have in common.

    Its methods are given the open files of a table (:meth:`InputFiles.tables`) where those of other
    formats are given names; only labels come from files that nothing else has opened.
    """

    names_labels = True

    def __init__(self, table: type[TableFile]) -> None:
        """Take what opens a file: with its path, the options, and the table's first file."""
        self.table: Callable[..., TableFile] = table
        self.name = table.kind

    def open_files(self, files: Sequence[str], options: ReadOptions) -> list[TableFile]:
        """Open the files of one table."""
        tables: list[TableFile] = []
        for number, file in enumerate(files):
            with explained_reading(file):
                tables.append(self.table(file, options, *tables[:1]))
            if number >= MOST_OPEN:
                tables[-1].close()
        return tables

    with_partitions = staticmethod(with_partitions)
    """Adds the columns that the names of the files' folders hold."""

    open = staticmethod(open_tables)
    probe = staticmethod(probe_table)

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
        options = ReadOptions(drop=tuple(name for name in named if name is not None))
        return labels_in_columns(with_partitions(self.open_files(files, options), options), columns)


# Tables read part by part -------------------------------------------------------------------------


class TabularSource(Source):
    """Rows of one or more files of a table that can be read part by part."""

    encoding: Encoding

    def __init__(self, files: Sequence[TableFile], encoding: Encoding, name: str) -> None:
        self.name = name
        self._files = tuple(files)
        self.encoding = encoding
        self.feature_names = encoding.feature_names
        self.words_from, self.views = encoding.words_from, encoding.views
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
        self._cache = PartCache()

    def compare_columns(self) -> dict[str, Any]:
        """Compare the first rows with the training rows."""
        return compare_columns(self._files, self.encoding)

    def read(self, start: int, stop: int) -> Rows:
        """Decode rows ``start`` to ``stop`` (exclusive)."""
        first = int(np.searchsorted(self._bounds, start, side="right")) - 1
        end = int(np.searchsorted(self._bounds, stop, side="left"))

        def batch(part: int) -> tuple[Any, int]:
            begin = int(self._bounds[part])
            low, high = max(begin, start), min(int(self._bounds[part + 1]), stop)
            return self._part(part).slice(low - begin, high - low), low

        if end - first == 1:
            missing = MissingValues()
            rows = decode(self.encoding, *batch(first), missing)
            if missing.counts:
                raise missing.error(self.name, whole=False)
            return rows if self.is_sparse else np.ascontiguousarray(rows)
        return self._decoded(map(batch, range(first, end)), stop - start)

    def take(self, indices: np.ndarray) -> Rows:
        """Decode the rows at increasing ``indices``, each part once."""
        indices = np.asarray(indices, dtype=np.int64)
        cuts = np.searchsorted(indices, self._bounds)

        def batch(part: int) -> tuple[Any, np.ndarray]:
            chosen = indices[int(cuts[part]) : int(cuts[part + 1])]
            return take_rows(self._part(part), chosen - self._bounds[part]), chosen

        return self._decoded(map(batch, np.flatnonzero(np.diff(cuts)).tolist()), len(indices))

    def _part(self, index: int) -> Any:
        number, part = self._parts[index]
        columns = self.encoding.names
        return self._cache.get(index, lambda: self._files[number].read_part(part, columns))

    def _decoded(self, batches: Iterable[tuple[Any, int | np.ndarray]], n_rows: int) -> Rows:
        """Rows of batches, of each of which the first row's number is given, or all numbers."""
        missing, done = MissingValues(), 0
        out = None if self.is_sparse else feature_buffer(self.encoding, n_rows)
        parts: list[Rows] = []
        for batch, rows in batches:
            if out is None:
                parts.append(encode_sparse(self.encoding, batch, rows, missing))
            else:
                encode(self.encoding, batch, out[:, done : done + batch.num_rows], rows, missing)
            done += batch.num_rows
            del batch  # let go of this part before the next one is decoded
        if missing.counts:
            raise missing.error(self.name, whole=False)
        if out is not None:
            return np.ascontiguousarray(out.T)
        return parts[0] if len(parts) == 1 else sparse.vstack(parts, format="csr")


# From a batch of Arrow columns to rows ------------------------------------------------------------


def decode(encoding: Encoding, batch: Any, rows: int | np.ndarray, missing: MissingValues) -> Rows:
    """Rows of a batch, whose first row has this number, sparse where some columns are."""
    if encoding.words_from is not None:
        return encode_sparse(encoding, batch, rows, missing)
    columns = encoding.columns or ()
    if len(columns) == 1 and isinstance(columns[0], Embedding):
        # A table of one embedding column: without a copy, unless there is more to do.
        values = batch.column(columns[0].name)
        kind = number_type(values.type)
        if kind is not None and numpy_type(kind) == np.dtype(encoding.dtype):
            with suppress(WrongRowsError):  # which encode tells
                return columns[0].rows(values)
    buffer = feature_buffer(encoding, batch.num_rows)
    encode(encoding, batch, buffer, rows, missing)
    return buffer.T


def feature_buffer(encoding: Encoding, n_rows: int) -> np.ndarray:
    """Return an empty (features, rows) array in the layout that is quicker to fill and transpose.

    Where most features come from lists of numbers, each row is in one piece. Elsewhere columns are,
    and as those whose distance is a power of two would all fall on the same few cache lines, there
    is a small gap between them, which makes transposing the array six times as fast.
    """
    dtype, n_features = np.dtype(encoding.dtype), encoding.n_features
    lists = [c.width for c in encoding.columns or () if isinstance(c, Embedding)]
    if n_features > 2 * encoding.n_inputs and sum(lists) > n_features // 2:
        return np.empty((n_rows, n_features), dtype=dtype).T
    return np.empty((n_features, n_rows + 16), dtype=dtype)[:, :n_rows]


def encode(
    encoding: Encoding, batch: Any, out: np.ndarray, rows: int | np.ndarray, missing: MissingValues
) -> None:
    """Fill ``out`` (features, rows) from a batch of Arrow columns.

    ``rows`` is the number of the first row, or the numbers of all. Missing values that are not
    filled, and wrong ones, are counted.
    """

    def numbered(where: Any) -> np.ndarray:
        positions = np.flatnonzero(np.asarray(where))
        return rows[positions] if isinstance(rows, np.ndarray) else rows + positions

    start = 0
    for column in encoding.columns or ():
        if column.sparse:
            continue
        values = batch.column(column.name)
        try:
            refused = column.fill(values, out[start : start + column.width])
        except WrongRowsError as error:
            missing.add(column.name, numbered(error.where), str(error))
            refused = None
        except (TypeError, ValueError, pa.ArrowException) as error:
            raise BadRowsError(
                f"column {column.name!r} must hold {column.expects} and holds {values.type}: "
                f"{error}. Give the same kind of table as the model was fitted on."
            ) from error
        if refused is not None:
            missing.add(column.name, numbered(refused))
        start += column.width


def encode_sparse(
    encoding: Encoding, batch: Any, rows: int | np.ndarray, missing: MissingValues
) -> Rows:
    """Turn a batch of Arrow columns, some of them sparse, into CSR rows; else as :func:`encode`."""
    dtype = np.dtype(encoding.dtype)
    dense = np.empty((encoding.words_from or 0, batch.num_rows), dtype=dtype)
    encode(encoding, batch, dense, rows, missing)
    words = [c.sparse_rows(batch.column(c.name)) for c in encoding.columns or () if c.sparse]
    return sparse.hstack([sparse.csr_matrix(dense.T), *words], format="csr", dtype=dtype)


FIRST_ROWS = 5


@dataclass
class MissingValues:
    """Missing values of each column, so that one message can say how many there are and where.

    Values that are wrong in another way count as well, and are told first: what is wrong with a
    column, in how many rows and in which first.
    """

    counts: dict[str, int] = field(default_factory=dict)
    first_rows: list[int] = field(default_factory=list)
    wrong: dict[tuple[str, str], tuple[int, list[int]]] = field(default_factory=dict)

    def add(self, column: str, rows: np.ndarray, problem: str | None = None) -> None:
        """Count the missing values of one column at ``rows``, or those that cannot be features."""
        self.counts[column] = self.counts.get(column, 0) + len(rows)
        head = rows[:FIRST_ROWS].tolist()
        if problem is None:
            self.first_rows = sorted({*self.first_rows, *head})[:FIRST_ROWS]
        else:
            count, first = self.wrong.get((column, problem), (0, []))
            self.wrong[column, problem] = count + len(rows), (first + head)[:FIRST_ROWS]

    def error(self, name: str, whole: bool = True) -> BadRowsError:
        """Say how many values are missing and where; ``whole``: all rows have been looked at."""
        at_least = "" if whole else "at least "
        if self.wrong:
            (column, problem), (count, rows) = next(iter(self.wrong.items()))
            error = BadRowsError(
                f"{name}: column {column!r} {problem} in {at_least}{count:,} rows, "
                f"first in rows {', '.join(f'{row:,}' for row in rows)} (counted from 0). Every "
                "row needs a list of the same length, with a number at each place; leave those "
                "rows out, or the column (drop=, --drop)."
            )
            error.rows = tuple(rows)
            return error
        worst = sorted(self.counts, key=lambda column: -self.counts[column])
        columns = ", ".join(f"{column!r} ({self.counts[column]:,})" for column in worst[:5])
        more = f" and {len(worst) - 5} more columns" if len(worst) > 5 else ""
        error = BadRowsError(
            f"{name} has {at_least}{sum(self.counts.values()):,} missing values, in "
            f"{columns}{more}; first in rows {', '.join(f'{row:,}' for row in self.first_rows)} "
            "(counted from 0). Fill and mark them with missing='auto' (--missing auto), only fill "
            "them with missing='mean' (--missing mean), or leave those columns or rows out."
        )
        error.rows = tuple(self.first_rows)
        return error


# How the columns of a new table differ from those that a model was fitted on ----------------------


NAMED = 3
"""Unknown categories that are named."""


def compare_columns(files: Sequence[TableFile], encoding: Encoding) -> dict[str, Any]:
    """Compare the first rows of a table with the facts that an encoding has kept, for JSON.

    The answer has the ``rows`` that were compared and, of each column that differs at all, the
    share of its ``missing`` values beside that of the training rows (``missing_before``), of
    numbers ``outside`` their range, and of ``unknown`` categories with a few ``examples``.
    """
    absent = absent_columns(files)
    known = [
        column
        for column in encoding.columns or ()
        if column.name in encoding.facts and column.name not in absent
    ]
    if not known:  # embeddings
        return {}
    table, _ = first_rows(files, [column.name for column in known])
    n_rows = max(table.num_rows, 1)
    columns = {}
    for column in known:
        facts, values = encoding.facts[column.name], table.column(column.name)
        differences: dict[str, Any] = {}
        missing = missing_in(values) / n_rows
        if isinstance(column, Number):
            numbers = column.numbers(values).astype(np.float64, copy=False)
            missing = float(np.isnan(numbers).mean())
            if "low" in facts:
                with np.errstate(invalid="ignore"):
                    outside = ((numbers < facts["low"]) | (numbers > facts["high"])).mean()
                if outside > 0:
                    differences["outside"] = round(float(outside), 6)
                    differences |= {"low": facts["low"], "high": facts["high"]}
        # A list of the most frequent categories does not tell which are unknown.
        if isinstance(column, OneHot) or (
            isinstance(column, Frequency) and len(column.categories) == column.n_levels
        ):
            words = text(values).drop_null()
            categories = pa.array(column.categories, type=pa.string())
            unknown = words.filter(pc.invert(pc.is_in(words, value_set=categories)))
            if len(unknown):
                differences["unknown"] = round(len(unknown) / n_rows, 6)
                differences["examples"] = unknown.unique()[:NAMED].to_pylist()
        if missing > facts["missing"]:
            differences |= {"missing": round(missing, 6), "missing_before": facts["missing"]}
        if differences:
            columns[column.name] = differences
    return {"rows": table.num_rows, "columns": columns}
