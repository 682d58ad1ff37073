"""What every source of rows offers."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from scipy import sparse

from biglp._core import looked_up
from biglp._core.arrays import Rows, squared_norms, to_numpy
from biglp._core.blocks import cut_rows
from biglp._core.errors import BadRowsError, BigLPError, ModelFileError, NonFiniteRowsError
from biglp._core.threads import threads_of_one
from biglp._files.local import FileStamp
from biglp._transforms.base import RowTransform
from biglp._transforms.text_model import Meaning

if TYPE_CHECKING:
    from biglp._tables.kinds import Column


class Source(ABC):
    """A table of numeric rows that can be read from any row to any row.

    Everything that other rooms ask of a source is declared here, with the value that fits rows in
    memory. A source must set the first three attributes.
    """

    n_rows: int
    n_features: int
    dtype: np.dtype[Any]
    name: str = "rows"
    """What messages call this source."""
    is_sparse: bool = False
    """Whether :meth:`read` returns CSR matrices."""
    device: str = "cpu"
    """Where the rows are after reading."""
    stamps: tuple[FileStamp, ...] = ()
    """The files behind it as they were when they were opened; empty for rows in memory."""
    encoding: Encoding | None = None
    """How columns became features, to be stored with a model and applied to new files."""
    feature_names: tuple[str, ...] | None = None
    words_from: int | None = None
    """First feature of sparse rows that is a count of a word, where the input says so: all before
    it are columns of a table, it and all after it are words."""
    views: Mapping[str, RowTransform] = {}
    """Other views of the same rows, by name: what their chains begin with."""
    part_bytes: int = 0
    """Memory that each worker may hold beside its block while it reads."""
    decoding_bytes: int = 0
    """Memory that decoding the input takes or took; 0 for rows that are read as they are."""
    n_input_features: int = 0
    """Numbers that a dense row has before any projection, where these are more."""
    notes: tuple[str, ...] = ()
    """What was done with the rows that people should know."""
    stay: bool = False
    """Whether blocks keep their rows on the device once they have been brought there."""

    @abstractmethod
    def read(self, start: int, stop: int) -> Rows:
        """Return rows ``start`` to ``stop`` (exclusive) as stored, dense or CSR."""

    def stored(self, start: int, stop: int) -> Rows:
        """Return rows as :meth:`read` does, or in half precision where they are kept in it."""
        return self.read(start, stop)

    def as_read(self, stored: Rows) -> Rows:
        """Return what :meth:`stored` gave as :meth:`read` does."""
        return stored

    def take(self, indices: np.ndarray) -> Rows:
        """Return the rows at increasing ``indices``; most sources can do better than this."""
        return np.concatenate([self.read(int(i), int(i) + 1) for i in indices])

    def compare_columns(self) -> dict[str, Any]:
        """Say how columns differ from what the encoding knows of the training rows.

        See :func:`~biglp._tables.source.compare_columns`; nothing without named columns.
        """
        return {}

    @property
    def input_names(self) -> tuple[str, ...] | None:
        """Names of the columns that the features are made of, where the input has names."""
        names = () if self.encoding is None else self.encoding.names
        return names or self.feature_names

    def ask_for(self, start: int, stop: int) -> None:  # noqa: B027  few sources can do better
        """Let the disk begin with rows that will be read soon, where that is possible."""

    def check_unchanged(self) -> None:
        """Raise when one of the files is no longer what it was."""
        for stamp in self.stamps:
            stamp.check()

    def __repr__(self) -> str:
        return f"<{self.name}: {self.n_rows:,} rows × {self.n_features:,} features, {self.dtype}>"


def working_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Float type for the arithmetic: float32 where it holds the input exactly, else float64."""
    return np.dtype(np.float32 if np.can_cast(dtype, np.float32) else np.float64)


