"""Rows in files of arrays: ``.npy``, HDF5 and Zarr are read where they are, ``.npz`` is unpacked.

An array in a file of several is named as in ``file.h5::name``; several files are shards.
"""

from __future__ import annotations

import importlib
import math
import os
import threading
import warnings
import zipfile
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.lib import format as npy_format

from biglp._core.arrays import Rows
from biglp._core.errors import BadRowsError, MissingExtraError, ParameterError
from biglp._core.memory import available_memory, format_bytes
from biglp._files.local import FileStamp
from biglp._files.uri import INSIDE, split_inside
from biglp._rows.arrays import ArraySource, CsrSource, fill_missing
from biglp._rows.cache import CachedSource, CacheStore, CsrWriter, NpyWriter, no_room
from biglp._rows.format import (
    FileFacts,
    Format,
    LabelArray,
    LabelColumns,
    LabelPiece,
    Probe,
    labels_in_arrays,
    probe_rows,
)
from biglp._rows.npy_reader import RawFile
from biglp._rows.options import ReadOptions
from biglp._rows.prepared import PartCache
from biglp._rows.source import Encoding, Source, check_shape

SHOWN = 12
ROW_ARRAYS = ("X", "x", "rows", "embeddings", "features")
"""Names by which rows are known among several two-dimensional arrays."""
PART_BYTES = 1 << 20
"""Chunks are unpacked so many bytes at a time at least: small ones several together."""


