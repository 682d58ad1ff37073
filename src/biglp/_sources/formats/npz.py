"""Arrays in ``.npz`` files: a sparse matrix as ``scipy.sparse.save_npz`` writes it, or dense rows.

The arrays are packed one after the other. They are unpacked once, a piece at a time, to the block
cache, where rows can be read from anywhere; a file is never all in memory, but for rows that are
stored by columns and sparse matrices that are not CSR.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from biglp._core.errors import BadRowsError, ParameterError
from biglp._files.local import FileStamp
from biglp._files.uri import split_inside
from biglp._sources.base import Source
from biglp._sources.cache.cached import CachedSource
from biglp._sources.cache.csrfile import write_width
from biglp._sources.cache.folder import CacheStore, NpyWriter, no_room
from biglp._sources.formats.arrays import ArraySource, CsrSource
from biglp._sources.formats.base import (
    Format,
    LabelArray,
    LabelColumns,
    LabelPiece,
    labels_in_arrays,
)
from biglp._sources.formats.inside import choose, named
from biglp._sources.formats.npzfile import NpzFile, load_matrix, matrix_shape
from biglp._sources.options import ReadOptions
from biglp._sources.peek import FileFacts
from biglp._sources.prepared import fill_missing
from biglp._sources.probe import Probe, probe_rows
from biglp._sources.tables.encoding import Encoding


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