def check_shape(array: Any, name: str, may_be_empty: bool = False) -> Any:
    """Return an array that can be a table of numbers; refuse others."""
    if array.ndim > 2:
        n_rows, *sizes = array.shape
        raise BadRowsError(
            f"X must be two-dimensional, rows × features; {name} has shape {tuple(array.shape)}. "
            f"Reshape your data with X.reshape(len(X), -1) if it has {n_rows:,} rows, such as "
            f"images, which then have {math.prod(sizes):,} features each."
        )
    if array.ndim != 2:
        raise BadRowsError(
            f"X must be two-dimensional, rows × features; {name} has shape {tuple(array.shape)}. "
            "Reshape your data with X.reshape(-1, 1) if it has one feature, "
            "or X.reshape(1, -1) if it is one row."
        )
    if array.shape[0] == 0 and not may_be_empty:
        raise BadRowsError(
            f"Found array with 0 sample(s) (shape={tuple(array.shape)}) while a minimum of 1 is "
            f"required: {name} holds no rows. Check how it was filtered or read."
        )
    if array.shape[1] == 0:
        raise BadRowsError(
            f"Found array with 0 feature(s) (shape={tuple(array.shape)}) while a minimum of 1 is "
            f"required: {name} holds no columns. Check which columns were chosen."
        )
    if array.dtype.kind not in "fiub":
        raise BadRowsError(
            f"X must hold real numbers; {name} holds {array.dtype}"
            + (". Complex data not supported." if array.dtype.kind == "c" else ".")
        )
    if sparse.issparse(array) and array.format not in ("csr", "csc", "coo", "bsr", "lil", "dok"):
        raise BadRowsError(
            f"{name}: sparse format {array.format!r} cannot be turned into CSR rows."
        )
    return array


def no_rows(name: str) -> BadRowsError:
    """Explain that a table has no rows."""
    return BadRowsError(f"{name} has no rows; at least 1 is required.")


# --------------------------------------------------------------------------------------------------
# Damaged files, and bad rows in them.


_MEANT = (BigLPError, OSError, MemoryError, ImportError, AssertionError, NameError)
"""Errors that say more as they are: ours, the system's, and mistakes in the program."""


@contextmanager
def explained_reading(name: Any) -> Iterator[None]:
    """Say which file is damaged, whatever its format's library makes of it in any layer."""
    try:
        yield
    except _MEANT:
        raise
    except Exception as error:
        lines = str(error).splitlines() or [""]
        raise BadRowsError(
            f"{name} cannot be read ({type(error).__name__}: {lines[0][:300]}). It is damaged, was "
            "cut short, or is no file of the kind that its ending says; write or copy it again."
        ) from error


@contextmanager
def explained(source: Source) -> Iterator[None]:
    """Turn the discovery of a bad row, in any sweep over a source, into an error that names it.

    What was found in files is believed if they are still what they were.
    """
    try:
        yield
    except NonFiniteRowsError:
        source.check_unchanged()
        explain_bad_rows(source)
    source.check_unchanged()


@contextmanager
def explained_model(path: Any) -> Iterator[None]:
    """Say that a model file is damaged where its arrays do not fit each other, in any sweep."""
    try:
        yield
    except _MEANT:
        raise
    except Exception as error:
        raise ModelFileError(
            f"{path} cannot be used: its parts do not fit each other ({type(error).__name__}: "
            f"{error}). Copy it again, or fit and save it anew."
        ) from error


def explain_bad_rows(source: Source) -> NoReturn:
    """Count the rows that hold NaN, infinity or too large values, and raise an error saying so."""
    counts, first = [0, 0], (list[int](), list[int]())
    for block in cut_rows(source, 10_000):
        values = to_numpy(block.rows())
        with np.errstate(over="ignore", invalid="ignore"):
            norms = squared_norms(values.astype(working_dtype(values.dtype), copy=False))
        if sparse.issparse(values):
            marks = sparse.csr_matrix(values, dtype=np.float64)
            marks.data = (~np.isfinite(marks.data)).astype(np.float64)
            broken = np.asarray(marks.sum(axis=1)).ravel() > 0
        else:
            broken = ~np.isfinite(values).all(axis=1)
        for kind, bad in enumerate((broken, ~np.isfinite(norms) & ~broken)):
            rows = np.flatnonzero(bad)
            counts[kind] += len(rows)
            first[kind].extend(int(block.start + row) for row in rows[: 5 - len(first[kind])])
    examples = [f"first: rows {', '.join(map(str, rows))}" for rows in first]
    if counts[0]:
        error = BadRowsError(
            f"Input X contains NaN or infinity in {counts[0]:,} of {source.n_rows:,} rows of "
            f"{source.name} ({examples[0]}). Fill them (for example with "
            "sklearn.impute.SimpleImputer) or drop these rows."
        )
        error.rows = tuple(first[0])
        raise error
    dtype = working_dtype(source.dtype)
    precise = "give X as float64, " if dtype == np.float32 else ""
    if counts[1]:
        error = BadRowsError(
            f"Input X has {counts[1]:,} of {source.n_rows:,} rows with values too large for "
            f"{dtype} arithmetic, because their squares overflow ({examples[1]}); {precise}divide "
            "its features by their size, or drop these rows."
        )
        error.rows = tuple(first[1])
        raise error
    raise BadRowsError(
        "Input X has rows so far from the others that, once its features are scaled, their "
        f"squared distance overflows {dtype}; {precise}clip the outliers, or use scaling='none'."
    )