class Facts(NamedTuple):
    """Shape and type of an array in a file, which has them itself where it is open."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def ndim(self) -> int:
        return len(self.shape)


def choose(path: str, arrays: Mapping[str, Any]) -> str:
    """Name of the rows among the arrays of a file: the one named, or the only one it can be."""
    file, inside = split_inside(path)
    if inside:
        name = named(path, arrays)
        check_shape(arrays[name], path, may_be_empty=True)
        return name
    fitting = [
        name for name, array in arrays.items() if array.ndim == 2 and array.dtype.kind in "fiub"
    ]
    known = [name for name in ROW_ARRAYS if name in fitting]
    if len(fitting) == 1 or known:
        return known[0] if known else fitting[0]
    reason = "several arrays that may be the rows" if fitting else "no table of numbers"
    raise BadRowsError(
        f"{file} holds {reason}; it has {_listed(arrays)}. Rows need two dimensions, rows × "
        f"features: name an array that has them, as in {file}{INSIDE}{(fitting or ['NAME'])[0]}."
    )


def named(path: str, arrays: Mapping[str, Any]) -> str:
    """Name of the array that was asked for with ``::name``."""
    file, inside = split_inside(path)
    name = inside.removeprefix(INSIDE).strip("/")
    if name not in arrays:
        raise BadRowsError(
            f"{file} has no array {name!r}; it has {_listed(arrays)}. Name one of these after "
            f"{INSIDE}."
        )
    return name


def _listed(arrays: Mapping[str, Any]) -> str:
    shown = [
        f"{name} ({' × '.join(f'{length:,}' for length in array.shape) or 'one value'} "
        f"{array.dtype})"
        for name, array in list(arrays.items())[:SHOWN]
    ]
    more = f" and {len(arrays) - SHOWN} more" if len(arrays) > SHOWN else ""
    return ", ".join(shown) + more if shown else "none"


class ArrayFormat(Format):
    """Arrays that are read where they are, in one file or several shards.

    ``open_rows(path, may_be_empty=…)`` opens one file, ``label_array(path)`` the labels in one.
    """

    def __init__(
        self,
        name: str,
        open_rows: Callable[..., Source],
        label_array: Callable[[str], LabelArray],
        holds_arrays: bool,
    ) -> None:
        self.name, self.holds_arrays = name, holds_arrays
        self._open_rows, self._label_array = open_rows, label_array

    def open(self, files: Sequence[str], options: ReadOptions) -> Source:
        unnamed = () if self.holds_arrays else ("label_column",)
        options.refuse(files[0], "columns", *unnamed, "drop", "categorical", "text", "dtype")
        if len(files) == 1:
            return fill_missing(self._open_rows(files[0]), options)
        open_shard = partial(self._open_rows, may_be_empty=True)
        return fill_missing(ShardedSource(files, open_shard), options)

    def count_rows(self, files: Sequence[str]) -> list[int]:
        return [self._open_rows(file, may_be_empty=True).n_rows for file in files]

    def read_labels(
        self, files: Sequence[str], columns: LabelColumns, n_rows: int | None = None
    ) -> Iterator[LabelPiece]:
        return labels_in_arrays([self._label_array(file) for file in files])


# --------------------------------------------------------------------------------------------------
# Several files without names, read as one source: shards.


OPEN_SHARDS = 64
"""Shards that are kept open; a system allows a process about a thousand files."""
ASKED_BYTES = 32 << 20
"""What is asked of the next shard when the end of one is read."""


class ShardedSource(Source):
    """Dense rows of several files, one after the other, in the type that holds those of all.

    Shards are opened when they are first read from, and the last few are kept open. What is sent
    to another process are their names and sizes, some fifty bytes a shard. ``open_shard`` is a
    class, or a function at the top of a module; a shard may hold no rows.
    """

    _elsewhere = False  # whether it was sent to another process

    def __init__(self, files: Sequence[str], open_shard: Callable[[str], Source]) -> None:
        self.name = f"{files[0]} and {len(files) - 1:,} more"
        self._names = tuple(files)
        self._open_shard = open_shard
        self._opened: OrderedDict[int, Source] = OrderedDict()
        self._lock = threading.Lock()
        rows: list[int] = []
        stamps: list[FileStamp] = []
        dtypes = []
        first = self._shard(0)
        for index in range(len(files)):
            shard = self._shard(index)
            if shard.n_features != first.n_features:
                raise BadRowsError(
                    f"{files[index]} has {shard.n_features:,} features a row and {files[0]} has "
                    f"{first.n_features:,}; all shards need the same number. Leave out the file "
                    "that does not belong to them, or write it again."
                )
            rows.append(shard.n_rows)
            stamps += shard.stamps
            dtypes.append(shard.dtype)
        self.stamps = tuple(stamps)
        self._bounds = np.concatenate([[0], np.cumsum(rows, dtype=np.int64)])
        self.n_rows, self.n_features = int(self._bounds[-1]), first.n_features
        self.dtype = np.result_type(*set(dtypes))
        self.part_bytes = first.part_bytes
        if self.n_rows == 0:
            raise BadRowsError(
                f"{self.name}: none of these {len(files):,} files holds any rows; at least 1 is "
                "required."
            )

    def read(self, start: int, stop: int) -> Rows:
        # Shards that hold some of these rows, and which of their own rows that is.
        spans = []
        index = int(np.searchsorted(self._bounds, start, side="right")) - 1
        while index < len(self._names) and self._bounds[index] < stop:
            first, end = int(self._bounds[index]), int(self._bounds[index + 1])
            if end > first:
                spans.append((index, max(start, first) - first, min(stop, end) - first))
            index += 1
        # What is read next: further shards, and the one after the last where it ends.
        for index, low, high in spans[1:]:
            self._shard(index).ask_for(low, high)
        if spans:
            index, _, end = spans[-1]
            following = index + 1
            if following < len(self._names) and end == self._rows_of(index):
                most = max(ASKED_BYTES // (self.n_features * self.dtype.itemsize), 1)
                self._shard(following).ask_for(0, min(self._rows_of(following), most))
        if len(spans) == 1:
            ((index, low, high),) = spans
            return self._shard(index).read(low, high).astype(self.dtype, copy=False)
        out = np.empty((stop - start, self.n_features), dtype=self.dtype)
        done = 0
        for index, low, high in spans:
            out[done : done + high - low] = self._shard(index).read(low, high)
            done += high - low
        return out

    def take(self, indices: np.ndarray) -> Rows:
        indices = np.asarray(indices, dtype=np.int64)
        out = np.empty((len(indices), self.n_features), dtype=self.dtype)
        cuts = np.searchsorted(indices, self._bounds)
        for index in np.flatnonzero(np.diff(cuts)).tolist():
            chosen = slice(cuts[index], cuts[index + 1])
            out[chosen] = self._shard(index).take(indices[chosen] - self._bounds[index])
        return out

    def _rows_of(self, index: int) -> int:
        return int(self._bounds[index + 1] - self._bounds[index])

    def _shard(self, index: int) -> Source:
        with self._lock:
            shard = self._opened.pop(index, None)
            if shard is None:
                shard = self._open_shard(self._names[index])
                # It must be the one that was looked at first.
                if self.stamps and shard.n_rows != self._rows_of(index):
                    raise BadRowsError(
                        f"{self._names[index]} has {shard.n_rows:,} rows and had "
                        f"{self._rows_of(index):,} when the work began. Every process must see the "
                        "same file, and no program may write to it."
                    )
                if self.stamps and not self._elsewhere:
                    self.stamps[index].check()
            self._opened[index] = shard
            while len(self._opened) > OPEN_SHARDS:  # closed when no thread reads from it
                self._opened.popitem(last=False)
        return shard

    def __getstate__(self) -> dict[str, Any]:
        """Leave open files behind; names and facts in few bytes."""
        state = {**self.__dict__}
        del state["_lock"], state["_opened"], state["stamps"]
        state["_names"] = "\0".join(map(os.path.abspath, self._names))
        state["_sizes"] = np.array([stamp.size for stamp in self.stamps])
        state["_times"] = np.array([stamp.mtime_ns for stamp in self.stamps])
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        sizes, times = state.pop("_sizes").tolist(), state.pop("_times").tolist()
        self.__dict__.update(state)
        self._names = tuple(state["_names"].split("\0"))
        self.stamps = tuple(
            FileStamp(split_inside(name)[0], size, time, elsewhere=True)
            for name, size, time in zip(self._names, sizes, times, strict=True)
        )
        self._opened, self._lock = OrderedDict(), threading.Lock()
        self._elsewhere = True


# --------------------------------------------------------------------------------------------------
# Files of one array: .npy.


class NpySource(RawFile, Source):
    """Rows of a two-dimensional ``.npy`` file of any real type, in either order."""

    def __init__(self, path: str, may_be_empty: bool = False) -> None:
        super().__init__(path)
        check_shape(self, path, may_be_empty)
        self.name, self.stamps = path, (self.stamp,)
        self.n_rows, self.n_features = self.shape


def _npy_labels(path: str) -> LabelArray:
    array = RawFile(path)
    return LabelArray(path, array.shape, array.dtype, array.read)


NPY = ArrayFormat("npy", NpySource, _npy_labels, holds_arrays=False)


# --------------------------------------------------------------------------------------------------
# Files that store arrays in chunks, each packed as a whole: HDF5 and Zarr.


class ArrayFile:
    """A file, or a Zarr folder, that holds arrays by name, opened where it is first read."""

    _file: Any = None
    _arrays: dict[str, Any] | None = None

    def __init__(self, kind: str, path: str) -> None:
        self.kind = kind
        self.stamp = self._watched = FileStamp.of(path)
        if kind == "Zarr":  # to look at every chunk each time would take too long
            names = [os.path.join(path, name) for name in ("zarr.json", ".zarray", ".zgroup")]
            self._watched = FileStamp.of(next(filter(os.path.exists, names), names[0]))
        self._lock = threading.Lock()

    @property
    def arrays(self) -> dict[str, Any]:
        """All arrays, those in groups too."""
        with self._lock:
            if self._arrays is None:
                self.check()
                try:
                    self._arrays = self._open()
                except (OSError, ValueError, KeyError) as error:
                    raise BadRowsError(
                        f"{self.stamp.path} cannot be read as {self.kind}: {error}. It is damaged, "
                        "was cut short while it was written, or has the wrong ending; write or "
                        "copy it again."
                    ) from error
            return self._arrays

    def _open(self) -> dict[str, Any]:
        path, (module, extra) = self.stamp.path, LIBRARIES[self.kind]
        try:
            library = importlib.import_module(module)
        except ImportError as error:
            raise MissingExtraError(
                f"{path} is read through {module}, which cannot be loaded here ({error}); install "
                f'it with: pip install "biglp[{extra}]".'
            ) from error
        arrays: dict[str, Any] = {}
        if self.kind == "HDF5":

            def note(name: str, thing: Any) -> None:
                if isinstance(thing, library.Dataset) and thing.shape is not None:
                    arrays[name] = thing

            self._file = library.File(path, "r")
            self._file.visititems(note)
        else:
            self._file = library.open(path, mode="r")
            if not hasattr(self._file, "members"):
                return {"array": self._file}  # what an array is called that is in no group
            for name, thing in sorted(self._file.members(max_depth=None)):
                if not hasattr(thing, "members"):
                    arrays[name] = thing
        return arrays

    def check(self) -> None:
        """Raise when it is no longer the file that was looked at first."""
        self._watched.check()

    def __getstate__(self) -> dict[str, Any]:
        """Leave the open file behind."""
        return {"kind": self.kind, "stamp": self.stamp, "_watched": self._watched}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=threading.Lock())


LIBRARIES = {"HDF5": ("h5py", "hdf5"), "Zarr": ("zarr", "zarr")}
"""Modules that read them, and the extras that install these."""


class ChunkedSource(Source):
    """Rows of a two-dimensional array in a file that holds arrays by name.

    A chunk is unpacked as a whole. Each thread keeps the one it read last, for the next block may
    begin in its middle.
    """

    def __init__(self, kind: str, name: str, may_be_empty: bool = False) -> None:
        self.name = name
        self._file = ArrayFile(kind, split_inside(name)[0])
        self.stamps = (self._file.stamp,)
        self._array_name = choose(name, self._file.arrays)
        array = check_shape(self._file.arrays[self._array_name], name, may_be_empty)
        self.n_rows, self.n_features = array.shape
        self.dtype = np.dtype(array.dtype)
        row_bytes = self.n_features * self.dtype.itemsize
        chunk_rows = (array.chunks or (1,))[0]
        self._part_rows = chunk_rows * -(-PART_BYTES // (chunk_rows * row_bytes))
        self.part_bytes = 2 * self._part_rows * row_bytes  # packed and unpacked
        self._parts = PartCache()

    def read(self, start: int, stop: int) -> Rows:
        size = self._part_rows
        pieces = []
        while start < stop:
            begin = start - start % size
            end = min(begin + size, self.n_rows)
            if (start, min(stop, end)) == (begin, end):  # nothing of it is needed again
                pieces.append(self._load(begin, end))
            else:
                pieces.append(self._part(begin)[start - begin : stop - begin])
            start = end
        return self._joined(pieces)

    def take(self, indices: np.ndarray) -> Rows:
        """Read the rows at increasing ``indices``, each chunk once."""
        indices = np.asarray(indices, dtype=np.int64)
        cuts = np.flatnonzero(np.diff(indices // self._part_rows)) + 1
        pieces = []
        for rows in np.split(indices, cuts) if len(indices) else []:
            begin = int(rows[0]) - int(rows[0]) % self._part_rows
            pieces.append(self._part(begin)[rows - begin])
        return self._joined(pieces)

    def check_unchanged(self) -> None:
        self._file.check()

    def _part(self, begin: int) -> np.ndarray:
        """Some chunks, which may be needed again."""
        end = min(begin + self._part_rows, self.n_rows)
        return np.asarray(self._parts.get(begin, partial(self._load, begin, end)))

    def _joined(self, pieces: list[np.ndarray]) -> np.ndarray:
        if len(pieces) == 1:
            return np.array(pieces[0])  # a copy: others may read the same part
        shape = (0, self.n_features)
        return np.concatenate(pieces) if pieces else np.empty(shape, dtype=self.dtype)

    def _load(self, begin: int, end: int) -> np.ndarray:
        try:
            return np.asarray(self._file.arrays[self._array_name][begin:end])
        except MemoryError:
            raise
        except Exception as error:  # a damaged chunk can fail in any layer of its library
            raise BadRowsError(
                f"{self.name}: rows {begin:,} to {end:,} cannot be read ({error}). The file is "
                "damaged or was cut short; write or copy it again."
            ) from error


def _labels_in_chunks(kind: str, path: str) -> LabelArray:
    arrays = ArrayFile(kind, split_inside(path)[0]).arrays
    array = arrays[named(path, arrays)]
    dtype = np.dtype(array.dtype)
    return LabelArray(path, array.shape, dtype, lambda start, stop: array[start:stop])


def _chunked(kind: str) -> ArrayFormat:
    open_rows, open_labels = partial(ChunkedSource, kind), partial(_labels_in_chunks, kind)
    return ArrayFormat(kind, open_rows, open_labels, holds_arrays=True)


HDF5, ZARR = map(_chunked, LIBRARIES)


# --------------------------------------------------------------------------------------------------
# Packed arrays, .npz: a sparse matrix as scipy.sparse.save_npz writes it, or dense rows.


class NpzFormat(Format):
    """Zip files of ``.npy`` files, unpacked once to the block cache, one file after the other."""

    name = "npz"
    holds_arrays = True

    def open(self, files: Sequence[str], options: ReadOptions) -> Source:
        name = files[0] if len(files) == 1 else f"{files[0]} and {len(files) - 1:,} more"
        facts = [_npz_facts(file) for file in files]
        is_sparse = _are_sparse(files, facts)
        nothing = ("missing",) if is_sparse else ()
        options.refuse(name, "columns", "drop", "categorical", "text", "dtype", *nothing)
        if options.cache == "never":
            raise ParameterError(
                f"cache='never' cannot be used with {name}: the arrays of a .npz file must be "
                "unpacked once; use cache='auto' or name a folder."
            )
        # What a file takes unpacked: its rows, or all arrays of a sparse matrix.
        sizes = []
        for file, arrays in zip(files, facts, strict=True):
            chosen = arrays.values() if is_sparse else [arrays[choose(file, arrays)]]
            sizes.append(sum(math.prod(shape) * dtype.itemsize for shape, dtype in chosen))
        stamps = tuple(FileStamp.of(split_inside(file)[0]) for file in files)
        store = CacheStore(name, stamps, options, inside=[split_inside(file)[1] for file in files])
        encoding, unpacked_bytes = store.find(), 0
        if encoding is None:
            shortage = store.shortage(sum(sizes))
            if shortage is not None:
                raise no_room(name, shortage)
            # An array, and its copy where the order or the type of its rows is another.
            unpacked_bytes, available = 2 * max(sizes), available_memory()
            if unpacked_bytes > available:
                raise BadRowsError(
                    f"{files[sizes.index(max(sizes))]} takes {format_bytes(unpacked_bytes)} to "
                    f"unpack, and {format_bytes(available)} are available; cut it into several "
                    "files, or write the rows with numpy.save, as .npy, which is read in blocks."
                )
            encoding = store.build(partial(_unpack, files, facts, is_sparse))
            for stamp in stamps:
                stamp.check()
        source = CachedSource(store, stamps, encoding)
        source.decoding_bytes = unpacked_bytes
        return source if is_sparse else fill_missing(source, options)

    def peek(self, files: Sequence[str], options: ReadOptions) -> FileFacts:
        facts = [_npz_facts(file) for file in files]
        if _are_sparse(files, facts):
            shapes = [tuple(_load_npz(file, "shape").tolist()) for file in files]
            kind = "float64"
        else:
            rows = [a[choose(file, a)] for file, a in zip(files, facts, strict=True)]
            shapes, kind = [array.shape for array in rows], rows[-1].dtype.name
        n_rows = sum(shape[0] for shape in shapes)
        size = sum(FileStamp.of(split_inside(file)[0]).size for file in files)
        return FileFacts(
            self.name, tuple(files), size, n_rows, True, {}, shapes[0][1], kind, converted=True
        )

    def probe(self, files: Sequence[str], options: ReadOptions, wanted_rows: int) -> Probe:
        """Read the first file: unpacking it all takes no longer than looking for some rows."""
        name, facts = files[0], _npz_facts(files[0])
        if _are_sparse([name], [facts]):
            return probe_rows(CsrSource(_load_matrix(name), name), wanted_rows)
        rows = _load_npz(name, choose(name, facts))
        return probe_rows(ArraySource(rows, name), wanted_rows)

    def read_labels(
        self, files: Sequence[str], columns: LabelColumns, n_rows: int | None = None
    ) -> Iterator[LabelPiece]:
        arrays = [_load_npz(file, named(file, _npz_facts(file))) for file in files]
        return labels_in_arrays(
            [
                LabelArray(file, array.shape, array.dtype, lambda i, j, a=array: a[i:j])  # type: ignore[misc]
                for file, array in zip(files, arrays, strict=True)
            ]
        )


NPZ = NpzFormat()


def _unpack(
    files: Sequence[str], facts: Sequence[dict[str, Facts]], is_sparse: bool, folder: Path
) -> Encoding:
    """Write the rows of all files, in the type that holds those of all."""
    if is_sparse:
        names = ["data"] * len(files)
        widths = [int(_load_npz(file, "shape")[1]) for file in files]
    else:
        names = [choose(file, arrays) for file, arrays in zip(files, facts, strict=True)]
        widths = [arrays[name].shape[1] for arrays, name in zip(facts, names, strict=True)]
    for file, width in zip(files, widths, strict=True):
        if width != widths[0]:
            raise BadRowsError(
                f"{file} has {width:,} features a row and {files[0]} has {widths[0]:,}; the files "
                "of one input need the same number."
            )
    dtype = np.result_type(*{arrays[name].dtype for arrays, name in zip(facts, names, strict=True)})
    if is_sparse:
        with CsrWriter(folder, widths[0], dtype) as matrices:
            for file in files:
                matrices.append(_load_matrix(file))
        return Encoding(None, widths[0], dtype.str)
    with NpyWriter(folder / "rows.npy", dtype, (widths[0],)) as rows:
        for file, name in zip(files, names, strict=True):
            rows.append(_load_npz(file, name))
    if rows.length == 0 or widths[0] == 0:
        shape = facts[0][names[0]].shape
        raise BadRowsError(f"{files[0]} has shape {shape}: it holds no rows or features.")
    return Encoding(None, widths[0], dtype.str)


def _are_sparse(files: Sequence[str], facts: Sequence[dict[str, Facts]]) -> bool:
    """Whether files hold matrices that ``scipy.sparse.save_npz`` wrote; they must agree."""
    matrix = {"format", "shape", "data"}
    sparse = [
        not split_inside(file)[1] and matrix <= arrays.keys()
        for file, arrays in zip(files, facts, strict=True)
    ]
    if any(sparse) != all(sparse):
        raise BadRowsError(
            f"{files[sparse.index(True)]} holds a sparse matrix and {files[sparse.index(False)]} a "
            "dense array; the files of one input must agree."
        )
    return all(sparse)


def _npz_facts(name: str) -> dict[str, Facts]:
    """Names, shapes and types of the arrays in a file, from their headers."""
    facts = {}
    with (
        _explained_npz(name) as path,
        warnings.catch_warnings(action="ignore"),
        zipfile.ZipFile(path) as archive,
    ):
        for member in archive.namelist():
            with archive.open(member) as file:
                first = npy_format.read_magic(file) == (1, 0)
                shape, _, dtype = (
                    npy_format.read_array_header_1_0(file)
                    if first
                    else npy_format.read_array_header_2_0(file)
                )
                facts[member.removesuffix(".npy")] = Facts(shape, dtype)
    return facts


def _load_npz(name: str, array: str) -> np.ndarray:
    """Read an array of a file as a whole."""
    with (
        _explained_npz(name) as path,
        warnings.catch_warnings(action="ignore"),
        np.load(path, allow_pickle=False) as arrays,
    ):
        return np.asarray(arrays[array])


@contextmanager
def _explained_npz(name: str) -> Iterator[str]:
    path = split_inside(name)[0]
    try:
        yield path
    except (OSError, EOFError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise BadRowsError(
            f"{path} cannot be read as .npz: {error}. It is damaged, or was written by "
            "another program; write dense arrays with numpy.savez, sparse matrices with "
            "scipy.sparse.save_npz."
        ) from error


def _load_matrix(path: str) -> Any:
    """Read a sparse matrix as a whole, as CSR."""
    from scipy.sparse import load_npz

    try:
        with warnings.catch_warnings(action="ignore"):
            matrix = load_npz(path)
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise BadRowsError(
            f"{path} is not a sparse matrix as scipy.sparse.save_npz writes it ({error}); save it "
            "with that, or a dense array with numpy.savez or numpy.save."
        ) from error
    return check_shape(matrix, path).tocsr()
