"""What a format of rows or labels can do, and the list of all formats."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any, Literal, NamedTuple

import numpy as np

from biglp._core import Registry
from biglp._core.arrays import Rows
from biglp._core.errors import BadRowsError, LabelError, MissingExtraError
from biglp._files.local import FileStamp
from biglp._files.uri import as_place, split_inside
from biglp._rows.options import PACKED, ReadOptions
from biglp._rows.source import Source

Holds = Literal["rows", "shards", "table", "labels"]
"""Rows without names, in one file; the same in one file or several; a table with named columns, in
one file or several; or labels only."""


@dataclass(frozen=True)
class Listing:
    """What is known of a format before it is loaded."""

    name: str
    holds: Holds
    endings: tuple[str, ...] = ()  # of its files
    prefix: str = ""  # how its descriptions begin, for rows that are in no file
    folder: bool = False  # whether what has this ending is a folder


LISTINGS: dict[str, Listing] = {}
FORMATS: Registry[Format] = Registry({})


def register(name: str, format_or_path: Format | str, holds: Holds, *marks: str) -> None:
    """Make a format, or ``"module:object"``, known.

    Marks are endings of its files (``.npy``) or folders (``.zarr/``), or what its descriptions
    begin with (``sim:``).
    """
    endings = tuple(mark.rstrip("/") for mark in marks if mark.startswith("."))
    prefix = next((mark for mark in marks if mark.endswith(":")), "")
    thing: Any = format_or_path
    FORMATS[name] = thing
    LISTINGS[name] = Listing(name, holds, endings, prefix, any(m.endswith("/") for m in marks))


def unregister(name: str) -> None:
    """Forget a format."""
    del LISTINGS[name], FORMATS[name]


def endings_of(*holds: Holds) -> tuple[str, ...]:
    """Endings of all formats that hold one of these."""
    return tuple(
        ending
        for listing in LISTINGS.values()
        if listing.holds in holds
        for ending in listing.endings
    )


def without_pyarrow(name: str, error: ImportError) -> MissingExtraError:
    """Explain that something cannot be read here."""
    return MissingExtraError(
        f"{name} is read through pyarrow, which cannot be loaded here ({error}); install it "
        "with: pip install pyarrow. Arrays and .npy files do not need it."
    )


register("npy", "biglp._rows.arrayfiles:NPY", "shards", ".npy")
register("Parquet", "biglp._tables.parquet:PARQUET", "table", ".parquet", ".pq", ".parq")
register("Arrow", "biglp._tables.arrow:ARROW", "table", ".arrow", ".feather", ".ipc")
register("CSV", "biglp._tables.delimited:DELIMITED", "table", ".csv", ".tsv", ".tab")
register("Excel", "biglp._tables.excel:EXCEL", "table", ".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")
register("LIBSVM", "biglp._rows.libsvm:LIBSVM", "rows", ".libsvm", ".svm", ".svmlight", ".svml")
register("npz", "biglp._rows.arrayfiles:NPZ", "shards", ".npz")
register("JSONL", "biglp._tables.jsonlines:JSON_LINES", "table", ".jsonl", ".ndjson")
register("HDF5", "biglp._rows.arrayfiles:HDF5", "shards", ".h5", ".hdf5", ".he5", ".hdf")
register("Zarr", "biglp._rows.arrayfiles:ZARR", "shards", ".zarr/")
register("simulated", "biglp._rows.simulated:SIMULATED", "rows", "sim:")
register("lines", "biglp._tables.delimited:LINES", "labels", ".txt")
register("JSON", "biglp._labels.tools:EXPORTS", "labels", ".json", ".jsonl", ".ndjson")


# --------------------------------------------------------------------------------------------------
# Some rows of an input, and how long reading all of them would take.


SAMPLE_BYTES = 64 << 20
"""Rows in memory that methods are tried on; four times as much where they stay in their file."""
PASS_BYTES = 4 << 20
RAW_BYTES_PER_SECOND = 1.5e9
"""Writing and reading back converted rows."""


@dataclass(frozen=True)
class Probe:
    """Some rows of an input, and what reading all of them costs."""

    source: Source  # rows to try methods on
    n_rows: int  # of the whole input; an estimate unless ``exact``
    exact: bool
    looked_at: int  # rows that ``missing`` was counted in, and that ``uses`` were told from
    convert_seconds: float = 0.0  # processor time of the conversion before the first sweep
    read_seconds: float = 0.0  # of one pass over the rows when they are not in memory
    decoding: int = 0  # memory that decoding takes
    missing: dict[str, int] = field(default_factory=dict)  # of each column
    uses: dict[str, str] = field(default_factory=dict)  # what is done with each column, in words
    left_out: dict[str, str] = field(default_factory=dict)  # why other columns are no features


def probe_rows(source: Source, wanted: int) -> Probe:
    """Read a part of rows that are read where they are; all of them take as much longer."""
    most = max(SAMPLE_BYTES * 4 // (source.n_features * source.dtype.itemsize), 1)
    n_rows = min(source.n_rows, wanted, most)
    part = Slice(source, (source.n_rows - n_rows) // 2, n_rows)
    at_once = max(PASS_BYTES // (source.n_features * source.dtype.itemsize), 1)
    began, missing = time.perf_counter(), 0
    for start in range(0, n_rows, at_once):
        rows = part.read(start, min(start + at_once, n_rows))
        if start == 0 and rows.dtype.kind == "f" and not source.is_sparse:
            missing = int(np.isnan(rows).sum())
    read = time.perf_counter() - began
    return Probe(
        source=part,
        n_rows=source.n_rows,
        exact=True,
        looked_at=min(at_once, n_rows),
        read_seconds=read * source.n_rows / n_rows,
        decoding=source.decoding_bytes,
        missing={"values": missing} if missing else {},
    )


class Slice(Source):
    """Consecutive rows of another source."""

    def __init__(self, inner: Source, first: int, n_rows: int) -> None:
        self._inner, self._first = inner, first
        self.n_rows, self.n_features, self.dtype = n_rows, inner.n_features, inner.dtype
        self.name, self.is_sparse = inner.name, inner.is_sparse

    def read(self, start: int, stop: int) -> Rows:
        return self._inner.read(self._first + start, self._first + stop)

    def take(self, indices: np.ndarray) -> Rows:
        return self._inner.take(np.asarray(indices) + self._first)


@dataclass(frozen=True)
class FileFacts:
    """What an input is, found without reading or converting its rows."""

    kind: str  # format
    files: tuple[str, ...]  # in order; empty for a simulation
    size: int  # their bytes
    n_rows: int  # an estimate when ``exact`` is false
    exact: bool
    columns: dict[str, str]  # names and types of a table's columns; empty for other formats
    n_features: int | None  # of formats without named columns, where the file says it
    dtype: str | None  # of the numbers of formats without named columns
    converted: bool  # whether the rows will be converted once before the first sweep
    page_bytes: int = 0
    """Memory that decoding holds of each column of a table, because its format packs so much."""


# --------------------------------------------------------------------------------------------------
# Labels in files.


LABEL_NAMES = ("label", "labels", "y", "class", "target")
"""Names of a column that holds labels."""
PIECE_ROWS = 1 << 20
"""Labels that are read at once."""


class LabelPiece(NamedTuple):
    """Some of the labels in files, as a format reads them."""

    labels: Any  # a NumPy or Arrow array, or a list of texts
    rows: np.ndarray | None = None
    """In any order; the next rows by default. A row may have several labels."""
    ids: Any = None  # the IDs of their rows, instead: an Arrow array
    text: bool = False  # whether the labels are as they were written in a text file
    weights: np.ndarray | None = None
    total: int | None = None  # labels of all pieces, one a row, where it is known before
    skipped: int = 0  # entries of a labelling tool that nobody has answered


class LabelArray(NamedTuple):
    """One label a row."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    read: Callable[[int, int], np.ndarray]  # from row to row


