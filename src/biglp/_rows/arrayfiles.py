"""Dense rows in ``.npy`` files, one or several."""

from __future__ import annotations

import os
import threading
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from pathlib import Path
from typing import IO, Any, ClassVar, NamedTuple

import numpy as np
from numpy.lib import format as npy_format

from biglp._core.arrays import Rows
from biglp._core.errors import BadRowsError, MissingExtraError, ParameterError
from biglp._files.local import FileStamp, unwarned
from biglp._files.uri import INSIDE, split_inside
from biglp._rows.arrays import ArraySource, CsrSource, check_shape
from biglp._rows.cache import CachedSource, CacheStore, NpyWriter, no_room, write_width
from biglp._rows.encoding import Encoding
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
from biglp._rows.prepared import PartCache, fill_missing
from biglp._rows.shards import ShardedSource
from biglp._rows.source import FileSource, Source

# --------------------------------------------------------------------------------------------------
# Files that hold several arrays: which of them are the rows, and which the labels.


SHOWN = 12
ROW_ARRAYS = ("X", "x", "rows", "embeddings", "features")
"""Names by which rows are known among several two-dimensional arrays."""


class Facts(NamedTuple):
    """Shape and type of an array in a file."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)


def choose(path: str, arrays: Mapping[str, Facts]) -> str:
    """Name of the array of rows in a file: the one that was named, or the only one it can be.

    Parameters
    ----------
    path : str
        The file, with ``::name`` where the user gave it.
    arrays : mapping of str to Facts
        What is in the file.
    """
    file, inside = split_inside(path)
    if inside:
        name = named(path, arrays)
        check_shape(arrays[name], path, may_be_empty=True)
        return name
    fitting = [
        name for name, facts in arrays.items() if facts.ndim == 2 and facts.dtype.kind in "fiub"
    ]
    known = [name for name in ROW_ARRAYS if name in fitting]
    if len(fitting) == 1 or known:
        return known[0] if known else fitting[0]
    reason = "several arrays that may be the rows" if fitting else "no table of numbers"
    raise BadRowsError(
        f"{file} holds {reason}; it has {_listed(arrays)}. Rows need two dimensions, rows × "
        f"features: name an array that has them, as in {file}{INSIDE}{(fitting or ['NAME'])[0]}."
    )


def named(path: str, arrays: Mapping[str, Facts]) -> str:
    """Name of the array that was asked for with ``::name``."""
    file, inside = split_inside(path)
    name = inside.removeprefix(INSIDE).strip("/")
    if name not in arrays:
        raise BadRowsError(
            f"{file} has no array {name!r}; it has {_listed(arrays)}. Name one of these after "
            f"{INSIDE}."
        )
    return name


def _listed(arrays: Mapping[str, Facts]) -> str:
    shown = [
        f"{name} ({' × '.join(f'{length:,}' for length in facts.shape) or 'one value'} "
        f"{facts.dtype})"
        for name, facts in list(arrays.items())[:SHOWN]
    ]
    more = f" and {len(arrays) - SHOWN} more" if len(arrays) > SHOWN else ""
    return ", ".join(shown) + more if shown else "none"


# --------------------------------------------------------------------------------------------------


class NpySource(FileSource):
    """Rows of a two-dimensional ``.npy`` file of any real type, in either order.

    Parameters
    ----------
    path : str
    may_be_empty : bool
        Whether it may hold no rows, as one shard of several.
    """

    kind = "npy"

    def __init__(self, path: str, may_be_empty: bool = False) -> None:
        self.name = path
        self._file = check_shape(RawFile(path), path, may_be_empty)
        self.n_rows, self.n_features = self._file.shape
        self.dtype = self._file.dtype
        self.stamps = (self._file.stamp,)

    def read(self, start: int, stop: int) -> Rows:
        """Read rows ``start`` to ``stop`` (exclusive) into fresh memory."""
        return self._file.read(start, stop)

    def take(self, indices: np.ndarray) -> Rows:
        """Read the rows at increasing ``indices``."""
        return self._file.take(indices)

    def ask_for(self, start: int, stop: int) -> None:
        """Let the disk begin with rows that will be read soon."""
        self._file.ask_for(start, stop)


class NpyFormat(Format):
    """Arrays: two-dimensional for rows, one-dimensional for labels."""

    name = "npy"

    def open(self, files: Sequence[str], options: ReadOptions) -> Source:
        """Open one file or several shards; rows are read where they are."""
        options.refuse(files[0], "columns", "label_column", "drop", "categorical", "text", "dtype")
        source: FileSource
        if len(files) == 1:
            source = NpySource(files[0])
        else:
            source = ShardedSource(files, partial(NpySource, may_be_empty=True))
        return fill_missing(source, options)

    def count_rows(self, files: Sequence[str]) -> list[int]:
        """Count the rows of each file, which are in its header."""
        return [NpySource(file, may_be_empty=True).n_rows for file in files]

    def read_labels(
        self, files: Sequence[str], columns: LabelColumns, n_rows: int | None = None
    ) -> Iterator[LabelPiece]:
        """Yield the labels of all files."""
        arrays = [RawFile(file) for file in files]
        return labels_in_arrays(
            [
                LabelArray(file, array.shape, array.dtype, array.read)
                for file, array in zip(files, arrays, strict=True)
            ]
        )


NPY = NpyFormat()


# --------------------------------------------------------------------------------------------------
# What is in a ``.npz`` file, and its arrays a piece at a time.


PIECE_BYTES = 4 << 20


class NpzFile:
    """A zip file of ``.npy`` files.

    Parameters
    ----------
    name : str
        The file; ``::name`` may follow.

    Attributes
    ----------
    path : str
    inside : str
        ``::name``, or nothing.
    """

    def __init__(self, name: str) -> None:
        self.path, self.inside = split_inside(name)

    def facts(self) -> dict[str, Facts]:
        """Names, shapes and types of the arrays."""
        return {name: Facts(shape, dtype) for name, (shape, _, dtype) in self._headers.items()}

    @property
    def is_sparse(self) -> bool:
        """Whether it is a matrix that ``scipy.sparse.save_npz`` wrote."""
        return not self.inside and {"format", "shape", "data"} <= self._headers.keys()

    @property
    def is_csr(self) -> bool:
        """Whether that matrix has the form in which rows are read."""
        return self.load("format").item() in (b"csr", "csr")

    def unpacked_bytes(self) -> int:
        """Bytes of all arrays."""
        with self._explained(), zipfile.ZipFile(self.path) as archive:
            return sum(part.file_size for part in archive.infolist())

    def load(self, name: str) -> np.ndarray:
        """Read an array as a whole."""
        with self._explained(), unwarned(), np.load(self.path, allow_pickle=False) as stored:
            return np.asarray(stored[name])

    def pieces(self, name: str) -> Iterator[np.ndarray]:
        """Yield an array in pieces of its first axis."""
        shape, by_columns, dtype = self._headers[name]
        if by_columns and len(shape) > 1:
            yield self.load(name)
            return
        entry_bytes = max(dtype.itemsize * int(np.prod(shape[1:], dtype=np.int64)), 1)
        each = max(PIECE_BYTES // entry_bytes, 1)
        with (
            self._explained(),
            zipfile.ZipFile(self.path) as archive,
            archive.open(f"{name}.npy") as file,
        ):
            _header(file)
            for start in range(0, shape[0], each):
                count = min(each, shape[0] - start)
                packed = file.read(count * entry_bytes)
                yield np.frombuffer(packed, dtype=dtype).reshape(count, *shape[1:])

    @cached_property
    def _headers(self) -> dict[str, tuple[tuple[int, ...], bool, np.dtype[Any]]]:
        found = {}
        with self._explained(), zipfile.ZipFile(self.path) as archive:
            for part in archive.namelist():
                with archive.open(part) as file:
                    found[part.removesuffix(".npy")] = _header(file)
        return found

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except (OSError, EOFError, ValueError, KeyError, zipfile.BadZipFile) as error:
            if isinstance(error, BadRowsError):
                raise
            raise BadRowsError(
                f"{self.path} cannot be read as .npz: {error}. It is damaged, or was written by "
                "another program; write dense arrays with numpy.savez, sparse matrices with "
                "scipy.sparse.save_npz."
            ) from error


def matrix_shape(path: str) -> tuple[int, ...]:
    """Shape of a sparse matrix, without its values."""
    return tuple(NpzFile(path).load("shape").tolist())


def load_matrix(path: str) -> Any:
    """Read a sparse matrix as a whole, as CSR."""
    from scipy.sparse import load_npz

    try:
        with unwarned():
            matrix = load_npz(path)
        return check_shape(matrix, path).tocsr()
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
        if isinstance(error, BadRowsError):
            raise
        raise BadRowsError(
            f"{path} is not a sparse matrix as scipy.sparse.save_npz writes it ({error}); save it "
            "with that, or a dense array with numpy.savez or numpy.save."
        ) from error


def _header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, order and type from the beginning of a ``.npy`` file."""
    version = npy_format.read_magic(file)
    with unwarned():
        if version == (1, 0):
            return npy_format.read_array_header_1_0(file)
        return npy_format.read_array_header_2_0(file)