# --------------------------------------------------------------------------------------------------
# What decoding an input takes of memory, measured.


LIBRARY_BYTES = 58 << 20
"""pyarrow, and pandas, which it loads where that is installed."""
DECODED_BYTES = 72 << 20
"""The same with the most that its allocator keeps after a table was decoded."""
KEPT_COPIES = 16
"""Of a small table the allocator keeps that often its numbers: texts, columns and rows."""
COLUMN_BYTES = 800 << 10
"""What decoding holds of each column of a table."""
SPARSE_BYTES = 160 << 20
"""scikit-learn, and pieces of text while LIBSVM is decoded."""


def table_bytes(n_rows: int, n_columns: int, page_bytes: int = 0) -> int:
    """What decoding a table takes: pieces of every column, of a small table all of it.

    ``page_bytes`` is what the file's format makes decoding hold of each column besides.
    """
    kept = LIBRARY_BYTES + KEPT_COPIES * 8 * n_rows * n_columns
    of_columns = (min(COLUMN_BYTES, 64 * n_rows) + page_bytes) * n_columns
    return min(kept, DECODED_BYTES) + of_columns


# --------------------------------------------------------------------------------------------------
# Random rows and random numbers that depend on the seed only.
#
# No choice here looks at the number of workers or the cut into blocks, so any engine draws the
# same.


NOISE_CHUNK = 1024
FETCH_BYTES, MOST_FETCHING = 2 << 20, 4
"""Rows that are fetched at once, and threads that fetch some, at most."""