def labels_in_arrays(arrays: Sequence[LabelArray]) -> Iterator[LabelPiece]:
    """Yield the labels of arrays, one after the other, a piece at a time."""
    for array in arrays:
        if len(array.shape) != 1:
            raise LabelError(
                f"{array.name} has shape {array.shape}; labels need one dimension, one a row."
            )
        if array.dtype.kind not in "iufbUSOT":
            raise LabelError(f"{array.name} holds {array.dtype}; labels must be integers or text.")
    total = sum(array.shape[0] for array in arrays)
    yield LabelPiece([], total=total)  # a wrong number is told before anything is read
    for array in arrays:
        for start in range(0, array.shape[0], PIECE_ROWS):
            piece = array.read(start, min(start + PIECE_ROWS, array.shape[0]))
            if array.dtype.kind not in "OT":
                yield LabelPiece(piece)
                continue
            texts = [  # of any length, as HDF5 and Zarr store them
                value.decode("utf-8", errors="replace") if isinstance(value, bytes) else str(value)
                for value in piece.tolist()
            ]
            yield LabelPiece(texts)


class LabelColumns(NamedTuple):
    """Columns of a table that hold labels, their weights and IDs, where the user names them."""

    label: str | None = None  # this and the weight are found by name or order where None
    weight: str | None = None
    id: str | None = None  # in the table of the rows; the labels' table may call it "id"
    must: bool = True  # whether the table has to have the first two, because nothing else does
    by_line: bool = False  # whether each line is a row, because the table is that of the rows