# --------------------------------------------------------------------------------------------------
# Arrays in ``.npz`` files: a sparse matrix as ``scipy.sparse.save_npz`` writes it, or dense rows.
#
# The arrays are packed one after the other. They are unpacked once, a piece at a time, to the block
# cache, where rows can be read from anywhere; a file is never all in memory, but for rows that are
# stored by columns and sparse matrices that are not CSR.


class NpzFormat(Format):
    """Packed arrays: a sparse matrix of SciPy, or dense rows in an array of their own."""

    name = "npz"
    holds_arrays = True

    def open(self, files: Sequence[str], options: ReadOptions) -> Source:
        """Unpack files to raw rows and open these."""
        name = files[0] if len(files) == 1 else f"{files[0]} and {len(files) - 1:,} more"
        sparse = _are_sparse(files)
        nothing = ("missing",) if sparse else ()
        options.refuse(name, "columns", "drop", "categorical", "text", "dtype", *nothing)
        if options.cache == "never":
            raise ParameterError(
                f"cache='never' cannot be used with {name}: the arrays of a .npz file must be "
                "unpacked once; use cache='auto' or name a folder."
            )
        stamps = tuple(FileStamp.of(split_inside(file)[0]) for file in files)
        store = CacheStore(name, stamps, options, inside=[split_inside(file)[1] for file in files])
        encoding = store.find()
        if encoding is None:
            shortage = store.shortage(sum(NpzFile(file).unpacked_bytes() for file in files))
            if shortage is not None:
                raise no_room(name, shortage)
            unpack: Callable[..., Encoding] = _unpack_sparse if sparse else _unpack_dense
            encoding = store.build(partial(unpack, files))
            for stamp in stamps:
                stamp.check()
        source = CachedSource(store, self.name, stamps, encoding)
        return source if sparse else fill_missing(source, options)

    def peek(self, files: Sequence[str], options: ReadOptions) -> FileFacts:
        """Read the shapes."""
        shapes, kind = [], "float64"
        sparse = _are_sparse(files)
        for file in files:
            if sparse:
                shapes.append(matrix_shape(file))
            else:
                arrays = NpzFile(file).facts()
                facts = arrays[choose(file, arrays)]
                shapes.append(facts.shape)
                kind = facts.dtype.name
        n_rows = sum(shape[0] for shape in shapes)
        size = sum(FileStamp.of(split_inside(file)[0]).size for file in files)
        names: dict[str, str] = {}
        where = tuple(files)
        return FileFacts(self.name, where, size, n_rows, True, names, shapes[0][1], kind, True)

    def probe(self, files: Sequence[str], options: ReadOptions, wanted_rows: int) -> Probe:
        """Read the first file: unpacking it all takes no longer than looking for some rows."""
        name = files[0]
        if _are_sparse(files):
            return probe_rows(CsrSource(load_matrix(name), name), wanted_rows)
        file = NpzFile(name)
        return probe_rows(ArraySource(file.load(choose(name, file.facts())), name), wanted_rows)

    def read_labels(
        self, files: Sequence[str], columns: LabelColumns, n_rows: int | None = None
    ) -> Iterator[LabelPiece]:
        """Yield the labels in an array of each file, which must be named."""
        return labels_in_arrays([_labels(file) for file in files])