def take_rows(source: Source, indices: np.ndarray, n_threads: int = 1) -> Rows:
    """Rows by increasing numbers, by several threads where these are given.

    They are fetched a few at a time, because preparing rows takes several times their memory.
    """
    width = max(source.n_features, source.n_input_features)
    at_once = max(FETCH_BYTES // (width * source.dtype.itemsize), 1)
    if source.is_sparse or len(indices) <= at_once:
        return source.take(indices)

    def fetch(start: int, stop: int) -> Rows:
        if len(indices) == source.n_rows:
            return source.read(start, stop)  # without the copy that taking rows makes
        return source.take(indices[start:stop])

    first = fetch(0, at_once)
    if not isinstance(first, np.ndarray):  # on a GPU, whose memory is its own matter
        return source.take(indices)
    rows = np.empty((len(indices), source.n_features), dtype=first.dtype)
    rows[:at_once] = first

    def fill(start: int) -> None:
        stop = min(start + at_once, len(indices))
        rows[start:stop] = fetch(start, stop)

    starts = range(at_once, len(indices), at_once)
    if n_threads == 1:
        for start in starts:
            fill(start)
        return rows
    with threads_of_one(min(n_threads, MOST_FETCHING)) as threads:
        deque(threads.map(fill, starts), maxlen=0)  # raises what a thread has raised
    return rows


def row_noise(seed: int, start: int, stop: int, width: int) -> np.ndarray:
    """Uniform [0, 1) numbers that belong to rows ``start`` to ``stop``, however they are cut.

    Rows are numbered in chunks, each with a generator of its own; a block draws the chunks that it
    touches and keeps its part.
    """
    first, last = start // NOISE_CHUNK, (stop - 1) // NOISE_CHUNK
    chunks = [
        np.random.default_rng((seed, chunk)).random((NOISE_CHUNK, width))
        for chunk in range(first, last + 1)
    ]
    offset = first * NOISE_CHUNK
    return np.concatenate(chunks)[start - offset : stop - offset]


# --------------------------------------------------------------------------------------------------
# How the columns of a table become numeric features, kept so that new files are treated alike.
#
# An encoding is a list of columns, each of a kind (:mod:`.kinds`) that says how many features it
# has and how they are filled. This module knows nothing of Arrow, so that arrays can be used
# where pyarrow is not installed.


@dataclass(frozen=True)
class Encoding:
    """From named columns (or columns by position) to features."""

    columns: tuple[Column, ...] | None  # in feature order; None where the input had no names
    n_inputs: int  # number of columns
    dtype: str  # NumPy type of the features
    means: tuple[float, ...] | None = None
    """What missing values of columns without names become; None when they are refused."""
    zero_based: bool | None = None
    """Whether a LIBSVM file counts its features from 0."""
    left_out: dict[str, str] = field(default_factory=dict)
    """Columns that are no features though nobody said so, and why."""
    facts: dict[str, dict[str, float]] = field(default_factory=dict)
    """What new rows are compared with: of each column the share of ``missing`` values, and the
    range (``low``, ``high``) of numbers."""
    # Worked out once, because every block of rows asks for them.
    names: tuple[str, ...] = field(init=False, repr=False, compare=False)
    widths: tuple[int, ...] = field(init=False, repr=False, compare=False)
    n_features: int = field(init=False, repr=False, compare=False)
    feature_names: tuple[str, ...] | None = field(init=False, repr=False, compare=False)
    """None where there are none, as for words."""
    text_columns: list[str] = field(init=False, repr=False, compare=False)
    """Columns whose words are counted."""
    words_from: int | None = field(init=False, repr=False, compare=False)
    """First feature of a sparse column, after all others; None when rows are dense."""

    def __post_init__(self) -> None:
        columns = self.columns or ()
        widths = tuple(column.width for column in columns)
        words_from = None
        if any(column.sparse for column in columns):
            words_from = sum(column.width for column in columns if not column.sparse)
        names: tuple[str, ...] | None = None
        if self.columns is not None and words_from is None:
            names = tuple(name for column in columns for name in column.feature_names)
        for attribute, value in (
            ("names", tuple(column.name for column in columns)),
            ("widths", widths),
            ("n_features", self.n_inputs if self.columns is None else sum(widths)),
            ("feature_names", names),
            ("words_from", words_from),
            ("text_columns", [column.name for column in columns if column.sparse]),
        ):
            object.__setattr__(self, attribute, value)

    @property
    def views(self) -> dict[str, RowTransform]:
        """What other views of the rows begin with, by their names."""
        starts, used, end = [], "", 0
        for column in self.columns or ():
            model, n_tokens = column.tokens
            end += column.width
            if n_tokens:
                starts.append(end - n_tokens)
                used = model
        return {"meaning": Meaning(used, starts=np.array(starts))} if starts else {}

    def column(self, name: str) -> Column | None:
        """The column of that name, or None."""
        return next((column for column in self.columns or () if column.name == name), None)

    @property
    def takes_arrays(self) -> bool:
        """Whether rows of numbers, without names, can be taken for features."""
        return all(column.plain for column in self.columns or ())

    @property
    def fillings(self) -> tuple[float | None, ...] | None:
        """What missing values of each feature become; None where all are refused."""
        if self.columns is None:
            return self.means
        fillings = tuple(filling for column in self.columns for filling in column.fillings)
        return fillings if any(filling is not None for filling in fillings) else None

    def check_names(self, available: Sequence[str], name: str) -> None:
        """Refuse a new table that lacks some of this encoding's columns."""
        absent = [column for column in self.names if column not in available]
        if absent:
            raise BadRowsError(
                f"{name} lacks {len(absent)} of the {len(self.names)} columns that the model was "
                f"fitted on: {some(absent)}. It has: {some(available)}. "
                "Give a table with the same column names (their order does not matter)."
            )

    def to_json(self) -> dict[str, Any]:
        """Return a description that JSON can hold."""
        columns = self.columns
        return {
            "columns": None if columns is None else [column.to_json() for column in columns],
            "n_inputs": self.n_inputs,
            "dtype": self.dtype,
            "means": None if self.means is None else list(self.means),
            "zero_based": self.zero_based,
            "left_out": self.left_out,
            "facts": self.facts,
        }

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> Encoding:
        """Rebuild an encoding from :meth:`to_json`."""
        kinds = looked_up("biglp._tables.kinds:KINDS")
        columns, means = stored["columns"], stored["means"]
        return cls(
            columns=None
            if columns is None
            else tuple(kinds[column["kind"]].from_json(column) for column in columns),
            n_inputs=stored["n_inputs"],
            dtype=stored["dtype"],
            means=None if means is None else tuple(means),
            zero_based=stored["zero_based"],
            left_out=stored["left_out"],
            facts=stored["facts"],
        )


def some(names: Sequence[str], most: int = 8) -> str:
    """List the first few names."""
    shown = ", ".join(repr(name) for name in list(names)[:most])
    return shown + (f" and {len(names) - most} more" if len(names) > most else "")
