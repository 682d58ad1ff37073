"""A sparse matrix in a ``.npz`` file, as ``scipy.sparse.save_npz`` writes it.

The arrays of a CSR matrix are unpacked one after the other, as they are, to the block cache, where
rows can be read from anywhere; the file is never all in memory. Other sparse formats are turned
into CSR in memory first.
"""

from __future__ import annotations

import shutil
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from biglp._core.errors import BadRowsError, ParameterError
from biglp._core.files import FileStamp
from biglp._sources.cache.cached import CachedSource
from biglp._sources.cache.folder import CacheStore, no_room
from biglp._sources.formats.arrays import CsrSource, check_shape
from biglp._sources.formats.base import Format
from biglp._sources.options import ReadOptions
from biglp._sources.peek import FileFacts
from biglp._sources.probe import Probe, probe_rows
from biglp._sources.tables.encoding import Encoding

PARTS = ("indptr", "indices", "data")


class NpzFormat(Format):
    """A sparse matrix of SciPy."""

    name = "npz"

    def open(self, files: Sequence[str], options: ReadOptions) -> CachedSource:
        """Unpack one file to sparse raw rows and open these."""
        (name,) = files
        options.refuse(
            name, "columns", "label_column", "drop", "categorical", "text", "missing", "dtype"
        )
        if options.cache == "never":
            raise ParameterError(
                f"cache='never' cannot be used with {name}: the arrays of a .npz file must be "
                "unpacked once; use cache='auto' or name a folder."
            )
        stamp = FileStamp.of(name)
        store = CacheStore(name, (stamp,), options)
        encoding = store.find()
        if encoding is None:
            shortage = store.shortage(_unpacked_bytes(name))
            if shortage is not None:
                raise no_room(name, shortage)
            encoding = store.build(lambda folder: _unpack(name, folder))
            stamp.check()
        return CachedSource(store, self.name, (stamp,), encoding)

    def peek(self, files: Sequence[str], options: ReadOptions) -> FileFacts:
        """Read the shape."""
        facts, size = _facts(files[0]), FileStamp.of(files[0]).size
        n_rows, n_features = facts["shape"].tolist()
        columns: dict[str, str] = {}
        where = tuple(files)
        return FileFacts(self.name, where, size, n_rows, True, columns, n_features, "float64", True)

    def probe(self, files: Sequence[str], options: ReadOptions, wanted_rows: int) -> Probe:
        """Read the matrix: unpacking it all takes no longer than looking for some rows."""
        return probe_rows(CsrSource(_load(files[0]), files[0]), wanted_rows)


def _facts(name: str) -> dict[str, np.ndarray]:
    """Format and shape of a matrix, without its values."""
    try:
        with np.load(name, allow_pickle=False) as stored:
            return {part: stored[part] for part in ("format", "shape")}
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise _no_matrix(name, error) from error


def _load(name: str) -> Any:
    """Read a matrix as a whole, as CSR."""
    from scipy.sparse import load_npz

    try:
        return check_shape(load_npz(name), name).tocsr()
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise _no_matrix(name, error) from error


def _unpack(name: str, folder: Path) -> Encoding:
    """Write the three arrays of a CSR matrix and its width."""
    facts = _facts(name)
    if facts["format"].item() in (b"csr", "csr"):
        with zipfile.ZipFile(name) as archive:
            for part in PARTS:
                with (
                    archive.open(f"{part}.npy") as packed,
                    (folder / f"{part}.npy").open("wb") as file,
                ):
                    shutil.copyfileobj(packed, file)
        width = int(facts["shape"][1])
    else:
        matrix = _load(name)
        for part in PARTS:
            np.save(folder / f"{part}.npy", getattr(matrix, part))
        width = matrix.shape[1]
    np.save(folder / "width.npy", np.array(width))
    values = np.load(folder / "data.npy", mmap_mode="r")
    if values.dtype.kind not in "fiub" or 0 in facts["shape"]:
        _load(name)  # which says what is wrong
    return Encoding(None, width, values.dtype.str)


def _unpacked_bytes(name: str) -> int:
    try:
        with zipfile.ZipFile(name) as archive:
            return sum(part.file_size for part in archive.infolist())
    except (OSError, zipfile.BadZipFile) as error:
        raise _no_matrix(name, error) from error


def _no_matrix(name: str, error: Exception) -> BadRowsError:
    return BadRowsError(
        f"{name} is not a sparse matrix as scipy.sparse.save_npz writes it ({error}); save it with "
        "that, or a dense array with numpy.save as .npy."
    )


NPZ = NpzFormat()
