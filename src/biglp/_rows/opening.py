"""From anything that holds rows to the source that reads it; from what users name to files."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse

from biglp._core import Registry
from biglp._core.arrays import device_tensor, on_host
from biglp._core.errors import BadRowsError, ParameterError
from biglp._files.copies import (
    asked_once,
    copying_to,
    fitting,
    is_folder,
    keep_alive,
    local_names,
    names_below,
    origin,
    stamps_once,
)
from biglp._files.hub import HUB, fetched
from biglp._files.lakes import inside_a_table, lake_of, live_files, refuse_parts, table_above
from biglp._files.local import FileStamp
from biglp._files.uri import StorePath, as_place, is_uri, no_such_file, plain_name, split_inside
from biglp._rows.arrays import ArraySource, CsrSource, TensorSource, fill_missing
from biglp._rows.format import (
    FORMATS,
    LISTINGS,
    Format,
    ending,
    endings_of,
    instead_of,
    unreadable,
    without_pyarrow,
)
from biglp._rows.options import LAYOUT, ReadOptions
from biglp._rows.source import Source, explained_reading

if TYPE_CHECKING:
    from biglp._rows.format import FileFacts, Probe
    from biglp._tables.table import TableFile


_NAMED = ("columns", "label_column", "drop", "categorical", "text")
"""Options that mean nothing without named columns."""
_TABLES = (
    *("columns", "__arrow_c_stream__", "__arrow_c_array__", "sink_ipc", "to_reader", "scanner"),
    *("toArrow", "with_format"),
)
"""What only tables have: data frames, Arrow's interfaces, queries of polars, scanners, data sets of
pyarrow, Spark and Hugging Face."""
_CONVERSIONS = ("to_arrow", "to_pyarrow", "to_pandas", "toPandas", "to_numpy", "numpy")
"""Methods by which other packages give what is read here."""
FRAMES: Registry[Any] = Registry({"frame": "biglp._tables.arrow:open_frame"})
"""How a data frame is opened: tables, and pyarrow with them, are loaded for the first one."""


def as_source(X: Any, **options: Any) -> Source:
    """Accept rows in any form and return a source; options are those of :class:`ReadOptions`.

    X is an array, sparse matrix, data frame, path, paths, InputFiles or Source. Paths may be files,
    lists of files, folders, patterns (``part-*.parquet``), URIs of these
    (``s3://bucket/part-*.parquet``), Delta and Iceberg tables, or ``sim:…``. Data frames may also
    be polars LazyFrames, DuckDB relations, Hugging Face data sets, Spark data frames, pyarrow data
    sets, scanners and readers, and whatever has Arrow's PyCapsule interface; arrays also torch
    tensors, and those of CuPy, JAX or Numba on a GPU, where they stay.
    """
    if isinstance(X, Source):
        if options:
            raise ParameterError(
                f"{', '.join(options)}: these options say how to read, but {X.name} is open "
                "already; give them where it is opened."
            )
        return X
    reading = ReadOptions(**options)
    listed = X if isinstance(X, (list, tuple)) and len(X) > 0 else [X]
    if all(isinstance(path, (str, os.PathLike, InputFiles)) for path in listed):
        # Files of a store are copied first, and called by their own names in messages.
        folder = None if reading.cache in ("auto", "never") else Path(reading.cache)
        with copying_to(folder, reading.progress):
            files = InputFiles.of(X)
            source = files.open(reading)
        if files.in_stores:
            keep_alive(source, files)
            source.name = origin(source.name)
        return source
    if type(X).__module__.partition(".")[0] in ("dask", "dask_expr"):
        from biglp._rows.dask import open_dask  # Dask is loaded: X is made of it

        reading.refuse("a dask array", *_NAMED)
        return fill_missing(open_dask(X), reading)
    # Asked of the type: a LazyFrame works its columns out when it is asked for them.
    if any(hasattr(type(X), mark) for mark in _TABLES) or hasattr(X, "__arrow_c_stream__"):
        frame = _open_frame(X, reading)
        if frame is not None:
            return frame
    reading.refuse("an array", *_NAMED)
    rows: Source
    if (tensor := device_tensor(X)) is not None:
        rows = TensorSource(tensor, "X")
    elif sparse.issparse(X):
        rows = CsrSource(X)
    else:
        if isinstance(X, np.ma.MaskedArray) and np.ma.is_masked(X):
            masked, X = np.ma.getmaskarray(X), X.data.astype(np.result_type(X.dtype, np.float32))
            X[masked] = np.nan  # missing, where NumPy would forget the mask
        array = np.asarray(on_host(X, "X"))
        if array.dtype.kind == "O" and not hasattr(X, "__array__") and not isinstance(X, Sequence):
            found = next((name for name in _CONVERSIONS if hasattr(X, name)), None)
            advice = "an array, a data frame or an Arrow table of it"
            raise BadRowsError(
                f"X is a {type(X).__module__}.{type(X).__qualname__}, whose rows biglp cannot "
                f"read; give {advice if found is None else f'X.{found}()'}."
            )
        if array.dtype.kind in "OUS":
            try:
                array = array.astype(np.float64)
            except (TypeError, ValueError) as error:
                raise BadRowsError(
                    f"X must hold real numbers, but some values are not: {error}. "
                    "Encode text and categories as numbers first (for example with one-hot "
                    "columns)."
                ) from error
        names = None
        if not isinstance(X, np.ndarray) and hasattr(X, "columns"):
            columns = tuple(X.column_names if hasattr(X, "column_names") else X.columns)
            names = columns if all(isinstance(name, str) for name in columns) else None
        rows = ArraySource(array, feature_names=names)
    filled = reading.encoding is not None or reading.missing == "mean"
    return fill_missing(rows, reading) if filled else rows


def _open_frame(frame: Any, options: ReadOptions) -> Source | None:
    """Open a data frame as a table; None for one of plain features, which is as good an array."""
    no_options = ReadOptions(cache=options.cache, progress=options.progress) == options
    pandas = type(frame).__module__.partition(".")[0] == "pandas" and hasattr(frame, "dtypes")
    plain = (
        no_options
        and pandas
        and all(isinstance(dtype, np.dtype) and dtype.kind in "fiub" for dtype in frame.dtypes)
    )
    if plain and len(set(frame.columns)) < len(frame.columns):  # names that tell nothing apart
        return None
    try:
        open_frame = FRAMES["frame"]
    except ImportError as error:
        if plain:  # an array can be made without pyarrow
            return None
        raise without_pyarrow("this data frame", error) from error
    return open_frame(frame, options, keep_plain=not no_options)


class InputFiles:
    """What the user named: looked up once, its tables opened once and kept.

    Sent to another process, names and stamps go along, and tables are opened there again. Where
    labels are wanted (``for_labels``), formats of labels come first.
    """

    names: tuple[str, ...]
    """Files, which may be URIs, with ``::name`` where an array in one is meant; or ``sim:…``."""
    format_name: str | None
    """None where there is none for this ending, or for several files of it."""
    is_table: bool = False
    """Whether the rows have named columns."""
    in_files: bool = True
    """Whether the rows are in files, and not made up."""
    in_stores: bool = False
    """Whether any of the files are in a store."""

    def __init__(self, paths: Any, *, for_labels: bool = False) -> None:
        self.paths = paths
        self._tables: dict[tuple[Any, ...], list[TableFile]] = {}
        if isinstance(paths, str):
            for listing in LISTINGS.values():
                if listing.prefix and paths.startswith(listing.prefix):
                    self.names = (paths,)
                    self.format_name = listing.name
                    self.in_files = False
                    return
        self._by_path = list(_look_up(paths))
        self.names = files = tuple(file for path in self._by_path for file in path.files)
        self.in_stores = any(map(is_uri, files))
        endings = {ending(file) for file in files}
        formats = [listing for listing in LISTINGS.values() if endings <= {*listing.endings}]
        formats.sort(key=lambda listing: (listing.holds == "labels") != for_labels)
        if len(endings) > 1 and not formats:
            raise BadRowsError(
                f"{files[0]} and the {len(files) - 1} files with it have different endings "
                f"({', '.join(sorted(endings))}); the files of one table must have one format."
            )
        self.is_table = bool(formats) and formats[0].holds == "table"
        can_read = bool(formats) and (formats[0].holds != "rows" or len(files) == 1)
        self.format_name = formats[0].name if can_read else None
        known = formats and formats[0].holds != "labels"
        if not (known or for_labels) and instead_of(endings):
            raise unreadable(self.names)

    @classmethod
    def of(cls, paths: Any) -> InputFiles:
        """The same where it is one already."""
        return paths if isinstance(paths, cls) else cls(paths)

    @cached_property
    def files(self) -> tuple[str, ...]:
        """Names of files on this machine; those of a store are copied when this is asked for."""
        return local_names(self, self.names) if self.in_stores else self.names

    @property
    def format(self) -> Format:
        """The format, loaded; one that refuses to read where there is none."""
        if self.format_name is None:
            return Format()
        try:
            return FORMATS[self.format_name]
        except ImportError as error:
            raise without_pyarrow(self.names[0], error) from error

    @cached_property
    def stamps(self) -> dict[str, FileStamp]:
        """Files that are in no store, as they are when this is first asked for."""
        files = [split_inside(name)[0] for name in self.names] if self.in_files else []
        return {file: FileStamp.of(file) for file in files if not is_uri(file)}

    def check_unchanged(self) -> None:
        """Raise when a file is no longer what :attr:`stamps` says."""
        for stamp in self.stamps.values():
            stamp.check()

    @cached_property
    def facts(self) -> dict[str, Any]:
        """Facts that show a change: size of each file, and when it was written or its ETag.

        A Delta or Iceberg table is described by its version.
        """
        if not self.in_files:
            return {"simulation": self.paths}
        facts: dict[str, Any] = {}
        for path, names, version in self._by_path:
            if version is not None:
                facts[plain_name(path)] = version
                continue
            files = {name: split_inside(name)[0] for name in names}
            places = [as_place(file) for file in files.values() if self.in_stores and is_uri(file)]
            stored = stamps_once(places) if places else {}
            for name, file in files.items():
                if file not in self.stamps:
                    facts[plain_name(name)] = str(stored[str(as_place(file))])
                    continue
                stamp = self.stamps[file]
                written = datetime.fromtimestamp(stamp.mtime_ns / 1e9)
                written_at = written.isoformat(sep=" ", timespec="microseconds")
                facts[plain_name(name)] = f"{stamp.size:,} bytes written {written_at}"
        return facts

    def tables(self, options: ReadOptions) -> list[TableFile]:
        """The files of a table, opened at the first time; options say which columns they have."""
        table_format: Any = self.format  # which says so where there is no pyarrow
        layout = (*(getattr(options, name) for name in LAYOUT), options.header)
        if layout not in self._tables:
            self._tables[layout] = table_format.open_files(self.files, options)
        tables = self._tables[layout]
        if options.encoding is not None:
            tables = [table.with_encoding(options.encoding) for table in tables]
        return table_format.with_partitions(tables, options)

    def _given(self, options: ReadOptions) -> Sequence[Any]:
        """What a format is given: names of files, or a table's files that are open."""
        return self.tables(options) if self.is_table else self.files

    def open(self, options: ReadOptions) -> Source:
        with explained_reading(self.files[0]):
            return self.format.open(self._given(options), options)

    def peek(self, options: ReadOptions | None = None) -> FileFacts:
        """Say what the files hold, without reading or converting their rows."""
        options = options or ReadOptions()
        with explained_reading(self.files[0]):
            return self.format.peek(self._given(options), options)

    def probe(self, options: ReadOptions, wanted_rows: int = 1 << 19) -> Probe:
        """Read some rows, to estimate how long reading all of them takes."""
        with explained_reading(self.files[0]):
            return self.format.probe(self._given(options), options, wanted_rows)

    def count_rows(self) -> list[int]:
        with explained_reading(self.files[0]):
            return self.format.count_rows(self._given(ReadOptions()))

    def __getstate__(self) -> dict[str, Any]:
        """Leave open tables behind."""
        return {**self.__dict__, "_tables": {}}


class PathFiles(NamedTuple):
    """Files behind one path, and which version of a Delta or Iceberg table these are."""

    path: Any
    files: list[str]
    version: str | None = None


def _look_up(paths: Any) -> Iterator[PathFiles]:
    """Files behind each path."""
    if isinstance(paths, (list, tuple)):
        for path in paths:
            yield from _look_up(path)
        return
    name, inside = split_inside(paths)
    path = fetched(name) if name.startswith(HUB) else as_place(name)
    if lake_of(path):
        yield PathFiles(path, *asked_once(live_files, path))
        return
    files = [path]
    if is_folder(path) and ending(str(path)) not in _folder_endings():
        files = [path / name for name in _rows_among(names_below(path), str(path))]
    else:
        stored = isinstance(path, StorePath)
        if not (asked_once(StorePath.exists, path) if stored else path.exists()):
            if glob.has_magic(getattr(path, "path", str(path))):
                files = sorted(fitting(path), key=lambda file: natural_key(str(file)))
            elif stored:
                raise no_such_file(str(path))
            else:
                FileStamp.of(path)  # which says that it is not there
        refuse_parts(files)
    for file in files if isinstance(path, StorePath) else ():
        if ending(str(file)) in _folder_endings():  # copies are of files
            raise BadRowsError(
                f"{file} is a folder that is read as one array, which cannot be done in a store; "
                "copy it to a disk first."
            )
    yield PathFiles(path, [f"{file}{inside}" for file in files])


def natural_key(path: str) -> tuple[Any, ...]:
    """Sort by folders and names, and numbers in these by their value."""
    pieces = (re.split(r"(\d+)", part) for part in PurePosixPath(path).parts)
    numbered = (
        tuple(int(text) if n % 2 else text for n, text in enumerate(piece)) for piece in pieces
    )
    return (*numbered, (path,))  # 01 and 1 are equal up to here


def _folder_endings() -> set[str]:
    """Endings of folders that are read as one file."""
    return {mark for listing in LISTINGS.values() if listing.folder for mark in listing.endings}


def _rows_among(names: Sequence[str], folder: str) -> list[str]:
    """Choose tables or shards among all files below a folder, without hidden and ``_SUCCESS``."""
    inner = table_above(names)
    if inner is not None:
        raise inside_a_table(f"{folder}/{inner}", f"{folder}/{inner}")
    paths = [PurePosixPath(name) for name in names]
    # The folder that is read as one file and holds this one (``x.zarr``), or the file itself.
    arrays = _folder_endings()
    whole = {
        str(next((up for up in reversed(path.parents) if up.suffix.lower() in arrays), path))
        for path in paths
    }
    tables: list[str] = []
    shards: list[str] = []
    for name in sorted(whole, key=natural_key):
        if any(part.startswith((".", "_")) for part in PurePosixPath(name).parts):
            continue
        if ending(name) in endings_of("table"):
            tables.append(name)
        elif ending(name) in endings_of("shards"):
            shards.append(name)
    if tables and shards:
        raise BadRowsError(
            f"the folder {folder} holds {len(shards):,} files of rows (such as {shards[0]}) and "
            f"{len(tables):,} of tables (such as {tables[0]}); name the rows by a pattern (such as "
            f"'{folder}/**/*{ending(shards[0])}'), and a table beside them with --metadata."
        )
    if not tables and not shards:
        if advice := instead_of({ending(name) for name in names}):
            raise BadRowsError(f"the folder {folder}: {advice}")
        endings = ", ".join((*endings_of("table"), *endings_of("shards")))
        raise BadRowsError(
            f"the folder {folder} holds no file that is a table; looked for {endings}."
        )
    return tables or shards
