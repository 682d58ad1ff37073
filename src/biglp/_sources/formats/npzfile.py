"""What is in a ``.npz`` file, and its arrays a piece at a time."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy_format

from biglp._core.errors import BadRowsError
from biglp._files.local import unwarned
from biglp._files.uri import split_inside
from biglp._sources.formats.arrays import check_shape
from biglp._sources.formats.inside import Facts

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