def _are_sparse(files: Sequence[str]) -> bool:
    """Whether files hold sparse matrices; they must agree."""
    sparse = [NpzFile(file).is_sparse for file in files]
    if any(sparse) != all(sparse):
        raise BadRowsError(
            f"{files[sparse.index(True)]} holds a sparse matrix and {files[sparse.index(False)]} a "
            "dense array; the files of one input must agree."
        )
    return all(sparse)


def _unpack_dense(files: Sequence[str], folder: Path) -> Encoding:
    """Write the rows of all files, in the type that holds those of all."""
    archives = [NpzFile(file) for file in files]
    every = [archive.facts() for archive in archives]
    names = [choose(file, facts) for file, facts in zip(files, every, strict=True)]
    found = [facts[name] for facts, name in zip(every, names, strict=True)]
    width = found[0].shape[1]
    for file, facts in zip(files, found, strict=True):
        _check_width(file, facts.shape[1], files[0], width)
    dtype = np.result_type(*{facts.dtype for facts in found})
    with NpyWriter(folder / "rows.npy", dtype, (width,)) as rows:
        for archive, name in zip(archives, names, strict=True):
            for piece in archive.pieces(name):
                rows.append(piece)
    if rows.length == 0 or width == 0:
        raise BadRowsError(f"{files[0]} has shape {found[0].shape}: it holds no rows or features.")
    return Encoding(None, width, dtype.str)