class Format:
    """One format of rows, of labels, or of both.

    A format of rows must define :meth:`open`. The other methods are right for rows that can be read
    from anywhere in the file; a format whose rows are converted first has to define :meth:`peek`
    and :meth:`probe`, which may not convert. ``files`` are names of files, of which a format of
    rows that is not registered as shards is given one, or the description of rows that are in no
    file; a format of tables is given files that are open (:class:`TableFormat`).
    """

    name: str  # what messages call it
    holds_labels: bool = False
    """Whether a file of rows holds their labels too, in a place that need not be named."""
    holds_arrays: bool = False
    """Whether a file holds arrays with names: the rows are one, the labels may be another."""
    in_files: bool = True
    """Whether the rows are in files, and not made from a description."""
    names_labels: bool = False
    """Whether labels in a file have a name, as columns of a table do, so that one can be chosen."""
    has_minus_one: bool = False
    """Whether its labels are often 1 and -1, which is a class then and does not mean unlabelled."""

    def open(self, files: Sequence[Any], options: ReadOptions) -> Source:
        """Open files as one source of rows."""
        raise unreadable(files)

    def peek(self, files: Sequence[Any], options: ReadOptions) -> FileFacts:
        """Say what files hold, without reading or converting their rows."""
        source = self.open(files, options)
        stamps = [FileStamp.of(split_inside(file)[0]) for file in files] if self.in_files else []
        return FileFacts(
            kind=self.name,
            files=tuple(stamp.path for stamp in stamps),
            size=sum(stamp.size for stamp in stamps),
            n_rows=source.n_rows,
            exact=True,
            columns={},
            n_features=source.n_features,
            dtype=source.dtype.name,
            converted=False,
        )

    def probe(self, files: Sequence[Any], options: ReadOptions, wanted_rows: int) -> Probe:
        """Read some rows, to estimate how long reading all of them takes."""
        # Without options: missing="mean" would read all rows to find the means.
        return probe_rows(self.open(files, ReadOptions()), wanted_rows)

    def count_rows(self, files: Sequence[Any]) -> list[int]:
        """Count the rows of each file."""
        return [self.peek([file], ReadOptions()).n_rows for file in files]

    def read_labels(
        self, files: Sequence[str], columns: LabelColumns, n_rows: int | None = None
    ) -> Iterator[LabelPiece]:
        """Yield the labels in files; ``n_rows`` says how many rows there are, where it is known."""
        raise LabelError(
            f"{files[0]}: labels cannot be read from files ending in {ending(files[0])!r}"
            f"{' several at a time' if len(files) > 1 else ''}; use {_rows_endings('labels')}; or "
            f"{', '.join(endings_of('table'))}."
        )


INSTEAD = {
    ".png .jpg .jpeg .gif .webp .bmp .tif .tiff .heic .avif": (
        "pictures are no rows of numbers. Make one .npy array of them, a row a picture: its "
        "pixels, all pictures of one size, or better an embedding by a model for pictures. The "
        "pictures themselves can be shown while labelling: biglp label rows.npy --metadata "
        "files.csv --images FOLDER, with their paths in a column of files.csv."
    ),
    ".txt .md .rst .html .htm .xml .eml .log .pdf .doc .docx .odt .rtf .tex": (
        "documents are no rows of a table. Make a CSV or Parquet file of them, a line a "
        "document, with its text in a column, and name that column with --text COLUMN (in Python "
        "text=[COLUMN])."
    ),
}
"""What to do with files that people have, by their endings."""


def instead_of(endings: Iterable[str]) -> str | None:
    """What to do with files of these endings; None where nothing is known."""
    found = (advice for marks, advice in INSTEAD.items() if {*marks.split()} & {*endings})
    return next(found, None)


def unreadable(files: Sequence[str]) -> BadRowsError:
    """Explain that there is no format of rows for these files."""
    made = ending(files[0])
    if advice := instead_of([made]):
        return BadRowsError(f"{files[0]}: {advice}")
    return BadRowsError(
        f"{files[0]}: files ending in {made!r} cannot be read"
        f"{' several at a time' if len(files) > 1 else ''}; use {_rows_endings()}; or "
        f"{', '.join(endings_of('table'))} (text may be packed as .gz or .bz2)."
    )


def ending(path: str) -> str:
    """Ending of a file's name, below the packing: ``.csv`` for ``x.csv.gz``."""
    name = PurePosixPath(as_place(split_inside(path)[0]).name)
    return (PurePosixPath(name.stem) if name.suffix.lower() in PACKED else name).suffix.lower()


def _rows_endings(*more: Holds) -> str:
    several, single = ", ".join(endings_of("shards")), ", ".join(endings_of("rows", *more))
    return f"{several} (one file or several), {single} (one file)"