def _unpack_sparse(files: Sequence[str], folder: Path) -> Encoding:
    """Write the three arrays of the CSR matrices of all files, and their width."""
    archives = [NpzFile(file) for file in files]
    shapes = [matrix_shape(file) for file in files]
    width = shapes[0][1]
    for file, shape in zip(files, shapes, strict=True):
        _check_width(file, shape[1], files[0], width)
    dtype = np.result_type(*{archive.facts()["data"].dtype for archive in archives})
    index_type = np.min_scalar_type(-width)  # signed, as SciPy wants it
    with (
        NpyWriter(folder / "indptr.npy", np.int64) as pointers,
        NpyWriter(folder / "indices.npy", np.promote_types(index_type, np.int32)) as indices,
        NpyWriter(folder / "data.npy", dtype) as values,
    ):
        pointers.append(np.zeros(1, dtype=np.int64))
        for archive, shape in zip(archives, shapes, strict=True):
            plain = archive.is_csr and 0 not in shape and dtype.kind in "fiub"
            plain &= {"indptr", "indices"} <= archive.facts().keys()
            matrix = None if plain else load_matrix(archive.path)  # which says what is wrong
            begun, skip = values.length, 1
            for piece in _pieces(matrix, archive, "indptr"):
                pointers.append(piece[skip:].astype(np.int64) + begun)
                skip = 0
            for part, writer in (("indices", indices), ("data", values)):
                for piece in _pieces(matrix, archive, part):
                    writer.append(piece)
    write_width(folder, width)
    return Encoding(None, width, dtype.str)


def _pieces(matrix: Any, archive: NpzFile, part: str) -> Iterable[np.ndarray]:
    return archive.pieces(part) if matrix is None else [getattr(matrix, part)]


def _check_width(file: str, width: int, first: str, expected: int) -> None:
    if width != expected:
        raise BadRowsError(
            f"{file} has {width:,} features a row and {first} has {expected:,}; the files of one "
            "input need the same number."
        )


def _labels(path: str) -> LabelArray:
    file = NpzFile(path)
    array = file.load(named(path, file.facts()))
    return LabelArray(path, array.shape, array.dtype, lambda start, stop: array[start:stop])


NPZ = NpzFormat()


# --------------------------------------------------------------------------------------------------
# Rows in files that store them in chunks, each packed as a whole: HDF5 and Zarr.


PART_BYTES = 1 << 20
"""Chunks are unpacked so many bytes at a time at least: small ones several together."""


class ArrayFile(ABC):
    """A file that holds arrays by name, opened where it is first read.

    Parameters
    ----------
    path : str
    """

    kind: ClassVar[str]
    _file: Any

    def __init__(self, path: str) -> None:
        self.path = path
        self.stamp = FileStamp.of(path)
        self._begin()

    @abstractmethod
    def open_file(self) -> Any:
        """Open the file for reading: a mapping from names to arrays."""

    @abstractmethod
    def facts(self) -> dict[str, Facts]:
        """Names, shapes and types of all arrays."""

    @property
    def file(self) -> Any:
        """The file, open."""
        with self._lock:
            if self._file is None:
                self.check()
                try:
                    self._file = self.open_file()
                except (OSError, ValueError, KeyError) as error:
                    raise BadRowsError(
                        f"{self.path} cannot be read as {self.kind}: {error}. It is damaged, was "
                        "cut short while it was written, or has the wrong ending; write or copy "
                        "it again."
                    ) from error
            return self._file

    def array(self, name: str) -> Any:
        """One of its arrays."""
        return self.file[name]

    def check(self) -> None:
        """Raise when it is no longer the file that was looked at first."""
        self.stamp.check()

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._file = None

    def __getstate__(self) -> dict[str, Any]:
        """Leave the open file behind."""
        return {**self.__dict__, "_lock": None, "_file": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Begin with the file closed."""
        self.__dict__.update(state, path=state["stamp"].path)
        self._begin()


class ChunkedSource(FileSource):
    """Rows of a two-dimensional array in a file that holds arrays by name.

    A chunk is unpacked as a whole. Each thread keeps the one it read last, for the next block may
    begin in its middle.

    Parameters
    ----------
    name : str
        The file, with ``::name`` where the array is named.
    open_file : callable
        Opens it: a subclass of :class:`ArrayFile`.
    may_be_empty : bool
        Whether it may hold no rows, as one shard of several.
    """

    def __init__(
        self, name: str, open_file: Callable[[str], ArrayFile], may_be_empty: bool = False
    ) -> None:
        self.name = name
        self._file = open_file(split_inside(name)[0])
        self.kind = self._file.kind
        self.stamps = (self._file.stamp,)
        self._array_name = choose(name, self._file.facts())
        array = check_shape(self._file.array(self._array_name), name, may_be_empty)
        self.n_rows, self.n_features = array.shape
        self.dtype = np.dtype(array.dtype)
        row_bytes = self.n_features * self.dtype.itemsize
        chunk_rows = (array.chunks or (1,))[0]
        self._part_rows = chunk_rows * -(-PART_BYTES // (chunk_rows * row_bytes))
        self.part_bytes = 2 * self._part_rows * row_bytes  # packed and unpacked
        self._held = PartCache()

    def read(self, start: int, stop: int) -> Rows:
        """Read rows ``start`` to ``stop`` (exclusive)."""
        return self._gather([slice(*span) for span in self._spans(start, stop)])

    def take(self, indices: np.ndarray) -> Rows:
        """Read the rows at increasing ``indices``, each chunk once."""
        indices = np.asarray(indices, dtype=np.int64)
        cuts = np.flatnonzero(np.diff(indices // self._part_rows)) + 1
        return self._gather([part for part in np.split(indices, cuts) if len(part)])

    def check_unchanged(self) -> None:
        """Raise when the file is no longer the one that was looked at first."""
        self._file.check()

    def _gather(self, wanted: Sequence[slice | np.ndarray]) -> np.ndarray:
        """Rows of several parts, in order; each of ``wanted`` lies in one part."""
        found = []
        for rows in wanted:
            first = int(rows.start if isinstance(rows, slice) else rows[0])
            begin = first - first % self._part_rows
            end = min(begin + self._part_rows, self.n_rows)
            if isinstance(rows, slice):
                whole = (rows.start, rows.stop) == (begin, end)
                inside: Any = slice(rows.start - begin, rows.stop - begin)
            else:
                whole, inside = False, rows - begin
            if whole:  # nothing of it is needed again
                found.append(self._load(begin, end))
            else:
                found.append(self._held.get(begin, partial(self._load, begin, end))[inside])
        if len(found) == 1:
            return np.array(found[0])  # a copy: others may read the same part
        shape = (0, self.n_features)
        return np.concatenate(found) if found else np.empty(shape, dtype=self.dtype)

    def _load(self, begin: int, end: int) -> np.ndarray:
        try:
            return np.asarray(self._file.array(self._array_name)[begin:end])
        except MemoryError:
            raise
        except Exception as error:  # a damaged chunk can fail in any layer of its library
            raise BadRowsError(
                f"{self.name}: rows {begin:,} to {end:,} cannot be read ({error}). The file is "
                "damaged or was cut short; write or copy it again."
            ) from error

    def _spans(self, start: int, stop: int) -> Iterator[tuple[int, int]]:
        while start < stop:
            end = min(stop, start - start % self._part_rows + self._part_rows)
            yield start, end
            start = end


class ChunkedFormat(Format):
    """A format of named arrays in chunks.

    Attributes
    ----------
    file : type of ArrayFile
        Opens one file.
    """

    holds_arrays = True
    file: type[ArrayFile]

    def open(self, files: Sequence[str], options: ReadOptions) -> Source:
        """Open one file or several; rows are read where they are."""
        options.refuse(files[0], "columns", "drop", "categorical", "text", "dtype")
        source: FileSource
        if len(files) == 1:
            source = ChunkedSource(files[0], self.file)
        else:
            open_shard = partial(ChunkedSource, open_file=self.file, may_be_empty=True)
            source = ShardedSource(files, open_shard)
        return fill_missing(source, options)

    def count_rows(self, files: Sequence[str]) -> list[int]:
        """Count the rows of each file, which its array says."""
        return [ChunkedSource(file, self.file, may_be_empty=True).n_rows for file in files]

    def read_labels(
        self, files: Sequence[str], columns: LabelColumns, n_rows: int | None = None
    ) -> Iterator[LabelPiece]:
        """Yield the labels in an array of each file, which must be named."""
        return labels_in_arrays([self._labels(file) for file in files])

    def _labels(self, path: str) -> LabelArray:
        file = self.file(split_inside(path)[0])
        array = file.array(named(path, file.facts()))
        return LabelArray(
            path, array.shape, np.dtype(array.dtype), lambda start, stop: array[start:stop]
        )


# --------------------------------------------------------------------------------------------------
# Data sets in HDF5 files: ``file.h5::name``, read through h5py where they are.


class Hdf5File(ArrayFile):
    """One HDF5 file."""

    kind = "HDF5"

    def open_file(self) -> Any:
        """Open the file."""
        return _h5py(self.path).File(self.path, "r")

    def facts(self) -> dict[str, Facts]:
        """Names, shapes and types of all data sets, those in groups too."""
        found: dict[str, Facts] = {}
        data_set = _h5py(self.path).Dataset

        def note(name: str, thing: Any) -> None:
            if isinstance(thing, data_set) and thing.shape is not None:
                found[name] = Facts(thing.shape, thing.dtype)

        self.file.visititems(note)
        return found


class Hdf5Format(ChunkedFormat):
    """HDF5 files."""

    name = Hdf5File.kind
    file = Hdf5File


def _h5py(path: str) -> Any:
    try:
        import h5py
    except ImportError as error:
        raise MissingExtraError(
            f"{path} is read through h5py, which cannot be loaded here ({error}); install it "
            'with: pip install "biglp[hdf5]".'
        ) from error
    return h5py


HDF5 = Hdf5Format()


# --------------------------------------------------------------------------------------------------
# Arrays in Zarr folders: ``folder.zarr`` or ``folder.zarr::name``, read chunk by chunk.


ONLY = "array"
"""What the array of a folder is called that is no group."""
DESCRIPTIONS = ("zarr.json", ".zarray", ".zgroup")


class ZarrFolder(ArrayFile):
    """One Zarr folder, an array or a group of arrays."""

    kind = "Zarr"

    def __init__(self, path: str) -> None:
        super().__init__(path)
        names = [os.path.join(path, name) for name in DESCRIPTIONS]
        self._description = FileStamp.of(next(filter(os.path.exists, names), names[0]))

    def open_file(self) -> Any:
        """Open the folder."""
        return _zarr(self.path).open(self.path, mode="r")

    def facts(self) -> dict[str, Facts]:
        """Names, shapes and types of all arrays, those in groups too."""
        if not hasattr(self.file, "members"):
            return {ONLY: _facts(self.file)}
        return {
            name: _facts(thing)
            for name, thing in sorted(self.file.members(max_depth=None))
            if not hasattr(thing, "members")
        }

    def array(self, name: str) -> Any:
        """One of its arrays."""
        return self.file[name] if hasattr(self.file, "members") else self.file

    def check(self) -> None:
        """Raise when it was made again; to look at every chunk each time would take too long."""
        self._description.check()


class ZarrFormat(ChunkedFormat):
    """Zarr folders."""

    name = ZarrFolder.kind
    file = ZarrFolder


def _facts(array: Any) -> Facts:
    return Facts(array.shape, np.dtype(array.dtype))


def _zarr(path: str) -> Any:
    try:
        import zarr
    except ImportError as error:
        raise MissingExtraError(
            f"{path} is read through zarr, which cannot be loaded here ({error}); install it "
            'with: pip install "biglp[zarr]".'
        ) from error
    return zarr


ZARR = ZarrFormat()
